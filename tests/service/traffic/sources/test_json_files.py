"""Tests of JSON lines from servers and log shippers, and written by hand."""

import json
from typing import Any

import pytest

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
    assert found.source.kind == "json"


def test_separate_key_belongs_to_the_client(read_source: Any) -> None:
    found = read_source("r.jsonl", json.dumps({"url": TARGET, "apikey": "abc123"}))
    assert found.clients.key(found.requests[0].client, "baseline") == "abc123"


def test_nested_method_is_detected(read_source: Any) -> None:
    found = read_source(
        "r.jsonl", json.dumps({"url": TARGET}) + "\n" + json.dumps({"url": TARGET, "http": {"method": "post"}})
    )
    assert (len(found.requests), found.skipped) == (1, [("its method is not GET or HEAD", 1, "r.jsonl:2")])


@pytest.mark.parametrize(
    "first, last, seconds",
    [
        ({"ts": 1700000000.5}, {"ts": 1700000010}, 9.5),
        ({"ts": 1700000000500}, {"ts": 1700000010000}, 9.5),
        ({"time": "2024-05-01T00:00:00Z"}, {"time": "2024-05-01T02:00:09+02:00"}, 9),
        ({"time_local": "01/May/2024:00:00:00 +0000"}, {"time_local": "01/May/2024:00:00:09 +0000"}, 9),
        ({"msec": "1700000000.000"}, {"msec": "1700000009.000"}, 9),
        ({"time": "20240501"}, {"time": "20240502"}, None),
        ({"time": True}, {"time": None}, None),
    ],
)
def test_timestamps_are_numbers_or_text(read_source: Any, first: Any, last: Any, seconds: float | None) -> None:
    lines = [json.dumps({"url": TARGET, **more}) for more in (first, last)]
    assert read_source("r.jsonl", "\n".join(lines)).source.seconds == seconds


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
    assert found.junk == [
        ("is no JSON, or is cut", 4, "r.jsonl:2"),
        ("is no JSON object", 2, "r.jsonl:3"),
        ("has no field such as url, request, target or path", 2, "r.jsonl:5"),
    ]


def test_lone_surrogate_is_accepted(read_source: Any) -> None:
    assert read_source("r.jsonl", r'{"url": "/v3/brands/search?q=\ud800"}').requests[0].query == (("q", "?"),)


def test_first_line_beyond_the_detection_limit_is_json(read_source: Any) -> None:
    found = read_source("answers", json.dumps({"url": TARGET, "body": "x" * 200_000}))
    assert (found.source.kind, len(found.requests)) == ("json", 1)


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
