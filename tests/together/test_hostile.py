"""What anybody on the network can send: half bodies, strange encodings, documents that take long. Clients are served
beside it, and memory stays bounded."""

import contextlib
import json
import re
import socket
import struct
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from acceptance import running

KEY = "KEY-1"
CONNECTIONS = 40  # that the service admits
TARGET = f"/v3/parts/match?apikey={KEY}&queries=[%7B%22mpn%22:%22SN74S74N%22%7D]"
GRAPHQL, V4, TOKEN = "/graphql", "/api/v4/endpoint", "/connect/token"
FORM = "application/x-www-form-urlencoded"
CREDENTIALS = {"grant_type": "client_credentials", "client_id": "any", "client_secret": KEY}


@pytest.fixture(scope="module")
def service(module_processes: running.Processes) -> running.Service:
    sandbox = module_processes.sandbox()
    application = f"applications: {{shop: {{{sandbox.credentials}, apikeys: [{KEY}]}}}}"
    return module_processes.service(
        f"{sandbox.upstream}\nlisten: {{connections: {CONNECTIONS}, failed_auth_per_minute: 0}}\n{application}"
    )


@contextlib.contextmanager
def sent(service: running.Service, head: str, body: bytes = b"") -> Iterator[socket.socket]:
    """A connection on which a head and the beginning of its body have been sent."""
    with socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2])), timeout=60) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
        yield connection


def post(path: str, length: int, *fields: str) -> str:
    return "\n".join([f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {length}", *fields])


def status(connection: socket.socket) -> int:
    """Return the status of a response; 0 if the connection was closed without one."""
    found = re.match(rb"HTTP/1.1 (\d+) ", connection.recv(4_096))
    return int(found[1]) if found else 0


def memory(service: running.Service) -> int:
    """Return the MB of memory that the worker has."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{service.workers[0]}/status").read_text())
    assert found is not None
    return int(found[1]) // 1_024


def ask(service: running.Service, document: str, path: str = GRAPHQL) -> running.Response:
    return running.request(service.url, path, method="POST", body=json.dumps({"query": document}), token=KEY)


@pytest.mark.parametrize("path", [GRAPHQL, V4, TOKEN])
def test_half_closed_bodies_lock_nobody_out(service: running.Service, path: str) -> None:
    fields = (f"token: {KEY}", f"Content-Type: {FORM}")
    with contextlib.ExitStack() as opened:
        for _ in range(2 * CONNECTIONS):
            connection = opened.enter_context(sent(service, post(path, 100, *fields), b"x"))
            connection.shutdown(socket.SHUT_WR)
        assert service.get(TARGET).status == 200
        with contextlib.suppress(ConnectionError):
            connection.recv(4_096)  # the last one has been closed
    assert running.until(lambda: service.get(TARGET).status == 200)


def test_key_is_looked_up_before_a_body_is_read(service: running.Service) -> None:
    basic = "Authorization: Basic YTp3cm9uZw=="
    for head in (
        post(GRAPHQL, 900_000),
        post(V4, 900_000, "token: wrong"),
        post(f"{GRAPHQL}?token=wrong", 900_000),
        post(TOKEN, 900, basic, f"Content-Type: {FORM}"),
    ):
        with sent(service, head) as connection:
            assert status(connection) in (400, 401)


def test_unread_bodies_have_one_bound(service: running.Service) -> None:
    before, statuses = memory(service), []
    with contextlib.ExitStack() as opened:
        for _ in range(CONNECTIONS - 2):
            head = post(GRAPHQL, 1_000_000, f"token: {KEY}")
            connection = opened.enter_context(sent(service, head, b"x" * 990_000))
            connection.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                statuses.append(status(connection))
        assert service.get(TARGET).status == 200
        assert memory(service) - before < 100
    assert 503 in statuses
    assert ask(service, "{ supSellers { name } }").status == 200


def test_body_has_a_bound_and_twenty_seconds(service: running.Service) -> None:
    with sent(service, post(GRAPHQL, 2_000_000, f"token: {KEY}")) as connection:
        assert status(connection) == 413
    with sent(service, post(TOKEN, 20_000, f"Content-Type: {FORM}")) as connection:
        assert status(connection) == 413
    started = time.monotonic()
    with (
        sent(service, post(GRAPHQL, 100, f"token: {KEY}"), b"{") as by_key,
        sent(service, post(TOKEN, 100, f"Content-Type: {FORM}"), b"a") as for_token,
    ):
        assert (status(by_key), status(for_token)) == (408, 408)
    assert 19 < time.monotonic() - started < 40


@pytest.mark.parametrize("charset", ["punycode", "idna", "utf-16", "utf-7", "latin-1", "unicode_escape"])
def test_form_in_another_encoding_is_refused_undecoded(service: running.Service, charset: str) -> None:
    started = time.monotonic()
    kind = {"Content-Type": f"{FORM}; charset={charset}"}
    answer = running.request(service.url, TOKEN, method="POST", body="a=" + "a-" * 8_000, **kind)
    assert (answer.status, answer.json["error"]) == (415, "invalid_request")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("parameter", ["", ";charset=utf-8", '; charset="UTF-8"'])
def test_form_in_utf_8_is_read(service: running.Service, parameter: str) -> None:
    kind = {"Content-Type": FORM + parameter}
    answer = running.request(service.url, TOKEN, method="POST", body=urlencode(CREDENTIALS), **kind)
    assert (answer.status, answer.json["token_type"]) == (200, "Bearer")


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data; boundary=a", f"{FORM}; charset=utf-8; charset=idna"]
)
def test_body_that_is_no_form_is_refused(service: running.Service, kind: str) -> None:
    answer = running.request(service.url, TOKEN, method="POST", body=urlencode(CREDENTIALS), **{"Content-Type": kind})
    assert answer.status == 415


def jwt(**claims: object) -> str:
    head, body = (urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (claims, {"sub": "a"}))
    return f"Authorization: Bearer {head}.{body}.AAAA"


BASIC = "Authorization: Basic YTpLRVktMQ=="  # the key
MULTIPART = 'Content-Type: multipart/form-data; boundary="'
AS_FORM = f"Content-Type: {FORM}"
DOCUMENT = b'{"query": "{ __typename }"}'
DOCUMENT_PATHS = (GRAPHQL, V4)
KIDS: list[object] = ["9" * 400, "9" * 5_000, "-1", 10**400, 1.5, None, []]
MISTAKES: list[tuple[str, list[str], bytes]] = [
    *((path, [f"token: {KEY}", f"Content-Encoding: {name}"], DOCUMENT)
      for path in (*DOCUMENT_PATHS, "/v3/parts/match") for name in ("gzip", "deflate", "br")),
    *((path, ["Content-Encoding: gzip"], DOCUMENT) for path in (*DOCUMENT_PATHS, TOKEN, "/v3/parts/match", "/nothing")),
    *((path, [f"token: {KEY}", field], b"\xff\xfe") for path in DOCUMENT_PATHS for field in (MULTIPART, AS_FORM)),
    *((TOKEN, [field, *more], b"a=\xff&client_secret=%FF")
      for field in (MULTIPART, AS_FORM, "Content-Type: \xff") for more in ([], [BASIC])),
    *((GRAPHQL, [jwt(alg="HS256", kid=kid)], DOCUMENT) for kid in KIDS),
    *((GRAPHQL, [jwt(alg=alg, kid="0")], DOCUMENT) for alg in ("none", "RS256", 5)),
    (f"{GRAPHQL}?token=%ff", [], DOCUMENT),
    ("/v3/parts/match?apikey=%ff", [], b""),
    ("/api/v4/rest/parts/match?token=%ed%a0%80", ["User-Agent: \xff"], b""),
    (TOKEN, ["Authorization: Basic !", AS_FORM], b""),
]  # fmt: skip


def is_logged_as_error(service: running.Service) -> bool:
    return "[error" in service.log or "xception" in service.log


@pytest.fixture
def fresh(module_processes: running.Processes) -> running.Service:
    """A service with an empty log, which throttles nobody."""
    application = f"applications: {{shop: {{client_id: an-id, client_secret: a-secret, apikeys: [{KEY}]}}}}"
    upstream = 'upstream: {graphql_url: "http://127.0.0.1:9/graphql", token_url: "http://127.0.0.1:9/token"}'
    return module_processes.service(
        f"{upstream}\nlisten: {{failed_auth_per_minute: 0}}\nstore: 'memory:'\n{application}"
    )


def test_mistakes_of_clients_are_4xx_without_an_error_in_the_log(fresh: running.Service) -> None:
    for path, fields, body in MISTAKES:
        with sent(fresh, post(path, len(body), *fields), body) as connection:
            assert 400 <= status(connection) < 500, (path, fields)
    for target in ("/v3/parts/match?apikey=%ff", "/v3/brands/%ff?apikey=%ff&userkey=%fe", f"{GRAPHQL}?apikey=%ff"):
        assert 400 <= fresh.get(target, user_agent="\xff").status < 500, target
    assert not is_logged_as_error(fresh)


@pytest.mark.parametrize("fields", [[], [f"token: {KEY}"], [BASIC]])
def test_connection_that_is_reset_in_a_body_is_no_error(fresh: running.Service, fields: list[str]) -> None:
    for path in (*DOCUMENT_PATHS, TOKEN, "/v3/parts/match"):
        for field in ("Content-Encoding: gzip", AS_FORM):
            with sent(fresh, post(path, 100, *fields, field), b"\x1f\x8b") as connection:
                time.sleep(0.05)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert fresh.get("/healthz").status == 200
    assert not is_logged_as_error(fresh)


def test_host_that_is_none_gets_no_status(fresh: running.Service) -> None:
    for host in ("[", "[::1", "a:b:c", "\xff"):
        with socket.create_connection(("127.0.0.1", int(fresh.operators.rpartition(":")[2]))) as connection:
            connection.sendall(f"GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1"))
            assert 400 <= status(connection) < 500
    assert not is_logged_as_error(fresh)


INTROSPECTION = "{ __schema { queryType { name } types { name kind fields { name args { name } type { name } } } } }"


def test_introspection_has_at_most_250_fields(service: running.Service) -> None:
    names = " ".join(f"a{number}: name" for number in range(249))
    spread = " ".join(f"a{number}: name" for number in range(124))
    assert len(ask(service, INTROSPECTION).json["data"]["__schema"]["types"]) > 50
    for document in (
        f"{{ __schema {{ types {{ {names} }} }} }}",
        f'{{ __type(name: "Query") {{ b: name {names} }} }}',
        f"{{ __schema {{ types {{ ...T ...T ...T }} }} }} fragment T on __Type {{ {spread} }}",
    ):
        for path in (GRAPHQL, V4):
            assert ask(service, document, path).status == 400


def test_chained_fragments_are_refused(service: running.Service) -> None:
    chain = " ".join(f"fragment F{number} on Query {{ ...F{number + 1} }}" for number in range(150))
    document = f"{chain} fragment F150 on Query {{ __typename }} query "
    for operation in ("{ ...F0 }", "{ __typename }"):
        for path in (GRAPHQL, V4):
            assert ask(service, document + operation, path).status == 400


def test_long_documents_are_not_remembered(service: running.Service) -> None:
    def long(number: int) -> str:
        fields = " ".join(f"an_alias_of_a_field__{number}_{field}: name" for field in range(620))
        return f"{{ supParts(ids: []) {{ {fields} }} }}"

    for number in range(15):
        if number == 3:
            before = memory(service)
        assert ask(service, long(number)).status == 200
    assert memory(service) - before < 40  # remembered they take 5 MB each
