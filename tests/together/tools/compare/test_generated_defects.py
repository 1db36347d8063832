"""Tests of defects planted in mappings: random requests find each, and it is shrunk to few parameters."""

import functools
import statistics
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import aiohttp
import pytest
from together.environment import ProxyEnvironment, StartEnvironment
from together.tools.compare import planted_defects
from together.tools.compare.command.test_planted_defects import CHOSEN, SEED
from together.tools.compare.conftest import UPSTREAM
from together.tools.compare.generated_requests import KEY

from proxy import config
from proxy.kit import clock, shipped
from proxy.mapping import loader as mapping_loader
from proxy.redaction import Redaction
from proxy.tools.compare import loader
from proxy.tools.compare.generating import contents, grammar, shrinking
from proxy.tools.compare.judging import tally
from proxy.tools.compare.judging.findings import Comparison
from proxy.tools.compare.running import judgement
from proxy.tools.compare.running.exchange import ComparisonBudget, Exchanger, Sides
from proxy.tools.compare.running.run import ComparisonRun, RunSinks
from proxy.traffic import http_side
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environment, which is that of the file
MOST = 400  # requests that find a defect
LIMITS = http_side.SideLimits()
RARE = {  # further defects, in fields that few responses have
    ("hidden", "ExternalLinks", "product_url"),
    ("none", "Datasheet", "mimetype"),
    ("constant", "CADModel", "attribution"),
    ("order", "Part", "descriptions"),
}
MAPPINGS = planted_defects.MappingFolder(shipped.path("mappings"))


class RememberedSide:
    """The old service, whose responses do not depend on the defect: each is sent once for all of them."""

    live = False

    def __init__(self, side: http_side.HttpSide) -> None:
        self.place = side.place
        self._side = side
        self._responses: dict[str, SideResponse] = {}

    async def fetch(self, request: V3Request, request_id: str) -> SideResponse:
        if request.id not in self._responses:
            self._responses[request.id] = await self._side.fetch(request, request_id)
        return self._responses[request.id]


async def shrunk(
    defect: planted_defects.Defect, baseline: RememberedSide, requests: list[V3Request], proxy: str, right: str
) -> V3Request | None:
    """Return the shrunk request that shows a defect at its field, and does not without it; None if no request does."""
    async with http_side.open_session(LIMITS) as session:
        running, unchanged = (_comparison(baseline, url, session) for url in (proxy, right))
        for request in requests:
            comparison = await running.examine(request)
            for key in _at_field(comparison, defect):
                without = await unchanged.examine(request)
                if key in tally.grouped(without, without.findings):
                    continue
                groups = {key: tally.grouped(comparison, comparison.findings)[key]}
                found = await shrinking.Shrinker(running.examine, 1).shrink(groups)
                [sample] = found[key].samples.values()
                assert "shrunk from" in sample.request.origin
                return sample.request
    return None


@functools.cache
def _judged() -> judgement.Judgement:
    return judgement.build(loader.load(None, {}), None, clock.SystemClock(), str)


def _comparison(baseline: RememberedSide, proxy: str, session: aiohttp.ClientSession) -> ComparisonRun:
    time, judged = clock.SystemClock(), _judged()
    candidate = http_side.HttpSide(http_side.base_url(proxy), LIMITS, lambda _: KEY, session, clock=time)
    exchanger = Exchanger(
        Sides(baseline, candidate),
        budget=ComparisonBudget(None),
        worst=lambda _: 0,
        paying=lambda *_: None,
        redaction=Redaction(),
        judge=judged.judge,
    )
    return ComparisonRun(
        exchanger, judged.judge, RunSinks(), redaction=Redaction(), clock=time, at_once=1, spent=lambda: 0
    )


def _at_field(comparison: Comparison, defect: planted_defects.Defect) -> list[str]:
    """Return the groups of the differences that are at a defect's field."""
    found = (
        finding
        for finding in comparison.findings
        if planted_defects.is_at_field(finding.difference.path, finding.difference.kind, defect, MAPPINGS)
    )
    return [key for finding in found for key in tally.grouped(comparison, (finding,))]


async def test_random_requests_find_each_planted_defect(
    start: StartEnvironment, learned_environment: ProxyEnvironment, learned_table: Path, tmp_path: Path
) -> None:
    """The proxy knows all uids: otherwise requests by them would differ, too."""
    path, time, sizes = shipped.path, clock.SystemClock(), dict[str, int]()
    async with http_side.open_session(LIMITS) as session:
        base = http_side.base_url(learned_environment.sandbox.legacy_url)
        baseline = RememberedSide(http_side.HttpSide(base, LIMITS, lambda _: KEY, session, clock=time))
        found = await contents.read(baseline, "client", [])
        mappings = mapping_loader.load(path("mappings"))
        requests = grammar.RequestGenerator(found, mappings, "octopart", "client", seed=3).requests(MOST)
        for defect in _chosen():
            MAPPINGS.write(defect, planted := tmp_path / "planted")
            with mock.patch.object(shipped, "path", lambda name: planted if name == "mappings" else path(name)):
                async with start(sandbox=UPSTREAM, cache={"seconds": 0}, uids=config.File(learned_table)) as changed:
                    request = await shrunk(defect, baseline, requests, changed.proxy.url, learned_environment.proxy.url)
            assert request is not None, f"not found: {defect}"
            sizes[str(defect)] = shrinking.parameters(request)
    assert statistics.median(sizes.values()) <= 3, sizes


def _chosen() -> Iterator[planted_defects.Defect]:
    for name, field, wrong in CHOSEN[::2]:  # a replay finds all of them: command/test_planted_defects.py
        for file in shipped.path("mappings").glob("*.yaml"):
            if file.name not in planted_defects.TABLES and f"\n{name}:\n" in file.read_text("utf-8"):
                yield planted_defects.Defect("chosen", file.name, name, field, wrong)
    yield from (each for each in MAPPINGS.defects(SEED) if (each.kind, each.object, each.field) in RARE)
