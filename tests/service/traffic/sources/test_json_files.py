"""Tests of JSON lines from servers and log shippers, and written by hand."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import cases
from support.comparison_server import request_from_target

from proxy import errors
from proxy.redaction import Redaction
from proxy.traffic.recording.recorder import RecordedExchange, Recorder, RecordingHeader
from proxy.traffic.sources import json_files
from proxy.traffic.sources.clients import Clients
from proxy.traffic.sources.source import open_source
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

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


@cases.parametrize("first, last, seconds")
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


HEADER = '{"v3bridge-recording": 1, "made": "2024-05-01"}'
REQUEST = V3Request("/parts/match", (("queries", '[{"mpn":"X 1"}]'), ("exact_only", "")), "the shop", 7, "access.log:3")


def line(v3_request: V3Request) -> str:
    return json.dumps(
        {"call": msgspec.to_builtins(v3_request), "old": {"status": 200, "body": "x" * 9999}, "upstream": []}
    )


@pytest.mark.parametrize("name", ["run.jsonl", "run"])
def test_recorded_requests_are_read_back_equal(read_source: Any, name: str) -> None:
    found = read_source(name, f"{HEADER}\n{line(REQUEST)}\n")
    assert found.source.kind == "recording"
    assert found.requests == [msgspec.structs.replace(REQUEST, origin=f"{name}:2")]
    assert found.requests[0].id == REQUEST.id


def test_truncated_recording_keeps_complete_entries(read_source: Any) -> None:
    found = read_source("run.jsonl", f"{HEADER}\n{line(REQUEST)}\n{line(REQUEST)[:500]}")
    assert (len(found.requests), found.junk) == (1, [("is not a recorded request, or is cut", 1, "run.jsonl:3")])


def test_recording_of_another_version_is_refused(read_source: Any) -> None:
    with pytest.raises(errors.SourceError, match=r"run\.jsonl:1: is of another version of v3bridge"):
        read_source("run.jsonl", HEADER.replace("1,", "2,"))


def test_every_request_of_a_run_recording_is_read(tmp_path: Path) -> None:
    file = tmp_path / "run.zst"
    recorder = Recorder(
        file, RecordingHeader(made=1.0, baseline="a", candidate="b", source="c"), Redaction([]), lambda: 0.0
    )
    requests = [request_from_target(f"/v3/brands/search?q={n}", client="erp", times=n + 1) for n in range(3)]
    for request in requests:
        recorder.keep(RecordedExchange(request, SideResponse(200, b"{}", 0.1)))
    lookup = request_from_target("/v3/brands/b4a2d0000000001e", client="erp")
    recorder.keep(RecordedExchange(lookup, None, SideResponse(200, b"{}", 0.1), lookup=True))
    recorder.close()
    source = open_source(file, Clients())
    read = list(source.requests())
    assert [(request.path, request.query, request.client, request.times) for request in read] == [
        (request.path, request.query, request.client, request.times) for request in requests
    ]
    assert source.junk == source.skipped == ()
