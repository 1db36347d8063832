"""Reserving a port for several workers."""

import socket

import pytest

from proxy import errors
from proxy.workers import listening, supervisor


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_free_port_is_reserved_for_workers_only(host: str) -> None:
    with listening.reserved(host, 0) as port:
        with socket.socket() as worker:
            worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            worker.bind(("127.0.0.1", port))
            worker.listen()
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))


def test_port_in_use_is_refused_even_if_its_owner_shares_it() -> None:
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


def test_unknown_host_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    words = r"cannot listen on no\.such\.host:8080: Name or service not known"
    with pytest.raises(errors.ConfigError, match=words), listening.reserved("no.such.host", 8080):
        pass


def test_several_workers_need_so_reuseport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    with (
        pytest.raises(errors.ConfigError, match=r"listen\.workers: more than 1 needs"),
        listening.reserved("127.0.0.1", 0),
    ):
        pass


def test_restart_delay_grows_with_early_exits() -> None:
    delays = [supervisor.restart_delay(deaths) for deaths in range(12)]
    assert delays[:4] == [0.0, 0.5, 1.0, 2.0]
    assert delays == sorted(delays)
    assert delays[-1] == supervisor.restart_delay(10_000) == supervisor.BACKOFF_MAX
