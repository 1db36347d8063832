"""Tests of JSON lines from servers and log shippers, and written by hand."""

import json
from typing import Any

import pytest
from support import cases

from proxy.traffic import logs

WANTED = ("/parts/match", (("queries", '[{"mpn":"X 1"}]'),))
TARGET = "/v3/parts/match?queries=%5B%7B%22mpn%22%3A%22X+1%22%7D%5D"
RAW = '/v3/parts/match?queries=[{"mpn":"X 1"}]'
QUERY = TARGET.partition("?")[2]

LINES = [
    {"url": "https://octopart.com/api" + TARGET, "status": 200, "body": {"url": "/v3/brands/x"}},
    {"path": TARGET},
    {"target": RAW},
    {"time_iso8601": "2024-05-01T00:00:00+00:00", "request": f"GET {RAW} HTTP/1.1", "status": "200"},  # nginx
    {"request_method": "GET", "uri": "/v3/parts/match", "args": QUERY},  # nginx
    {"request_uri": TARGET, "uri": "/v3/parts/match"},  # nginx
    {"level": "info", "ts": 1.7e9, "request": {"method": "GET", "host": "h", "uri": TARGET}, "status": 200},  # Caddy
    {"RequestMethod": "GET", "RequestPath": TARGET, "StartUTC": "2024-05-01T00:00:00.123456789Z"},  # Traefik
    {"httpRequest": {"requestMethod": "GET", "requestUrl": "https://h" + TARGET}, "timestamp": "x"},  # a load balancer
    {"@timestamp": "2024", "url": {"path": "/v3/parts/match", "query": QUERY}, "http": {"request": {"method": "GET"}}},
    {"path": "/v3/parts/match", "query": {"queries": '[{"mpn":"X 1"}]'}},
    {"url": "/v3/parts/match", "query_string": "?" + QUERY},
]


@pytest.mark.parametrize("line", LINES)
def test_request_is_found_in_every_structure(read_source: Any, line: Any) -> None:
    found = read_source("requests.jsonl", json.dumps(line))
    assert [(request.path, request.query) for request in found.requests] == [WANTED]


def test_separate_key_belongs_to_the_client(read_source: Any) -> None:
    found = read_source("r.jsonl", json.dumps({"url": TARGET, "apikey": "abc123"}))
    assert found.clients.key(found.requests[0].client, "baseline") == "abc123"


@cases.parametrize("first, last, seconds")
def test_timestamps_are_numbers_or_text(read_source: Any, first: Any, last: Any, seconds: float | None) -> None:
    lines = [json.dumps({"url": TARGET, **more}) for more in (first, last)]
    assert read_source("r.jsonl", "\n".join(lines)).seconds == seconds


def test_lines_without_request_are_counted(read_source: Any) -> None:
    lines = [
        json.dumps({"url": TARGET}),
        "{",
        "[1]",
        '"text"',
        '{"a": 1}',
        '{"url": 7}',
        "nonsense",
        '{"url": "/x"',
        "[" * 9999,
    ]
    found = read_source("r.jsonl", "\n".join(lines))
    assert len(found.requests) == 1
    assert found.skipped == [
        (logs.NO_JSON, 2, "r.jsonl:2"),
        (logs.NO_REQUEST, 4, "r.jsonl:3"),
        (logs.NO_TARGET, 2, "r.jsonl:5"),
    ]


def test_lone_surrogate_is_accepted(read_source: Any) -> None:
    assert read_source("r.jsonl", r'{"url": "/v3/brands/search?q=\ud800"}').requests[0].query == (("q", "?"),)


@pytest.mark.parametrize(
    "more",
    [
        {"http_user_agent": "kicost/1.1"},
        {"user_agent": "kicost/1.1"},
        {"request": {"url": TARGET, "headers": {"User-Agent": ["kicost/1.1"]}}},
    ],
)
def test_client_program_is_read_from_the_log(read_source: Any, more: Any) -> None:
    found = read_source("r.jsonl", json.dumps({"url": TARGET + "&apikey=K", **more}))
    assert [key.agent for key in found.clients.unnamed()] == ["kicost/1.1"]


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
    assert (found.seconds, found.clients.secrets()) == (2, ("abc123",))


@pytest.mark.parametrize("name", ["saved", "saved.json", "saved.txt"])
@pytest.mark.parametrize("indent", [None, 2])
def test_har_is_recognized_by_content(read_source: Any, name: str, indent: int | None) -> None:
    found = read_source(name, "\ufeff" + json.dumps(json.loads(document()), indent=indent))
    assert len(found.requests) == 3


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
    assert found.skipped == [(logs.NO_HAR_REQUEST, 6, "saved.har:entry 2")]


def test_other_pages_are_skipped(read_source: Any) -> None:
    some = [*entries(1), {"request": {"method": "GET", "url": "https://octopart.com/static/app.js"}}]
    found = read_source("saved.har", json.dumps({"log": {"entries": some}}))
    assert (len(found.requests), len(found.skipped)) == (1, 1)
