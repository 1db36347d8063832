"""Helpers that write request files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from proxy.traffic.sources import source as sources
from proxy.traffic.sources.clients import Clients
from proxy.traffic.v3_request import V3Request


class Reading(NamedTuple):
    """A file read to its end."""

    requests: list[V3Request]
    source: sources.RequestSource
    clients: Clients

    @property
    def targets(self) -> list[str]:
        return [request.target() for request in self.requests]

    @property
    def junk(self) -> list[tuple[str, int, str]]:
        return [(count.reason, count.times, count.first) for count in self.source.junk]

    @property
    def skipped(self) -> list[tuple[str, int, str]]:
        return [(count.reason, count.times, count.first) for count in self.source.skipped]


Read = Callable[..., Reading]


@pytest.fixture
def read_source(tmp_path: Path) -> Read:
    """Reads text or bytes as a file of some name."""

    def reading(
        name: str,
        content: str | bytes,
        kind: str | None = None,
        clients: Clients | None = None,
        named: Mapping[str, str] = {},
    ) -> Reading:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        known = clients or Clients()
        source = sources.open_source(path, known, kind=kind, named=named)
        return Reading(list(source.requests()), source, known)

    return reading
