"""Every assumption holds on the sandbox, and every deviation of the sandbox contradicts the assumption of its name."""

from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from support import small_catalog
from together.tools.conform.conformance_runs import ConformanceRuns

import nexar_sandbox
from proxy.tools.conform import command as conform
from proxy.tools.conform import runner

WHOLE = 20  # every so many deviations are also run as a whole


@pytest.fixture(scope="module")
def conformance_runs(catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey) -> ConformanceRuns:
    return ConformanceRuns(catalog, signing_key)


def _differing(observed: runner.Observations) -> list[tuple[str, str]]:
    return [(each.id, each.verdict) for each in observed.outcomes if each.verdict != "confirmed"]


async def test_every_assumption_is_confirmed_on_the_sandbox_within_the_default_budget(
    conformance_runs: ConformanceRuns,
) -> None:
    observed = await conformance_runs.without_deviations()
    assert _differing(observed) == []
    assert observed.cost.returned == conformance_runs.parts_billed <= observed.cost.at_worst <= conform.DEFAULT_BUDGET


async def test_what_is_assumed_of_a_part_is_not_tested_without_it(
    signing_key: nexar_sandbox.SigningKey, tmp_path: Path
) -> None:
    parts = [part for part in small_catalog.PARTS if part["mpn"] != "SN74S74N"]
    with closing(nexar_sandbox.open_catalog(data=small_catalog.write(tmp_path, parts))) as foreign:
        observed = await ConformanceRuns(foreign, signing_key).without_deviations()
    contradicted = [each.id for each in observed.outcomes if each.verdict == "contradicted"]
    assert contradicted == ["whole-lists", "attribute-list"]  # these lists are others
    reasons = {each.id: each.reason for each in observed.outcomes if each.verdict == "not tested"}
    assert len(reasons) > 50
    assert reasons["match-punctuation"] == "no such part: SN74S74N, MBR1020VL"


@pytest.mark.parametrize("name", nexar_sandbox.DEVIATIONS)
async def test_a_deviation_contradicts_the_assumption_of_its_name_and_no_other(
    conformance_runs: ConformanceRuns, name: str
) -> None:
    observed = await conformance_runs.with_deviation(name)
    assert _differing(observed) == [(name, "contradicted")]
    assumption = next(each for each in conformance_runs.catalogue.assumptions if each.id == name)
    if assumption.sandbox is not None:
        # A sandbox that is given the observed value deviates in the same way.
        got = next(each.got for each in observed.outcomes if each.id == name)
        assert msgspec.convert({assumption.sandbox: got}, nexar_sandbox.Behavior) == nexar_sandbox.deviate([name])


@pytest.mark.parametrize("name", list(nexar_sandbox.DEVIATIONS)[::WHOLE])
async def test_a_run_that_sends_every_request_observes_the_same(conformance_runs: ConformanceRuns, name: str) -> None:
    partial = await conformance_runs.with_deviation(name)
    assert _differing(await conformance_runs.with_deviation(name, whole=True)) == _differing(partial)
