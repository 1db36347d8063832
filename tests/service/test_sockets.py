"""Listening sockets: own ones for each worker, and those of a service manager."""

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
import pytest

from proxy import config, errors, sockets
from proxy.config import loader
from proxy.kit import shipped

FIRST = 210  # a descriptor that the test process does not use
SETTINGS = loader.load(shipped.path("config.yaml"), {})

Take = Callable[..., sockets.PassedSockets]


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Iterator[Take]:
    """Takes sockets as if a manager had passed them."""
    monkeypatch.setattr(sockets, "FIRST_DESCRIPTOR", FIRST)
    with ExitStack() as stack:

        def taken(*opened: socket.socket, names: str | None = None) -> sockets.PassedSockets:
            for number, each in enumerate(opened):
                stack.enter_context(each)
                os.dup2(each.fileno(), FIRST + number)
                stack.callback(close, FIRST + number)
            environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(opened))}
            passed = sockets.take(environ if names is None else environ | {"LISTEN_FDNAMES": names})
            for each in (*passed.http, *passed.admin):
                stack.callback(each.detach)
            return passed

        yield taken


def close(descriptor: int) -> None:
    """Close a descriptor that its socket may have closed."""
    with suppress(OSError):
        os.close(descriptor)


def numbers(passed: sockets.PassedSockets) -> tuple[list[int], list[int]]:
    return [each.fileno() for each in passed.http], [each.fileno() for each in passed.admin]


def listening(host: str = "127.0.0.1", family: int = socket.AF_INET) -> socket.socket:
    return socket.create_server((host, 0), family=family)


@pytest.mark.parametrize("names", [None, "http", "v3bridge.socket", "unknown"])
def test_only_socket_is_that_of_the_public_port_whatever_its_name(take: Take, names: str | None) -> None:
    assert numbers(take(listening(), names=names)) == ([FIRST], [])


def test_sockets_are_told_apart_by_their_names(take: Take) -> None:
    assert numbers(take(listening(), listening(), names="admin:http")) == ([FIRST + 1], [FIRST])


def test_public_port_may_have_a_socket_for_each_address(take: Take) -> None:
    taken = take(listening(), listening("::1", socket.AF_INET6), names="http:http")
    assert numbers(taken) == ([FIRST, FIRST + 1], [])
    listen = sockets.apply(SETTINGS, taken).listen
    assert (listen.host, listen.port) == sockets.address(taken.http[0])


def test_socket_of_the_admin_interface_alone_leaves_the_public_port(take: Take) -> None:
    taken = take(listening(), names="admin")
    assert numbers(taken) == ([], [FIRST])
    applied = sockets.apply(SETTINGS, taken)
    assert applied.listen == SETTINGS.listen
    assert isinstance(applied.admin, config.AdminSettings)
    assert (applied.admin.host, applied.admin.port) == sockets.address(taken.admin[0])


def test_unnamed_or_unknown_sockets_are_an_error_where_there_are_several(take: Take) -> None:
    with pytest.raises(errors.ConfigError, match=r"2 sockets are named 'http:metrics'; name each http or admin"):
        take(listening(), listening(), names="http:metrics")


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
    with pytest.raises(errors.ConfigError, match=r"descriptor 210 \(http\) is no listening TCP socket: its unit"):
        take(open_socket(), names="http")


def test_descriptor_that_is_no_socket_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sockets, "FIRST_DESCRIPTOR", FIRST)
    with (tmp_path / "file").open("w") as file:
        os.dup2(file.fileno(), FIRST)
    try:
        with pytest.raises(errors.ConfigError, match="file descriptor 210 "):
            sockets.take({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})
    finally:
        os.close(FIRST)


def test_socket_of_an_admin_interface_that_is_off_is_an_error(take: Take) -> None:
    settings = msgspec.structs.replace(SETTINGS, admin=False)
    with pytest.raises(errors.ConfigError, match="admin: false, but the service manager passes a socket named admin"):
        sockets.apply(settings, take(listening(), names="admin"))


def test_socket_is_shared_by_all_workers_unless_there_is_one_for_each(take: Take) -> None:
    taken = take(listening(), listening("::1", socket.AF_INET6), names="http:http").http
    assert sockets.give_out(taken, 2) == [taken, taken]
    (first,), (second,) = sockets.open_port("127.0.0.1", 0, 2)
    with first, second:
        assert sockets.give_out((first, second), 2) == [(first,), (second,)]
        assert sockets.give_out((first, second), 3) == [(first, second)] * 3


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_each_worker_has_sockets_of_its_own_on_the_port(host: str) -> None:
    with ExitStack() as stack:
        workers = sockets.open_port(host, 0, 3)
        for each in (each for opened in workers for each in opened):
            stack.enter_context(each)
        assert len({sockets.address(opened[0])[1] for opened in workers}) == 1
        assert len({opened[0].fileno() for opened in workers}) == 3
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", sockets.address(workers[0][0])[1]))


def test_port_in_use_is_refused_even_if_its_owner_shares_it() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(errors.ConfigError, match=f"127.0.0.1:{port}: Address"):
            sockets.open_port("127.0.0.1", port, 2)


def test_unknown_host_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    words = r"cannot listen on no\.such\.host:8080: Name or service not known"
    with pytest.raises(errors.ConfigError, match=words):
        sockets.open_port("no.such.host", 8080, 2)


def test_sockets_are_not_inherited_by_children_nor_are_their_variables(take: Take) -> None:
    (opened,) = take(listening()).http
    assert not os.get_inheritable(opened.fileno())
    environ = {"LISTEN_PID": "1", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "http:admin", "LISTEN_PIDFDID": "7", "HOME": "/"}
    assert sockets.take(environ) == ((), ())  # those of another process
    assert environ == {"HOME": "/"}


@pytest.mark.parametrize("count, names", [("2", "http"), ("2", ""), ("3", "http:admin")])
def test_contradicting_variables_are_an_error(count: str, names: str) -> None:
    with pytest.raises(errors.ConfigError, match=f"{count} sockets are named"):
        sockets.take({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": count, "LISTEN_FDNAMES": names})


@pytest.mark.parametrize("abstract", [False, True])
def test_reports_are_one_datagram_each_and_wait_for_no_manager_that_hangs(abstract: bool, tmp_path: Path) -> None:
    address = f"@v3bridge-{tmp_path.name}-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address.replace("@", "\0"))
        waiting = 0
        while sockets.notify(address, "READY=1", "STATUS=serving"):  # until the manager's queue is full
            waiting += 1
        assert [manager.recv(1000) for _ in range(waiting)] == [b"READY=1\nSTATUS=serving"] * waiting
        assert sockets.notify(address, "STOPPING=1")  # it responds again


@pytest.mark.parametrize("address, is_taken", [("", True), ("vsock:2:1", True), ("/no/such/manager", False)])
def test_without_a_manager_nothing_is_sent(address: str, is_taken: bool) -> None:
    assert sockets.notify(address, "READY=1") is is_taken
