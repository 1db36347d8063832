"""Access logs: lines in every format of servers, of log shippers in JSON, and what is no request."""

import json
from typing import Any

import pytest
from support import cases

from proxy.traffic import logs

NGINX = '203.0.113.9 - - [10/Oct/2018:13:55:36 +0000] "{}" 200 2326 "-" "python-requests/2.19.1"'
APACHE = 'api.example.com:443 203.0.113.9 - frank [10/Oct/2018:15:55:36 +0200] "{}" 200 2326 "https://a/" "curl/7.5"'
COMMON = '203.0.113.9 - - [10/Oct/2018:13:55:36 +0000] "{}" 200 2326'
ELB = (
    "2018-10-10T13:55:36.945958Z my-lb 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "
    '"{}" "curl/7.38.0" - -'
)
ALB = (
    "h2 2018-10-10T13:55:36.186641Z app/my-lb/50dc6c495c0c9188 10.0.1.252:48160 10.0.0.66:9000 0.000 0.002 0.000 200 "
    '200 5 257 "{}" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:e:targetgroup/t/73e2d6bc '
    '"Root=1-58337327" "-" "-" 1 2018-10-10T13:55:36.364000Z "redirect" "https://example.com:80/" "-" "10.0.0.66:9000"'
)
UVICORN = 'INFO:     127.0.0.1:51234 - "{}" 200 OK'
HAPROXY = (
    "Oct 10 13:55:36 lb haproxy[14389]: 10.0.1.2:33317 [10/Oct/2018:13:55:36.655] in static/s1 10/0/30/69/109 200 2750 "
    '- - ---- 1/1/1/1/0 0/0 {{1wt.eu}} {{}} "{}"'
)
SERVERS = [NGINX, APACHE, COMMON, ELB, ALB, UVICORN, HAPROXY]


@cases.parametrize("target")
@pytest.mark.parametrize("server", SERVERS)
def test_quotes_and_spaces_are_kept_in_any_encoding(read_source: Any, server: Any, target: str) -> None:
    found = read_source("access.log", server.format(f"GET {target}&apikey=K HTTP/1.1"))
    (request,) = found.requests
    assert (request.path, request.query) == ("/parts/match", (("queries", '[{"mpn":"X 1"}]'), ("include[]", "specs")))
    assert found.skipped == []


@cases.parametrize("written, value")
def test_escaped_text_is_unescaped(read_source: Any, written: str, value: str) -> None:
    (request,) = read_source("access.log", NGINX.format(f"GET /v3/parts/match?queries={written} HTTP/1.1")).requests
    assert request.query == (("queries", value),)


def test_non_v3_request_is_skipped_and_counted(read_source: Any) -> None:
    requests = [
        "GET /v3/brands/search?q=x HTTP/1.1",
        "GET /favicon.ico HTTP/1.1",
        "GET /healthz HTTP/1.1",
        "POST /v3/parts/search HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "CONNECT octopart.com:443 HTTP/1.1",
        "HEAD /v3/brands/search?q=y HTTP/1.1",
        "GET /v3/openapi.json HTTP/1.1",
        "GET /v3/../etc/passwd HTTP/1.1",
        "GET http://[::1/v3 HTTP/1.1",
    ]
    found = read_source("access.log", "\n".join(map(NGINX.format, requests)))
    assert found.targets == ["/brands/search?q=x"]
    assert found.skipped == [
        ("its path does not begin with /v3 or /api/v3", 3, "access.log:2"),
        ("its method is not GET", 4, "access.log:4"),
        ("its path is none of v3's", 2, "access.log:8"),
    ]


def test_junk_lines_are_counted_with_their_first_position(read_source: Any) -> None:
    junk = [
        r'203.0.113.9 - - [10/Oct/2018:13:55:36 +0000] "\x16\x03\x01\x00" 400 157 "-" "-"',
        '203.0.113.9 - - [10/Oct/2018:13:55:36 +0000] "-" 408 - "-" "-"',
        "logrotate: -- MARK --",
        NGINX.format("GET /v3/brands/search?q=cut HTTP/1.1")[:75],
        "\x00\x01\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ]
    good = [NGINX.format(f"GET /v3/brands/search?q={n} HTTP/1.1") for n in range(5)]
    found = read_source("access.log", "\n\n".join(line for pair in zip(good, junk, strict=True) for line in pair))
    assert found.targets == [f"/brands/search?q={n}" for n in range(5)]
    assert found.skipped == [(logs.NO_REQUEST, 5, "access.log:3")]


def test_endless_line_is_skipped(read_source: Any) -> None:
    good = NGINX.format("GET /v3/brands/search?q=x HTTP/1.1")
    found = read_source("access.log", f'{good}\n"GET {"A" * 700_000}\n{good}')
    assert len(found.requests) == 2
    assert found.skipped == [(logs.NO_REQUEST, 1, "access.log:2")]


def test_hostile_line_takes_linear_time(read_source: Any) -> None:
    found = read_source("access.log", NGINX.format("GET /v3/brands/search?q=x HTTP/1.1") + "\n" + '"GET / ' * 37_000)
    assert len(found.requests) == 1


def test_time_span_is_computed_across_time_zones(read_source: Any) -> None:
    lines = [NGINX.format("GET /v3/brands/search?q=x HTTP/1.1"), APACHE.format("GET /v3/brands/x HTTP/1.1")]
    later = NGINX.format("GET /v3/brands/search?q=y HTTP/1.1").replace("13:55:36", "14:00:00")
    assert read_source("access.log", "\n".join([later, *lines])).seconds == 264


def test_invalid_date_is_ignored(read_source: Any) -> None:
    line = NGINX.format("GET /v3/brands/search?q=x HTTP/1.1")
    found = read_source("access.log", line.replace("10/Oct", "31/Feb") + "\n" + line.replace("10/Oct", "10/Okt"))
    assert (len(found.requests), found.seconds) == (2, None)


def test_jsonp_parameters_are_removed(read_source: Any) -> None:
    lines = [f"GET /v3/brands/search?q=x&callback=jQuery{n}&_={n}&apikey=K HTTP/1.1" for n in range(3)]
    found = read_source("access.log", "\n".join(map(NGINX.format, lines)))
    assert len({request.id for request in found.requests}) == 1
    assert found.targets[0] == "/brands/search?q=x"


@cases.parametrize("line, agent")
def test_client_program_is_read_from_the_log(read_source: Any, line: str, agent: str) -> None:
    found = read_source("access.log", line.format("GET /v3/brands/search?q=x&apikey=K HTTP/1.1"))
    (key,) = found.clients.unnamed.values()
    assert (key.first, key.agent) == ("access.log:1", agent)


def test_urls_targets_and_request_lines_are_read(read_source: Any) -> None:
    lines = [
        "# asked last week",
        "https://octopart.com/api/v3/parts/search?q=a+b&apikey=K",
        "  octopart.com/api/v3/parts/search?q=a+b  ",
        "/v3/parts/search?q=a%20b",
        "GET /v3/parts/search?q=a+b HTTP/1.1",
        "GET https://octopart.com/api/v3/parts/search?q=a+b",
        '"http://127.0.0.1:8080/v3/parts/search?q=a+b",',
        "<http://127.0.0.1:8080/v3/parts/search?q=a b>",
        "HTTPS://octopart.com/api/v3/parts/search/?q=a+b",
    ]
    found = read_source("urls.txt", "\r\n".join(lines))
    assert found.targets == ["/parts/search?q=a%20b"] * 8
    assert (found.skipped, found.seconds) == ([], None)


def test_counts_of_uniq_are_used(read_source: Any) -> None:
    found = read_source("urls.txt", "     12 /v3/brands/search?q=x\n      1 /v3/brands/search?q=y\n")
    assert [request.times for request in found.requests] == [12, 1]


def test_utf_16_is_read(read_source: Any) -> None:
    assert read_source("urls.txt", "/v3/brands/search?q=Ω\r\n/v3/brands/x\r\n".encode("utf-16")).targets == [
        "/brands/search?q=%CE%A9",
        "/brands/x",
    ]


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
def test_client_program_is_read_from_json_lines(read_source: Any, more: Any) -> None:
    found = read_source("r.jsonl", json.dumps({"url": TARGET + "&apikey=K", **more}))
    assert [key.agent for key in found.clients.unnamed.values()] == ["kicost/1.1"]


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
