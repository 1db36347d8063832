"""Listening sockets: own ones for each worker, and those of a service manager."""

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from proxy import errors
from proxy.web import ports

FIRST = 210  # a descriptor that the test process does not use

Take = Callable[..., ports.Sockets]


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Iterator[Take]:
    """Takes sockets as if a manager had passed them."""
    monkeypatch.setattr(ports, "FIRST_DESCRIPTOR", FIRST)
    with ExitStack() as stack:

        def taken(*opened: socket.socket) -> ports.Sockets:
            for number, each in enumerate(opened):
                stack.enter_context(each)
                os.dup2(each.fileno(), FIRST + number)
                stack.callback(close, FIRST + number)
            environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(opened))}
            passed = ports.take(environ)
            for each in passed:
                stack.callback(each.detach)
            return passed

        yield taken


def close(descriptor: int) -> None:
    """Close a descriptor that its socket may have closed."""
    with suppress(OSError):
        os.close(descriptor)


def listening(host: str = "127.0.0.1", family: int = socket.AF_INET) -> socket.socket:
    return socket.create_server((host, 0), family=family)


def test_public_port_may_have_a_socket_for_each_address(take: Take) -> None:
    taken = take(listening(), listening("::1", socket.AF_INET6))
    assert [each.fileno() for each in taken] == [FIRST, FIRST + 1]
    assert [each.getsockname()[0] for each in taken] == ["127.0.0.1", "::1"]


def _unix() -> socket.socket:
    opened = socket.socket(socket.AF_UNIX)
    with tempfile.TemporaryDirectory() as folder:
        opened.bind(str(Path(folder, "socket")))
        opened.listen()
    return opened


@pytest.mark.parametrize(
    "open_socket",
    [lambda: socket.socket(type=socket.SOCK_DGRAM), _unix, socket.socket],
    ids=["datagrams", "unix", "not listening"],
)
def test_socket_of_another_kind_is_an_error(take: Take, open_socket: Callable[[], socket.socket]) -> None:
    with pytest.raises(errors.ConfigError, match=r"descriptor 210 is no listening TCP socket: its unit"):
        take(open_socket())


def test_descriptor_that_is_no_socket_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ports, "FIRST_DESCRIPTOR", FIRST)
    with (tmp_path / "file").open("w") as file:
        os.dup2(file.fileno(), FIRST)
    try:
        with pytest.raises(errors.ConfigError, match="file descriptor 210 "):
            ports.take({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})
    finally:
        os.close(FIRST)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_each_worker_has_sockets_of_its_own_on_the_port(host: str) -> None:
    with ExitStack() as stack:
        workers = ports.open_port(host, 0, 3)
        for each in (each for opened in workers for each in opened):
            stack.enter_context(each)
        assert len({opened[0].getsockname()[1] for opened in workers}) == 1
        assert len({opened[0].fileno() for opened in workers}) == 3
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", workers[0][0].getsockname()[1]))


def test_port_in_use_is_refused_even_if_its_owner_shares_it() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(errors.ConfigError, match=f"127.0.0.1:{port}: Address"):
            ports.open_port("127.0.0.1", port, 2)


def test_unknown_host_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    words = r"cannot listen on no\.such\.host:8080: Name or service not known"
    with pytest.raises(errors.ConfigError, match=words):
        ports.open_port("no.such.host", 8080, 2)


def test_sockets_are_not_inherited_by_children_nor_are_their_variables(take: Take) -> None:
    (opened,) = take(listening())
    assert not os.get_inheritable(opened.fileno())
    environ = {"LISTEN_PID": "1", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "http:admin", "LISTEN_PIDFDID": "7", "HOME": "/"}
    assert ports.take(environ) == ()  # those of another process
    assert environ == {"HOME": "/"}


@pytest.mark.parametrize("abstract", [False, True])
def test_reports_are_one_datagram_each_and_wait_for_no_manager_that_hangs(abstract: bool, tmp_path: Path) -> None:
    address = f"@v3bridge-{tmp_path.name}-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address.replace("@", "\0"))
        waiting = 0
        while ports.notify(address, "READY=1", "STATUS=serving"):  # until the manager's queue is full
            waiting += 1
        assert [manager.recv(1000) for _ in range(waiting)] == [b"READY=1\nSTATUS=serving"] * waiting
        assert ports.notify(address, "STOPPING=1")  # it responds again


@pytest.mark.parametrize("address, is_taken", [("", True), ("vsock:2:1", True), ("/no/such/manager", False)])
def test_without_a_manager_nothing_is_sent(address: str, is_taken: bool) -> None:
    assert ports.notify(address, "READY=1") is is_taken
