"""Fixtures: what runs a test of the core in virtual time."""

import pytest
from service.gateway.world import START, Main, Runs, Upstream, run

from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning.projection_cache import ProjectionCache


@pytest.fixture(scope="session")
def projections() -> ProjectionCache:
    return ProjectionCache(loader.load(shipped.path("mappings")))


@pytest.fixture
def runs(projections: ProjectionCache) -> Runs:
    def runs(upstream: Upstream, main: Main, start: float = START, address: str = "") -> None:
        run(main, projections, upstream, start, address)

    return runs
