"""Sockets of a service manager: which are accepted, and the start errors of all others."""

import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from proxy import config, errors
from proxy.config import loader
from proxy.kit import service_manager, shipped
from proxy.workers import inherited

FIRST = 210  # a descriptor that the test process does not use
SETTINGS = loader.load(shipped.path("config.yaml"), {})

Take = Callable[..., inherited.InheritedSockets]


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Iterator[Take]:
    """Takes sockets as if a manager had passed them."""
    monkeypatch.setattr(service_manager, "FIRST_DESCRIPTOR", FIRST)
    with ExitStack() as stack:

        def taken(*sockets: socket.socket, names: str | None = None) -> inherited.InheritedSockets:
            for number, each in enumerate(sockets):
                stack.enter_context(each)
                stack.callback(os.close, os.dup2(each.fileno(), FIRST + number))
            environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(sockets))}
            return inherited.take(environ if names is None else environ | {"LISTEN_FDNAMES": names})

        yield taken


def listening(host: str = "127.0.0.1", family: int = socket.AF_INET) -> socket.socket:
    return socket.create_server((host, 0), family=family)


@pytest.mark.parametrize("names", [None, "http", "v3bridge.socket", "unknown"])
def test_only_socket_is_that_of_the_public_port_whatever_its_name(take: Take, names: str | None) -> None:
    assert take(listening(), names=names) == ((FIRST,), ())


def test_sockets_are_told_apart_by_their_names(take: Take) -> None:
    assert take(listening(), listening(), names="admin:http") == ((FIRST + 1,), (FIRST,))


def test_public_port_may_have_a_socket_for_each_address(take: Take) -> None:
    taken = take(listening(), listening("::1", socket.AF_INET6), names="http:http")
    assert (taken.http, taken.admin) == ((FIRST, FIRST + 1), ())
    listen = inherited.apply(SETTINGS, taken).listen
    assert (listen.host, listen.port) == inherited.address(FIRST)


def test_socket_of_the_admin_interface_alone_leaves_the_public_port(take: Take) -> None:
    taken = take(listening(), names="admin")
    assert (taken.http, taken.admin) == ((), (FIRST,))
    applied = inherited.apply(SETTINGS, taken)
    assert applied.listen == SETTINGS.listen
    assert isinstance(applied.admin, config.AdminSettings)
    assert (applied.admin.host, applied.admin.port) == inherited.address(FIRST)


def test_unnamed_or_unknown_sockets_are_an_error_where_there_are_several(take: Take) -> None:
    with pytest.raises(errors.ConfigError, match=r"socket 211 is named 'metrics'; v3bridge knows http and admin: set"):
        take(listening(), listening(), names="http:metrics")


def _unix() -> socket.socket:
    opened = socket.socket(socket.AF_UNIX)
    with tempfile.TemporaryDirectory() as folder:
        opened.bind(str(Path(folder, "socket")))
        opened.listen()
    return opened


@pytest.mark.parametrize(
    "open_socket, message",
    [
        (lambda: socket.socket(type=socket.SOCK_DGRAM), "socket 210 (http) is no TCP socket; use ListenStream="),
        (_unix, "socket 210 (http) is no TCP socket; use ListenStream="),
        (socket.socket, "socket 210 (http) does not listen; its socket unit needs Accept=no"),
    ],
    ids=["datagrams", "unix", "not listening"],
)
def test_socket_of_another_kind_is_an_error(take: Take, open_socket: Callable[[], socket.socket], message: str) -> None:
    with pytest.raises(errors.ConfigError, match=re.escape(message)):
        take(open_socket(), names="http")


def test_descriptor_that_is_no_socket_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(service_manager, "FIRST_DESCRIPTOR", FIRST)
    with (tmp_path / "file").open("w") as file:
        os.dup2(file.fileno(), FIRST)
    try:
        with pytest.raises(errors.ConfigError, match="file descriptor 210 is not a socket"):
            inherited.take({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})
    finally:
        os.close(FIRST)


def test_options_of_the_command_line_must_not_contradict_the_socket(take: Take) -> None:
    taken = take(listening())
    host, port = inherited.address(FIRST)
    for given_host in ("127.0.0.1", "localhost", None):
        assert inherited.apply(SETTINGS, taken, host=given_host, port=port).listen.port == port
    for given in ({"port": port + 1}, {"port": 0}, {"host": "0.0.0.0"}, {"host": "no.such.host.invalid"}):
        with pytest.raises(errors.ConfigError, match=f"the socket of the service manager, {host}:{port}: leave it out"):
            inherited.apply(SETTINGS, taken, **given)


def test_socket_of_an_admin_interface_that_is_off_is_an_error(take: Take) -> None:
    settings = msgspec.structs.replace(SETTINGS, admin=False)
    with pytest.raises(errors.ConfigError, match="admin: false, but the service manager passes a socket named admin"):
        inherited.apply(settings, take(listening(), names="admin"))
