"""Environment variables and datagrams of sd_listen_fds(3) and sd_notify(3)."""

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import cases

from proxy.kit import service_manager

PID = str(os.getpid())
FIRST = 200  # a descriptor that the test process does not use


@pytest.fixture
def descriptors(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Two sockets where the protocol expects them; its real place, from 3 on, is in use in a test process."""
    monkeypatch.setattr(service_manager, "FIRST_DESCRIPTOR", FIRST)
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        passed = [os.dup2(each.fileno(), FIRST + number) for number, each in enumerate((first, second))]
        yield passed
        for each in passed:
            os.close(each)


def test_sockets_are_taken_with_their_names_and_not_inherited_by_children(descriptors: list[int]) -> None:
    environ = {"LISTEN_PID": PID, "LISTEN_FDS": "2", "LISTEN_FDNAMES": "http:admin", "LISTEN_PIDFDID": "7", "HOME": "/"}
    assert all(map(os.get_inheritable, descriptors))
    assert service_manager.take_sockets(environ) == [("http", FIRST), ("admin", FIRST + 1)]
    assert environ == {"HOME": "/"}
    assert not any(map(os.get_inheritable, descriptors))


def test_sockets_without_names_are_unknown(descriptors: list[int]) -> None:
    taken = service_manager.take_sockets({"LISTEN_PID": PID, "LISTEN_FDS": "2"})
    assert taken == [("unknown", each) for each in descriptors]


@pytest.mark.parametrize("environ", [{}, {"LISTEN_PID": "1", "LISTEN_FDS": "2"}, {"LISTEN_PID": PID}])
def test_sockets_of_another_process_are_ignored(environ: dict[str, str], descriptors: list[int]) -> None:
    assert service_manager.take_sockets(environ) == []
    assert environ == {}
    assert all(map(os.get_inheritable, descriptors))


@cases.parametrize("variables, message")
def test_contradicting_variables_are_an_error(variables: dict[str, str], message: str, descriptors: list[int]) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        service_manager.take_sockets({"LISTEN_PID": PID, **variables})


@pytest.mark.parametrize("abstract", [False, True])
def test_notifications_are_one_datagram_each(abstract: bool, tmp_path: Path) -> None:
    address = f"@v3bridge-{tmp_path.name}-{PID}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address.replace("@", "\0"))
        environ = {"NOTIFY_SOCKET": address}
        program = service_manager.ServiceManager.take(environ)
        assert environ == {}
        assert program.ready("serving")
        assert program.reloading()
        assert program.stopping("finishing")
        received = [manager.recv(1000).decode().splitlines() for _ in range(3)]
    assert [each[0] for each in received] == ["READY=1", "RELOADING=1", "STOPPING=1"]
    assert received[0][1:] == ["STATUS=serving"]
    assert re.fullmatch(r"MONOTONIC_USEC=\d+", received[1][1])


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "vsock:2:1"}])
def test_without_a_manager_nothing_is_sent(environ: dict[str, str]) -> None:
    program = service_manager.ServiceManager.take(environ)
    assert program.ready("serving")


def test_manager_that_is_gone_fails_nothing(tmp_path: Path) -> None:
    assert not service_manager.ServiceManager(str(tmp_path / "gone")).ready("serving")


def test_manager_that_hangs_delays_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever sets a time limit is ready to wait for it; without one, and blocking, the test would not end.
    monkeypatch.setattr(socket.socket, "settimeout", lambda *_: pytest.fail("the socket waits"))
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        program, waiting = service_manager.ServiceManager(address), 0
        while program.ready("serving"):  # until the manager's queue is full
            waiting += 1
        assert [manager.recv(1000) for _ in range(waiting)] == [b"READY=1\nSTATUS=serving"] * waiting
        assert program.ready("serving")  # it responds again
        assert manager.recv(1000) == b"READY=1\nSTATUS=serving"
