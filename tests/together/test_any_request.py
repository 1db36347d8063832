"""Property test: whatever clients send, to any public path, the service answers, and with a 5xx only where its upstream
made one; nothing is logged as an error, and memory stays bounded. A v3 request gets a v3 response, and makes no
operation that the upstream refuses.

REQUESTS in the environment is the number of requests, SEED what they are drawn by. A failure shows the request.
"""

import concurrent.futures
import contextlib
import itertools
import json
import os
import re
import socket
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any
from urllib.parse import quote, quote_from_bytes

from acceptance import running
from together.environment import worker_memory

REQUESTS = int(os.environ.get("REQUESTS", "2000"))
SEED = os.environ.get("SEED") or str(Random().getrandbits(32))
MEGABYTES, CLIENTS = 40, 4
KEY = "KEY-1"
# Of requests that the upstream refuses, of whose response it says so.
REFUSED = {"QueryRefused", "OversizedOperation"}

LISTS = [f"{kind}/{path}" for kind in ("brands", "sellers", "categories") for path in ("search", "get_multi", "4215")]
OF_V3 = [
    *(f"/v3/{path}" for path in ("parts/get_multi", "parts/76a8b0a8e4d5d5a2", "parts/", *LISTS)),
    *("/v3/parts/match", "/v3/parts/search") * 5,
]
PATHS = [
    *OF_V3,
    *("/api/v4/rest/parts/match", "/graphql", "/api/v4/endpoint") * 5,
    *("/api/v3/parts/match", "/connect/token", "/healthz", "/readyz", "/v2/parts/match", "/", "//", "/%2e%2e/v3"),
]
DIALECTS = {"/graphql": 0, "/api/v4/endpoint": 1}
NUMBERS = ("SN74S74N", "ATMEGA328P-PU", "1N4148", "NE555P", "67K1122", "atmega*", "*", "SN74S74*", "none", "")
VALUES: tuple[Any, ...] = (
    *NUMBERS,
    "é\0\ud7ff",
    "x" * 3_000,
    None,
    True,
    0,
    1,
    -1,
    20,
    101,
    10**30,
    0.5,
    1e308,
    [],
    {},
)
FIELDS = ("mpn", "brand.name", "offers.seller.name", "specs.resistance.value", "specs.*.value", "*", "a..b", ".")
ENDS = (":[1 TO *]", ":(a AND b)", ":a*", ":(", ':"x', "~", " asc", " desc", " up")  # of filter queries and sort orders
PARAMETERS = (
    "q", "start", "limit", "sortby", "queries", "exact_only", "callback", "pretty_print", "suppress_status_codes", "[",
    "include[]", "show[]", "hide[]", "uid[]", "uid[0]", "slice[offers]", "slice[specs]", "filter[queries][]", "", "][",
    "filter[fields][brand.name][]", "filter[fields][offers.prices][]", "facet[fields][brand.name][include]", "userkey",
    "facet[fields][brand.name][limit]", "facet[queries][]", "stats[offers.prices][include]", "stats[x][include]",
    "spec_drilldown[include]", "spec_drilldown[x]", "country", "currency", "token", "apikey", "query", "variables",
)  # fmt: skip
DOCUMENTS = (
    (
        """query A($q: String! = "1N4148", $n: Int, $yes: Boolean = true) { supSearchMpn(q: $q, limit: $n) { hits
        results { akaMpn part { ...P sellers(includeBrokers: false) { company { name } offers { sku } } } } } }
        fragment P on SupPart { mpn name @include(if: $yes) specs { attribute { shortname } value } __typename }""",
        """query A($q: [SupPartMatchQuery!]!) { a: supMultiMatch(queries: $q, options: {requireStockAvailable: false}) {
        reference hits error parts { mpn octopartUrl similarParts { name } } } supParts(ids: ["1", ""]) { mpn } }""",
        """query B { supSearch(q: "diode", filters: {a: ["1"]}, limit: 2, sort: "mpn", sortDir: asc) { specAggs {
        buckets { count } } } supSellers { id name } supAttributes { name } __typename }""",
        """{ __type(name: "SupPart") { fields { name type { name ofType { name } } } } }""",
        """mutation { desCreate(input: {name: "a"}) { id } }""",
        """subscription { desOnChange { id } }""",
    ),
    (
        """query A($q: [PartMatchQuery!]!) { multi_match(queries: $q) { hits parts { mpn specs { value } } } }""",
        """query A($q: String) { search_mpn(q: "1N4148", limit: 1) { results { part { ...P } } } } fragment P on Part {
        mpn best_datasheet { url } sellers(include_brokers: true) { offers { prices { price } } } }""",
        """{ categories { id name } manufacturers(ids: ["1"]) { name } __schema { types { name } } }""",
    ),
)
TOKEN = re.compile(r'"[^"]*"|\w+|\.\.\.|\S')
LONG_KID = urlsafe_b64encode(b'{"alg": "HS256", "kid": "%b"}' % (b"9" * 401)).decode().rstrip("=")
HEADERS = (
    "Accept: application/json", "Accept: application/graphql-response+json", "Accept-Encoding: gzip", "Cookie: a=\xff",
    "Accept-Encoding: gzip;q=0", "Accept-Encoding: \xff", "Cache-Control: no-cache", "X-Request-Id: an-id", "Host: [",
    "X-Request-Id: \xff", "User-Agent: \xff\xfe", "User-Agent: a", "X-Forwarded-For: 1.2.3.4, \xff", "Expect: x",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "Content-Encoding: gzip", "Range: a",
    "Content-Encoding: deflate", "Content-Encoding: none", "Expect: 100-continue", "If-None-Match: *", "Upgrade: h2c",
    "Content-Type: application/x-www-form-urlencoded", "Content-Type: multipart/form-data; boundary=", "token: \xff",
    "Content-Type: application/json; charset=utf-16", "Content-Type: \xff", "X-Nexar-Authorization: Bearer a.b.c",
    "Authorization: Basic YTpLRVktMQ==", "Authorization: Basic \xff", "Authorization: Bearer a.b",
    "X: " + "x" * 9_000, "Authorization: Bearer eyJhbGciOiJIUzI1NiIsImtpZCI6IjAifQ.e30.AA",
    f"Authorization: Bearer {LONG_KID}.e30.AA", "Connection: keep-alive",
)  # fmt: skip
FORMS = (
    b"grant_type=client_credentials&client_id=any&client_secret=KEY-1", b"grant_type=password", b"a=\xff", b"&" * 50,
    b"grant_type=client_credentials&client_secret=%ff", b"grant_type=client_credentials&client_secret=" + b"9" * 20_000,
)  # fmt: skip


class Requests:
    """Requests of clients, most of them nearly right."""

    def __init__(self, seed: str, paths: Sequence[str]) -> None:
        self._paths = paths
        self._random = Random(seed)
        self._choice = self._random.choice

    def __iter__(self) -> Iterator[tuple[bytes, bool]]:
        """Yield requests, and whether each is one that a server answers."""
        while True:
            request = self._request()
            yield (self._broken(request), False) if self._chance(0.1) else (request, True)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _request(self) -> bytes:
        path, method, body = (
            self._choice(self._paths),
            self._choice((*["GET"] * 25, "POST", "HEAD", "OPTIONS", "PUT")),
            b"",
        )
        parameters = [f"apikey={KEY if self._chance(0.9) else self._parameter()}"]
        parameters += [f"{self._choice(PARAMETERS)}={self._parameter()}" for _ in range(self._choice((0, 0, 1, 2, 3)))]
        headers = [self._choice(HEADERS) for _ in range(self._choice((0, 0, 1, 2)))]
        if path in DIALECTS:
            sent = self._document(DOCUMENTS[DIALECTS[path]])
            if method == "GET" and self._chance(0.3):
                parameters += [
                    f"{name}={quote(value if isinstance(value, str) else json.dumps(value))}"
                    for name, value in sent.items()
                ]
            else:
                method, body = "POST", json.dumps(sent).encode()
        elif path == "/connect/token":
            method, body = "POST", self._choice(FORMS)
            headers += ["Content-Type: application/x-www-form-urlencoded"] if self._chance(0.7) else []
        elif "match" in path and self._chance(0.8):
            parameters.append(f"queries={quote(json.dumps(self._queries()))}")
        fields = ["Host: a", "Connection: close", *headers, *([f"Content-Length: {len(body)}"] if body else [])]
        head = "\r\n".join([f"{method} {path}?{'&'.join(parameters)} HTTP/1.1", *fields, "", ""])
        return head.encode("latin-1") + body

    def _parameter(self) -> str:
        made: Callable[[], str] = self._choice((
            lambda: quote(str(self._choice(VALUES))),
            lambda: quote(json.dumps(self._any())),
            lambda: quote(self._choice(FIELDS) + self._choice(ENDS)),
            lambda: quote_from_bytes(self._random.randbytes(self._random.randrange(12))),
            lambda: self._choice((*FIELDS, "[0:2]", "1", "true", "%" * 20, "9" * 5_000)),
        ))  # fmt: skip
        return made()

    def _any(self, depth: int = 0) -> Any:
        if depth > 4 or self._chance(0.5):
            return self._choice(VALUES)
        if self._chance(0.05):
            return json.loads("[" * 400 + "]" * 400)
        if self._chance(0.5):
            return [self._any(depth + 1) for _ in range(self._random.randrange(4))]
        return {str(self._choice(VALUES)): self._any(depth + 1) for _ in range(self._random.randrange(4))}

    def _queries(self) -> Any:
        keys = ("mpn", "mpn", "q", "sku", "brand", "seller", "mpn_or_sku", "start", "limit", "reference", "other")

        def query() -> Any:
            return {"mpn": self._choice(NUMBERS)} | {
                self._choice(keys): self._choice(VALUES) for _ in range(self._choice((0, 0, 1, 3)))
            }

        return [query() if self._chance(0.95) else self._any() for _ in range(self._choice((1, 1, 2, 3, 25)))]

    def _document(self, documents: Sequence[str]) -> dict[str, Any]:
        words = TOKEN.findall(self._choice(documents))
        for _ in range(self._choice((0, 0, 0, 1, 2, 30))):
            place, other = self._random.randrange(len(words)), self._choice(words)
            new = ((), (other,), (words[place], other), (words[place],) * 40, ("1e999",), ("$q",))
            words[place : place + 1] = self._choice(new)
            words = words or ["{"]
        query = {"mpn": self._choice(NUMBERS), "limit": 2} | ({"reference": self._any()} if self._chance(0.2) else {})
        variables = {"q": self._choice(([query] * self._choice((1, 2, 1_000)), "1N4148", query)), "n": 2}
        names = (None, None, "A", "B", "")
        sent = {"query": " ".join(words), "variables": variables, "operationName": self._choice(names)}
        return {name: value if self._chance(0.97) else self._any() for name, value in sent.items()}

    def _broken(self, request: bytes) -> bytes:
        """Cut it, or change some of its bytes."""
        if self._chance(0.2):
            return request[: self._random.randrange(len(request))]
        changed = bytearray(request)
        for _ in range(self._random.choice((1, 2, 20))):
            changed[self._random.randrange(len(changed))] = self._random.randrange(256)
        return bytes(changed)


def answer(service: running.Service, request: bytes, is_whole: bool) -> tuple[int, bytes]:
    """Return the status and the body of the response; 0 if a request that is not whole got none soon."""
    received, seconds = b"", 60.0 if is_whole else 0.2
    # A refused body is not read to its end; the rest of a request that was cut is awaited.
    ends = (ConnectionError,) if is_whole else (ConnectionError, TimeoutError)
    address = "127.0.0.1", int(service.url.rpartition(":")[2])
    with contextlib.suppress(*ends), socket.create_connection(address, seconds) as connection:
        connection.sendall(request)
        while piece := connection.recv(65_536):
            received += piece
    received = received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    found = re.match(rb"HTTP/1\.[01] (\d{3}) ", received)
    assert found or not is_whole, request
    return int(found[1]) if found else 0, received.partition(b"\r\n\r\n")[2]


def is_v3(body: bytes) -> bool:
    """Return whether a body is a v3 error, or one of the objects and maps of v3; with a result for each query."""
    content = json.loads(body)
    if content.get("__class__") == "PartsMatchResponse":
        return len(content["results"]) == len(content["request"]["queries"])
    if "message" in content:
        return set(content) == {"__class__", "message"} and not content["message"].startswith("Internal error")
    return "__class__" in content or all(isinstance(each, dict) for each in content.values())


def test_any_request_is_answered(module_processes: running.Processes) -> None:
    sandbox = module_processes.sandbox("--part-limit", "100000000")
    application = f"applications: {{shop: {{{sandbox.credentials}, apikeys: [{KEY}]}}}}"
    text = f"{sandbox.upstream}\nlisten: {{failed_auth_per_minute: 0}}\nlog: {{format: json}}\n{application}"
    service = module_processes.service(text)
    workers, statuses = service.workers, dict[int, int]()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:

        def send(requests: Iterator[tuple[bytes, bool]], count: int) -> None:
            some = list(itertools.islice(requests, count))
            answers = clients.map(lambda each: answer(service, *each), some)
            for (request, is_whole), (status, body) in zip(some, answers, strict=True):
                assert status != 500, (SEED, request)
                if is_whole and b" /v3/" in request[:9] and body.startswith(b"{"):
                    assert is_v3(body), (SEED, request)
                statuses[status] = statuses.get(status, 0) + 1

        send(iter(Requests(SEED, OF_V3)), REQUESTS // 2)
        metrics = running.request(service.operators, "/metrics").text
        assert set(re.findall(r'v3bridge_upstream_requests_total\{.*outcome="(\w+)"', metrics)) == {"ok"}, SEED
        every = iter(Requests(SEED, PATHS))
        send(every, REQUESTS // 10)  # after which each kind has come
        before = worker_memory(service)
        send(every, REQUESTS // 2)
    assert worker_memory(service) - before < MEGABYTES, (SEED, before)
    assert service.workers == workers
    lines = [json.loads(line) for line in service.log.splitlines()]
    assert [line for line in lines if line["level"] in ("error", "critical")] == [], SEED
    assert [line for line in lines if line["event"] == "partial data received"] == [], SEED
    failed = [line for line in lines if line["event"] == "request completed" and line["status"] >= 500]
    assert {line["error"] for line in failed} <= REFUSED, (SEED, failed[:3])
    assert {200, 400, 403, 404, 405} <= statuses.keys(), statuses
