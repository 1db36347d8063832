"""What anybody on the network can send: half bodies, strange encodings, documents that take long. Clients are served
beside it, and memory stays bounded."""

import contextlib
import json
import re
import socket
import struct
import time
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from acceptance import running
from acceptance.conftest import clock
from together.environment import worker_memory

__all__ = ["clock"]  # a fixture

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
    before, statuses = worker_memory(service), []
    with contextlib.ExitStack() as opened:
        for _ in range(CONNECTIONS - 2):
            head = post(GRAPHQL, 1_000_000, f"token: {KEY}")
            connection = opened.enter_context(sent(service, head, b"x" * 990_000))
            connection.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                statuses.append(status(connection))
        assert service.get(TARGET).status == 200
        assert worker_memory(service) - before < 100
    assert 503 in statuses
    assert ask(service, "{ supSellers { name } }").status == 200


def test_body_has_a_bound_and_twenty_seconds(processes: running.Processes, clock: running.Clock) -> None:
    upstream = 'upstream: {graphql_url: "http://127.0.0.1:9/graphql", token_url: "http://127.0.0.1:9/token"}'
    application = f"applications: {{shop: {{client_id: i, client_secret: s, apikeys: [{KEY}]}}}}"
    service = processes.service(f"{upstream}\nstore: 'memory:'\n{application}", clock=clock)
    with sent(service, post(GRAPHQL, 2_000_000, f"token: {KEY}")) as connection:
        assert status(connection) == 413
    with sent(service, post(TOKEN, 20_000, f"Content-Type: {FORM}")) as connection:
        assert status(connection) == 413
    with (
        sent(service, post(GRAPHQL, 100, f"token: {KEY}"), b"{") as by_key,
        sent(service, post(TOKEN, 100, f"Content-Type: {FORM}"), b"a") as for_token,
    ):
        assert service.get("/healthz").status == 200
        clock.turn(19)
        assert service.get("/healthz").status == 200  # which has it look at its clock
        for each in (by_key, for_token):
            each.settimeout(0.2)
            with pytest.raises(TimeoutError):
                each.recv(1)
            each.settimeout(running.SECONDS)
        clock.turn(2)
        assert service.get("/healthz").status == 200
        assert (status(by_key), status(for_token)) == (408, 408)


@pytest.mark.parametrize(
    "kind, expected",
    [
        *((f"{FORM}; charset={name}", 415) for name in ("punycode", "idna", "utf-16", "utf-7", "latin-1")),
        *(
            (kind, 415)
            for kind in ("text/plain", "multipart/form-data; boundary=a", f"{FORM}; charset=utf-8; charset=idna")
        ),
        *((kind, 200) for kind in (FORM, f"{FORM};charset=utf-8", f'{FORM}; charset="UTF-8"')),
    ],
)
def test_form_is_read_in_utf_8_only(service: running.Service, kind: str, expected: int) -> None:
    started = time.monotonic()
    body = urlencode(CREDENTIALS) + "&a=" + "a-" * 2_000
    answer = running.request(service.url, TOKEN, method="POST", body=body, **{"Content-Type": kind})
    assert answer.status == expected
    assert time.monotonic() - started < 5


def is_logged_as_error(service: running.Service) -> bool:
    return "[error" in service.log or "xception" in service.log


@pytest.mark.parametrize("fields", [[], [f"token: {KEY}"]])
def test_connection_that_is_reset_in_a_body_is_no_error(service: running.Service, fields: list[str]) -> None:
    for path in (GRAPHQL, V4, TOKEN, "/v3/parts/match"):
        for field in ("Content-Encoding: gzip", f"Content-Type: {FORM}"):
            with sent(service, post(path, 100, *fields, field), b"\x1f\x8b") as connection:
                time.sleep(0.02)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert service.get("/healthz").status == 200
    assert not is_logged_as_error(service)


def test_host_that_is_none_gets_no_status(service: running.Service) -> None:
    for host in ("[", "[::1", "a:b:c", "\xff"):
        with socket.create_connection(("127.0.0.1", int(service.operators.rpartition(":")[2]))) as connection:
            connection.sendall(f"GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1"))
            assert 400 <= status(connection) < 500
    assert not is_logged_as_error(service)


def test_long_documents_are_not_remembered(service: running.Service) -> None:
    def long(number: int) -> str:
        fields = " ".join(f"an_alias_of_a_field__{number}_{field}: name" for field in range(620))
        return f"{{ supParts(ids: []) {{ {fields} }} }}"

    for number in range(15):
        if number == 3:
            before = worker_memory(service)
        assert ask(service, long(number)).status == 200
    assert worker_memory(service) - before < 40  # remembered they take 5 MB each
