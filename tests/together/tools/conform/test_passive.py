"""Passive checks on mixed traffic to sandboxes: what it settles, that deviations are found, and that faults are not."""

import json
from pathlib import Path

from support import cases, commands, mixed_traffic

import nexar_sandbox
from proxy.tools.conform import command as conform
from proxy.tools.conform import passive, reading

ROUND = 22  # exchanges, two of each kind
VERDICTS = ("confirmed", "contradicted")


async def _observed(
    catalog: nexar_sandbox.Catalog,
    key: nexar_sandbox.SigningKey,
    count: int,
    kinds: tuple[str, ...] = mixed_traffic.KINDS,
    faults: tuple[str, ...] = (),
    deviations: tuple[str, ...] = (),
) -> dict[str, set[str]]:
    """Check so many exchanges, or until the deviations are found; returns the ids by verdict."""
    checks = passive.Passive(reading.load())
    seen: dict[str, set[str]] = {}
    async with mixed_traffic.sandbox(catalog, key, faults=faults, deviations=deviations) as sandbox:
        traffic = mixed_traffic.Traffic(sandbox, 1, kinds)
        while count > 0 and not (deviations and seen and seen["contradicted"].issuperset(deviations)):
            async for exchange in traffic.exchanges(ROUND):
                checks.add(exchange)
            count -= ROUND
            outcomes = passive.outcomes(checks.evidence(), checks.catalogue)
            seen = {verdict: {each.id for each in outcomes if each.verdict == verdict} for verdict in VERDICTS}
    return seen


def _core() -> set[str]:
    return {assumption.id for assumption in reading.load().assumptions if assumption.tier == "core"}


async def test_mixed_traffic_with_faults_settles_most_core_assumptions_and_contradicts_none(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> None:
    seen = await _observed(catalog, signing_key, 396, faults=mixed_traffic.FAULTS)
    assert seen["contradicted"] == set()
    assert len(seen["confirmed"] & _core()) >= 70


async def test_responses_to_matches_alone_settle_what_they_can(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> None:
    seen = await _observed(catalog, signing_key, 22, ("bom",))
    assert seen["contradicted"] == set()
    assert len(seen["confirmed"] & _core()) >= 20


@cases.parametrize("deviations")
async def test_planted_deviations_are_found_in_mixed_traffic(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, deviations: list[str]
) -> None:
    seen = await _observed(catalog, signing_key, 550, deviations=tuple(deviations))
    assert set(deviations) - seen["contradicted"] == set()


def test_fifty_deviations_are_planted() -> None:
    planted = cases.of(__file__, "planted_deviations_are_found_in_mixed_traffic")
    assert len({name for names in planted for name in names}) >= 50


async def test_the_command_checks_files_and_merges_what_they_say(tmp_path: Path) -> None:
    part = {"mpn": "A", "v3uid": "0123456789ABCDEF", "documentCollections": [{"name": "Datasheets"}]}
    (tmp_path / "parts.json").write_text(json.dumps({"data": {"supParts": [part]}}))
    arguments = ("conform", "--from", str(tmp_path / "parts.json"), "--update", str(tmp_path / "seen.yaml"))
    done = await commands.wait(await commands.start(tmp_path, *arguments))
    assert done.code == conform.CONTRADICTED
    assert "1 exchange without a host: taken for Nexar's" in done.err
    page = (tmp_path / "seen.md").read_text()
    assert "contradicted: observed in 1 exchange" in page
    assert '`"0123456789ABCDEF"`' in page
    assert "observed in 1 exchange, last" in page
