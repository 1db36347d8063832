"""Every assumption holds on the sandbox."""

from contextlib import closing
from pathlib import Path

import aiohttp
from support import small_catalog

import nexar_sandbox
from proxy.kit import clock
from proxy.tools.conform import command as conform
from proxy.tools.conform import probes, reading, runner


async def _observed(catalog: nexar_sandbox.Catalog, key: nexar_sandbox.SigningKey) -> tuple[runner.Observations, int]:
    """The observations of a whole run and the parts that were billed, by a clock that moves where the run waits."""
    time, catalogue = clock.ManualClock(), reading.load()

    async def sleep(seconds: float) -> None:
        time.advance(seconds)

    running = nexar_sandbox.serve(conform.conformance_sandbox(), clock=time, catalog=catalog, key=key)
    async with running as sandbox, aiohttp.ClientSession() as session:
        target = conform.conformance_target(sandbox)
        selection = runner.select(catalogue, conform.DEFAULT_BUDGET, target.accounts)
        observed = await runner.run(catalogue, selection, probes.Prober(target, session, time, sleep))
        return observed, sum(sandbox.part_usage.used(each.application_id) for each in sandbox.applications.all)


def _differing(observed: runner.Observations) -> dict[str, str]:
    return {each.id: each.verdict for each in observed.outcomes if each.verdict != "confirmed"}


async def test_every_assumption_is_confirmed_on_the_sandbox_within_the_default_budget(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> None:
    observed, billed = await _observed(catalog, signing_key)
    assert _differing(observed) == {}
    assert observed.cost.returned == billed <= observed.cost.at_worst <= conform.DEFAULT_BUDGET


async def test_what_is_assumed_of_a_part_is_not_tested_without_it(
    signing_key: nexar_sandbox.SigningKey, tmp_path: Path
) -> None:
    parts = [part for part in small_catalog.PARTS if part["mpn"] != "SN74S74N"]
    with closing(nexar_sandbox.open_catalog(data=small_catalog.write(tmp_path, parts))) as foreign:
        observed, _ = await _observed(foreign, signing_key)
    contradicted = [each.id for each in observed.outcomes if each.verdict == "contradicted"]
    assert contradicted == ["whole-lists", "attribute-list"]  # these lists are others
    reasons = {each.id: each.reason for each in observed.outcomes if each.verdict == "not tested"}
    assert len(reasons) > 50
    assert reasons["match-punctuation"] == "no such part: SN74S74N, MBR1020VL"
