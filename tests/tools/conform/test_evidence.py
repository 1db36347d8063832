"""The evidence file, merging of results, and the page that is generated from it."""

from pathlib import Path
from typing import Any

import pytest

from proxy import errors
from proxy.tools.conform import evidence, page, reading
from proxy.tools.conform.assumptions import Assumption
from proxy.tools.conform.results import Outcome, Plan, RunCost, RunResult, Service, Verdict

CATALOGUE = reading.Catalogue(
    {},
    (
        Assumption("first", "A | b.", "graphql.md §1", "INF", "core", (), "", used_by="parts"),
        Assumption("second", "C.", "graphql.md §2", "DOC", "strict", (), ""),
    ),
)


def _result(
    verdicts: dict[str, Verdict], date: str = "2027-01-02", service: Service = "sandbox", **more: Any
) -> RunResult:
    outcomes = tuple(
        Outcome(id, "core", verdict, *((1, {"n": 2}) if verdict != "not tested" else ()))
        for id, verdict in verdicts.items()
    )
    return RunResult(service, date, "1.0", more.pop("plan", Plan()), RunCost(1, 1, 0, 0), outcomes, **more)


def _merged(*results: RunResult) -> evidence.Evidence:
    merged: evidence.Evidence = {}
    for result in results:
        merged = evidence.merge(merged, result, CATALOGUE)
    return merged


def _verdicts(merged: evidence.Evidence) -> dict[str, list[tuple[str, str, bool]]]:
    return {id: [(each.service, each.date, each.holds) for each in listed] for id, listed in merged.items()}


def test_a_newer_observation_replaces_that_of_the_same_service_and_plan() -> None:
    old, new = _result({"first": "confirmed"}, "2027-01-01"), _result({"first": "contradicted"}, "2027-01-02")
    assert _verdicts(_merged(old, new)) == _verdicts(_merged(new, old)) == {"first": [("sandbox", "2027-01-02", False)]}


def test_services_and_plans_are_kept_apart() -> None:
    results = [
        _result({"first": "confirmed"}),
        _result({"first": "contradicted"}, service="Nexar"),
        _result({"first": "confirmed"}, "2027-01-03", "Nexar", plan=Plan((), 100)),
    ]
    assert _verdicts(_merged(*results)) == {
        "first": [("Nexar", "2027-01-02", False), ("Nexar", "2027-01-03", True), ("sandbox", "2027-01-02", True)]
    }


def test_what_was_not_tested_replaces_nothing_and_unknown_assumptions_are_dropped() -> None:
    first = _result({"first": "confirmed", "earlier": "confirmed"})
    second = _result({"first": "not tested", "second": "not tested"}, "2027-02-01")
    assert _verdicts(_merged(first, second)) == {"first": [("sandbox", "2027-01-02", True)]}


def test_a_saved_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "compatibility.yaml"
    assert evidence.load(file) == {}
    merged = _merged(_result({"first": "contradicted"}, plan=Plan(("DATASHEETS",), 100, "lifetime")))
    evidence.save(file, merged)
    assert evidence.load(file) == merged
    assert file.read_text().startswith("#")


def test_a_mistake_in_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "compatibility.yaml"
    file.write_text("first:\n- service: moon\n")
    with pytest.raises(errors.ConfigError, match=r"compatibility.yaml:1:1: Invalid enum value 'moon'"):
        evidence.load(file)


def test_the_page_keeps_correctness_and_coverage_apart() -> None:
    observed = _merged(
        _result({"first": "confirmed", "second": "confirmed"}),
        _result({"first": "contradicted"}, service="Nexar", plan=Plan((), 100)),
    )
    text = page.render(CATALOGUE, observed)
    assert "| core | 1 | 1 of 1 | 1 of 1 | 1 of 1 | 0 of 1 |" in text
    assert "| strict | 1 | 1 of 1 | 1 of 1 | 0 of 1 | – |" in text
    assert "| Nexar | 2027-01-02 | 1.0 | no features; 100 parts a month | 0 | 1 |" in text
    wrong = '**Nexar: contradicted 2027-01-02: `{"n":2}`.**'
    assert f"| `first`: A \\| b. {wrong} | graphql.md §1 INF | parts |" in text
    assert "| `second`: C. | graphql.md §2 DOC |  |" in text


def test_the_page_says_that_the_real_service_has_not_been_observed() -> None:
    sentence = "The real service has not been observed yet"
    assert sentence in page.render(CATALOGUE, _merged(_result({"first": "confirmed"})))
    assert sentence not in page.render(CATALOGUE, _merged(_result({"first": "confirmed"}, service="Nexar")))
