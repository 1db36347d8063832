"""Every assumption holds on the sandbox, and only those do not hold that the sandbox contradicts."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
from support import small_catalog

import nexar_sandbox
from proxy.kit import clock
from proxy.tools.conform import command as conform
from proxy.tools.conform import probes, reading, runner

# Behaviors of the sandbox that do not hide each other, by the assumption that each contradicts.
OTHERWISE: dict[str, dict[str, Any]] = {
    "part-order": {"parts_in_order": False},
    "whole-lists": {"list_size": 100},
    "match-reference": {"references_echoed": False},
    "manufacturer-alias": {"aliases_known": False},
    "search-every-word": {"every_word_needed": False},
    "search-description": {"highlight_tag": "em"},
    "range-exponent": {"exponents_in_ranges": False},
    "bucket-count": {"bucket_count_max": 10},
    "price-breaks": {"price_breaks_obeyed": False},
    "converted-currency": {"converted_currency": "EUR"},
    "spec-lists": {"spec_values_joined": False},
    "range-error-status": {"range_error_status": 400},
    "response-charset": {"charset": False},
    "missing-token-status": {"missing_token_status": 200},
    "unknown-field-message": {"unknown_field_message": "Cannot query field '{field}' on type '{type}'."},
    "part-limit-message": {"part_limit_message": "Your quota of {limit} parts is exhausted."},
    "missing-feature-code": {"feature_error_code": "AUTH_NOT_AUTHORIZED"},
    "token-lifetime": {"token_lifetime": 3600},
    "wrong-secret": {"wrong_secret_error": "access_denied"},
    "jwt-claims": {"jwt_claims": ("organization_id",)},
}


async def _observed(
    catalog: nexar_sandbox.Catalog, key: nexar_sandbox.SigningKey, **behavior: Any
) -> tuple[runner.Observations, int]:
    """The observations of a whole run and the parts that were billed, by a clock that moves where the run waits."""
    time, catalogue = clock.ManualClock(), reading.load()
    settings = replace(conform.conformance_sandbox(), behavior=nexar_sandbox.Behavior(**behavior))

    async def sleep(seconds: float) -> None:
        time.advance(seconds)

    running = nexar_sandbox.serve(settings, clock=time, catalog=catalog, key=key)
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


async def test_what_the_sandbox_does_otherwise_contradicts_the_assumption_of_it_and_no_other(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> None:
    changed = {field: value for behavior in OTHERWISE.values() for field, value in behavior.items()}
    observed, _ = await _observed(catalog, signing_key, **changed)
    assert _differing(observed) == dict.fromkeys(OTHERWISE, "contradicted")


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
