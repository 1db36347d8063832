"""Every assumption holds on the sandbox, and every deviation of the sandbox contradicts the assumption of its name."""

import random

import aiohttp
import pytest

from proxy.cli import conform, embedded
from proxy.conformance import probes, reading, runner
from proxy.kit import clock
from proxy.sandbox import app, deviations
from proxy.sandbox.catalog import store
from proxy.sandbox.identity import keys


@pytest.fixture(scope="module")
def catalogue() -> reading.Catalogue:
    return reading.load()


class ConformanceRun:
    """A run on a sandbox that shares catalog and key with the others; its time stands still."""

    def __init__(self, catalogue: reading.Catalogue, catalog: store.Catalog, key: keys.SigningKey) -> None:
        self._catalogue, self._catalog, self._key = catalogue, catalog, key
        self.parts_billed = 0

    async def of(self, *names: str) -> runner.Observations:
        """Run all assumptions on a sandbox with these deviations."""
        time = clock.ManualClock()

        async def sleep(seconds: float) -> None:
            time.advance(seconds)

        settings = embedded.conformance_sandbox(deviations.behaviour(names))
        rng = random.Random(1)
        running = app.serve(settings, clock=time, rng=rng, catalog=self._catalog, key=self._key)
        async with running as sandbox, aiohttp.ClientSession() as session:
            target = embedded.conformance_target(sandbox)
            selection = runner.select(self._catalogue, conform.DEFAULT_BUDGET, target.accounts)
            result = await runner.run(self._catalogue, selection, probes.Prober(target, session, time, sleep))
            self.parts_billed = sum(sandbox.part_usage.used(each.application_id) for each in sandbox.applications.all)
        return result


@pytest.fixture
def conformance_run(
    catalogue: reading.Catalogue, catalog: store.Catalog, signing_key: keys.SigningKey
) -> ConformanceRun:
    return ConformanceRun(catalogue, catalog, signing_key)


async def test_every_assumption_is_confirmed_on_the_sandbox_within_the_default_budget(
    conformance_run: ConformanceRun,
) -> None:
    result = await conformance_run.of()
    assert {outcome.id: outcome for outcome in result.outcomes if outcome.verdict != "confirmed"} == {}
    assert result.cost.returned == conformance_run.parts_billed <= result.cost.at_worst <= conform.DEFAULT_BUDGET


@pytest.mark.parametrize("name", deviations.DEVIATIONS)
async def test_a_deviation_contradicts_the_assumption_of_its_name_and_no_other(
    conformance_run: ConformanceRun, name: str
) -> None:
    result = await conformance_run.of(name)
    assert [(each.id, each.verdict) for each in result.outcomes if each.verdict != "confirmed"] == [
        (name, "contradicted")
    ]
