"""A port that is held for several workers."""

import socket

import pytest

from proxy import errors
from proxy.workers import listening, supervisor


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_a_free_port_is_held_for_workers_and_for_nobody_else(host: str) -> None:
    with listening.reserved(host, 0) as port:
        with socket.socket() as worker:
            worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            worker.bind(("127.0.0.1", port))
            worker.listen()
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))


def test_a_port_on_which_somebody_listens_is_taken_even_if_he_would_share_it() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (
            pytest.raises(errors.ConfigError, match=f"127.0.0.1:{port}: Address"),
            listening.reserved("127.0.0.1", port),
        ):
            pass


def test_a_host_that_nobody_knows_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    words = r"cannot listen on no\.such\.host:8080: Name or service not known"
    with pytest.raises(errors.ConfigError, match=words), listening.reserved("no.such.host", 8080):
        pass


def test_a_system_without_shared_ports_takes_one_worker_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    with (
        pytest.raises(errors.ConfigError, match=r"listen\.workers: more than 1 needs"),
        listening.reserved("127.0.0.1", 0),
    ):
        pass


def test_a_worker_that_dies_again_and_again_is_started_ever_more_slowly() -> None:
    pauses = [supervisor.pause(deaths) for deaths in range(12)]
    assert pauses[:4] == [0.0, 0.5, 1.0, 2.0]
    assert pauses == sorted(pauses)
    assert pauses[-1] == supervisor.pause(10_000) == supervisor.PAUSE_MAX
