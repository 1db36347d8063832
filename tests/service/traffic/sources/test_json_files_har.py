"""Tests of HAR files: complete, truncated and malformed."""

import json
from typing import Any

import pytest

from proxy import errors
from proxy.traffic.sources import json_files


def entries(number: Any) -> Any:
    """Requests as a browser saves them, answers and cookies among them."""
    return [
        {
            "startedDateTime": f"2024-05-01T00:00:0{n}.000Z",
            "request": {
                "method": "GET",
                "url": f"https://octopart.com/api/v3/parts/search?q=part+{n}&apikey=abc123",
                "headers": [{"name": "url", "value": "/v3/brands/x"}],
                "queryString": [{"name": "q", "value": f"part {n}"}, {"name": "apikey", "value": "abc123"}],
            },
            "response": {"status": 200, "content": {"text": '{"request": {"url": "/v3/brands/x"}}' * 50}},
        }
        for n in range(number)
    ]


def document(number: int = 3) -> Any:
    return json.dumps(
        {"log": {"version": "1.2", "creator": {"name": "Firefox"}, "pages": [], "entries": entries(number)}}
    )


def test_every_entry_is_a_request(read_source: Any) -> None:
    found = read_source("saved.har", document())
    assert found.targets == [f"/parts/search?q=part%20{n}" for n in range(3)]
    assert [request.origin for request in found.requests] == [f"saved.har:entry {n}" for n in (1, 2, 3)]
    assert (found.source.seconds, found.clients.secrets()) == (2, ("abc123",))


@pytest.mark.parametrize("name", ["saved", "saved.json", "saved.txt"])
@pytest.mark.parametrize("indent", [None, 2])
def test_har_is_recognized_by_content(read_source: Any, name: str, indent: int | None) -> None:
    found = read_source(name, "\ufeff" + json.dumps(json.loads(document()), indent=indent))
    assert (found.source.kind, len(found.requests)) == ("har", 3)


@pytest.mark.parametrize("share", [0.4, 0.6, 0.9])
def test_truncated_har_is_read_to_the_cut(read_source: Any, share: float) -> None:
    text = document(9)
    found = read_source("saved.har", text[: int(len(text) * share)])
    number = len(found.requests)
    assert 2 < number < 9
    assert found.junk == [
        ("the file is cut here, or is no JSON from here on", 1, f"saved.har:entry {number + 1}"),
    ]


def test_empty_truncated_har_is_an_error(read_source: Any) -> None:
    with pytest.raises(errors.SourceError, match=r"read as har: saved\.har:entry 1: the file is cut here"):
        read_source("saved.har", document()[:200])


def test_malformed_har_is_read_to_the_error(read_source: Any) -> None:
    text = document()
    begin = text.index('{"startedDateTime": "2024-05-01T00:00:02')
    found = read_source("saved.har", text[:begin] + "oops" + text[begin:])
    assert (len(found.requests), len(found.junk)) == (2, 1)


def test_entry_without_url_is_counted(read_source: Any) -> None:
    some = [
        *entries(1),
        {"request": {}},
        {"request": {"url": 7}},
        {},
        5,
        None,
        {"request": {"url": "/v3/brands/x", "method": 1}},
    ]
    found = read_source("saved.har", json.dumps({"log": {"entries": some}}))
    assert len(found.requests) == 1
    assert found.junk == [(json_files.NO_HAR_REQUEST, 4, "saved.har:entry 2")]


def test_other_pages_are_skipped(read_source: Any) -> None:
    some = [*entries(1), {"request": {"method": "GET", "url": "https://octopart.com/static/app.js"}}]
    found = read_source("saved.har", json.dumps({"log": {"entries": some}}))
    assert (len(found.requests), len(found.skipped)) == (1, 1)


def test_har_without_entries_is_an_error(read_source: Any) -> None:
    with pytest.raises(errors.SourceError, match="there is nothing in it"):
        read_source("saved.har", '{"log": {"entries": []}}')
