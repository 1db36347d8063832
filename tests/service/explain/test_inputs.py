"""All forms of a request lead to the same request; API keys are kept out of everything but the key itself."""

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
    ],
)
def test_every_form_is_the_same_request(text: str) -> None:
    read = inputs.read_request(text)

    assert (read.method, read.apikey) == ("GET", KEY)
    assert read.request is not None
    assert (read.request.path, read.request.query) == ("/parts/match", (("queries", '[{"mpn":"SN74S74N"}]'),))
    assert KEY not in repr(read)


def test_a_shell_variable_is_no_key() -> None:
    read = inputs.read_request(f"https://octopart.com/api{TARGET[:17]}?apikey=$APIKEY&q=1")

    assert read.apikey is None


@pytest.mark.parametrize("path", ["/api/v4/endpoint", "/v3/partz/match", "/"])
def test_the_path_of_another_address_is_kept_for_a_suggestion(path: str) -> None:
    read = inputs.read_request(f"https://octopart.com{path}?apikey={KEY}")

    assert (read.request, read.path) == (None, path)


@pytest.mark.parametrize(
    "text, part",
    [
        ("", "nothing to explain"),
        (f"no_file_{KEY}.log", "neither a request nor a file"),
        (f"{URL}\n{URL}", "several lines"),
        ("logs/access.log", "neither a request nor a file"),
        ("/var/log/nginx/access.log.1", "neither a request nor a file"),
    ],
)
def test_an_unreadable_input_says_why_without_the_key(text: str, part: str) -> None:
    with pytest.raises(errors.SourceError, match=part) as raised:
        inputs.read_request(text)
    assert KEY not in raised.value.message


def test_a_path_without_its_prefix_is_a_request() -> None:
    assert [inputs.read_request(text).path for text in ("/parts/match", "/parts?q=x")] == ["/parts/match", "/parts"]
