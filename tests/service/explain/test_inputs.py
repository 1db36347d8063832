"""All forms of input lead to the same request; API keys are kept out of everything but the key itself."""

import json
from pathlib import Path

import pytest

from proxy import errors
from proxy.explain import inputs

KEY = "PLANTED_KEY_4711"
TARGET = '/v3/parts/match?queries=[{"mpn":"SN74S74N"}]'
URL = f"https://octopart.com/api{TARGET.replace('[', '%5B')}&apikey={KEY}"


@pytest.mark.parametrize(
    "text",
    [
        URL,
        f"'{URL}'",
        f"  {TARGET}&apikey={KEY}\n",
        f"octopart.com/api{TARGET}&apikey={KEY}",
        f"GET {TARGET}&apikey={KEY} HTTP/1.1",
        f"curl -g '{URL}'",
        f'curl -G https://octopart.com/api/v3/parts/match -d apikey={KEY} -d \'queries=[{{"mpn":"SN74S74N"}}]\'',
        json.dumps({"request": {"method": "get", "url": URL, "headers": []}, "response": {"status": 200}}),
        json.dumps({"method": "GET", "url": URL}, indent=1),
        json.dumps([{"request": {"method": "GET", "url": URL}}]),
        json.dumps({"log": {"version": "1.2", "entries": [{"request": {"method": "GET", "url": URL}}]}}),
    ],
)
def test_every_form_is_the_same_request(text: str) -> None:
    (read,) = inputs.read_text(text)

    assert (read.method, read.apikey) == ("GET", KEY)
    assert read.request is not None
    assert (read.request.path, read.request.query) == ("/parts/match", (("queries", '[{"mpn":"SN74S74N"}]'),))
    assert KEY not in repr(read)


def test_a_shell_variable_is_no_key() -> None:
    (read,) = inputs.read_text(f'curl -g "https://octopart.com/api{TARGET[:17]}?apikey=$APIKEY&q=1"')

    assert read.apikey is None


@pytest.mark.parametrize("path", ["/api/v4/endpoint", "/v3/partz/match", "/"])
def test_the_path_of_another_address_is_kept_for_a_suggestion(path: str) -> None:
    (read,) = inputs.read_text(f"https://octopart.com{path}?apikey={KEY}")

    assert (read.request, read.path) == (None, path)


@pytest.mark.parametrize(
    "text, part",
    [
        ("", "nothing to explain"),
        (f"no_file_{KEY}.log", "neither a request nor a file"),
        (f"curl -d apikey={KEY}", "no URL"),
        (f'{{"apikey": "{KEY}"}}', "no HAR entry"),
        (f'{{"request": {{"url": "{URL}"', "cut"),
        (f"{URL}\n{URL}", "several lines"),
        ("logs/access.log", "neither a request nor a file"),
        ("/var/log/nginx/access.log.1", "neither a request nor a file"),
    ],
)
def test_an_unreadable_input_says_why_without_the_key(text: str, part: str) -> None:
    with pytest.raises(errors.SourceError, match=part) as raised:
        inputs.read_text(text)
    assert KEY not in raised.value.message


def test_a_path_without_its_prefix_is_a_request() -> None:
    assert [inputs.read_text(text)[0].path for text in ("/parts/match", "/parts?q=x")] == ["/parts/match", "/parts"]


def test_a_har_file_is_read_without_its_responses(tmp_path: Path) -> None:
    entry = {"request": {"method": "GET", "url": URL}, "response": {"content": {"text": "x" * 1000}}}
    file = tmp_path / "a.har"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps({"log": {"entries": [entry, entry]}}).encode())

    read = inputs.read_har(file)

    assert read is not None
    assert [each.request.origin for each in read if each.request] == ["a.har:entry 1", "a.har:entry 2"]


def test_other_files_are_no_har(tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    file.write_text(f'1.2.3.4 - - [x] "GET {TARGET} HTTP/1.1" 200 1')

    assert inputs.is_file(str(file))
    assert inputs.read_har(file) is None
    assert not inputs.is_file("x" * 5000)
