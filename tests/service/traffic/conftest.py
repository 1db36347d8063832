"""Helpers that write request files."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from proxy.traffic import reading
from proxy.traffic.v3_request import Clients, V3Request


class Reading(NamedTuple):
    """A file read to its end."""

    requests: list[V3Request]
    skipped: list[tuple[str, int, str]]
    clients: Clients

    @property
    def targets(self) -> list[str]:
        return [request.target() for request in self.requests]

    @property
    def seconds(self) -> float | None:
        times = [request.at for request in self.requests if request.at is not None]
        return max(times) - min(times) if times else None


Read = Callable[..., Reading]


@pytest.fixture
def read_source(tmp_path: Path) -> Read:
    """Reads text or bytes as a file of some name."""

    def read(name: str, content: str | bytes) -> Reading:
        path, skipped, clients = tmp_path / name, reading.Skipped(), Clients()
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        requests = list(reading.read_requests(path, clients, skipped))
        return Reading(requests, [(why, each.times, each.first) for why, each in skipped.items()], clients)

    return read
