"""Fixtures: what runs a test of the core in virtual time."""

from collections.abc import Callable

import pytest
from service.next.world import Main, Upstream, run

from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning.projection_cache import ProjectionCache


@pytest.fixture(scope="session")
def projections() -> ProjectionCache:
    return ProjectionCache(loader.load(shipped.path("mappings")), whole=True)


@pytest.fixture
def runs(projections: ProjectionCache) -> Callable[[Upstream, Main], None]:
    return lambda upstream, main: run(main, projections, upstream)
