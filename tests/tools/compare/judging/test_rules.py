"""Tests of ignore rules: hidden differences, expired rules and unused rules."""

from datetime import date
from typing import Any

import pytest

from proxy.tools.compare.judging.findings import Difference
from proxy.tools.compare.judging.rules import RuleSet
from proxy.tools.compare.results import RuleUse

MATCH = "/parts/match"
MPN = Difference("value", "results[*].items[*].mpn", "results[0].items[1].mpn", "A", "a")


@pytest.fixture
def rules(load: Any, causes: Any) -> Any:
    def of(*texts: Any, today: Any = date(2026, 6, 1)) -> Any:
        listed = "".join(f"  - {{reason: because, {text}}}\n" for text in texts)
        return RuleSet(load(f"shipped_rules: false\nrules:\n{listed}").rules, causes, today)

    return of


def test_rule_ignores_and_counts_differences_at_its_path(rules: Any) -> None:
    hits = Difference("value", "results[*].hits", "results[0].hits", 1, 2)
    applied = rules("path: '**.mpn', ignore: all, expires: never").apply(MATCH, [MPN, hits, MPN])
    assert applied.left == [hits]
    assert applied.ignored == {"ours.yaml:3": 2}


def test_rule_for_kinds_keeps_other_kinds(rules: Any) -> None:
    found = rules("path: '**.mpn', ignore: [order, format], expires: never")
    assert found.apply(MATCH, [MPN]).left == [MPN]


def test_rule_for_endpoints_keeps_other_endpoints(rules: Any) -> None:
    found = rules("path: '**', ignore: all, endpoint: [/parts/search, /parts/match], expires: never")
    assert found.apply(MATCH, [MPN]).left == []
    assert found.apply("/parts/{uid}", [MPN]).left == [MPN]


def test_first_matching_rule_applies(rules: Any) -> None:
    found = rules(
        "path: '**', normalize: trim, name: trim, expires: never",
        "path: '**', normalize: lower-case, name: case, expires: never",
        "path: '**', ignore: all, name: all, expires: never",
    )
    assert found.apply(MATCH, [MPN]).ignored == {"case": 1}


@pytest.mark.parametrize(
    "way, difference, hidden",
    [
        ("tolerate: {relative: 0.01}", Difference("value", "p", "p", "100.00", "100.50"), True),
        ("tolerate: {relative: 0.01}", Difference("value", "p", "p", "100.00", "102.00"), False),
        ("tolerate: {relative: 0.01}", Difference("missing", "p", "p", "100.00"), False),
        ("normalize: sorted", Difference("order", "p", "p", ["a", "b"], ["b", "a"]), True),
        ("normalize: trim", Difference("order", "p", "p", ["a", "b"], ["b", "a"]), False),
        ("normalize: empty", Difference("missing", "p", "p", None), True),
        ("normalize: empty", Difference("extra", "p", "p", candidate=[]), True),
        ("normalize: empty", Difference("missing", "p", "p", "x"), False),
        ("normalize: empty", Difference("type", "p", "p", None, ""), True),
        ("normalize: trim", Difference("missing", "p", "p", None), False),
        ("normalize: number", Difference("status", "p", "p", 200, 200), False),
        (
            "normalize: timestamp",
            Difference("value", "p", "p", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"),
            True,
        ),
    ],
)
def test_rule_ignores_only_values_within_its_tolerance(rules: Any, way: str, difference: Any, hidden: bool) -> None:
    assert bool(rules(f"path: p, {way}, expires: never").apply(MATCH, [difference]).ignored) is hidden


def test_fields_without_source_are_ignored_with_the_documented_reason(rules: Any) -> None:
    found = rules("cause: no source, ignore: all, name: no source, expires: never")
    path = "results[*].items[*].offers[*].seller.has_ecommerce"
    null, wrong = Difference("type", path, path, True, None), Difference("value", path, path, True, False)
    applied = found.apply(MATCH, [null, wrong, MPN])
    assert applied.left == [wrong, MPN]
    assert applied.ignored == {"no source: Seller.has_ecommerce": 1}
    assert found.uses({"no source: Seller.has_ecommerce": 7}) == (
        RuleUse(
            "no source: Seller.has_ecommerce",
            "the service does not say whether a seller sells online; a client sees null",
            None,
            7,
            False,
        ),
    )


def test_rule_can_apply_to_derived_fields_at_a_path(rules: Any) -> None:
    found = rules("cause: derived, path: '**.brand.**', ignore: [value], name: copies, expires: never")
    brand = Difference("value", "results[*].items[*].brand.name", "", "A", "B")
    uid = Difference("value", "results[*].items[*].manufacturer.uid", "", "A", "B")
    assert found.apply(MATCH, [brand, uid, MPN]) == ([uid, MPN], {"copies: Part.brand": 1})


def test_rule_is_valid_until_the_end_of_its_last_day(rules: Any) -> None:
    text = "path: '**', ignore: all, name: baseline, expires: 2026-05-31"
    held, expired = rules(text, today=date(2026, 5, 31)), rules(text, today=date(2026, 6, 1))
    assert (held.apply(MATCH, [MPN]).ignored, held.expired) == ({"baseline": 1}, ())
    assert expired.apply(MATCH, [MPN]) == ([MPN], {})
    assert [rule.name for rule in expired.expired] == ["baseline"]
    assert expired.uses({})[0] == RuleUse("baseline", "because", "2026-05-31", 0, True)


def test_unused_rule_is_reported_with_zero(rules: Any) -> None:
    found = rules(
        "path: a, ignore: all, name: a, expires: never", "cause: derived, ignore: all, name: d, expires: never"
    )
    assert [(use.name, use.ignored) for use in found.uses({"a": 3})] == [("a", 3), ("d", 0)]
