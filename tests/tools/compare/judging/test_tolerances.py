"""Tests of tolerances: equivalent notations and values that are close enough."""

from decimal import Decimal
from typing import Any

import pytest
from support import cases

from proxy.tools.compare.judging import tolerances
from proxy.tools.compare.judging.findings import ABSENT
from proxy.tools.compare.judging.tolerances import Tolerance


@pytest.mark.parametrize(
    "spelling, one, other",
    [
        *cases.of(__file__, "equivalent_spellings_are_equal"),
        ("number", "0.64700", Decimal("0.647")),
        ("empty", [], ABSENT),
    ],
)
def test_equivalent_spellings_are_equal(spelling: tolerances.NormalForm, one: Any, other: Any) -> None:
    assert tolerances.normalized(one, (spelling,)) == tolerances.normalized(other, (spelling,))


@cases.parametrize("spelling, one, other")
def test_different_values_stay_unequal(spelling: tolerances.NormalForm, one: Any, other: Any) -> None:
    assert tolerances.normalized(one, (spelling,)) != tolerances.normalized(other, (spelling,))


@cases.parametrize("limits, baseline, candidate, allowed")
def test_numeric_tolerance_decides_equality(limits: Any, baseline: Any, candidate: Any, allowed: bool) -> None:
    tolerance = Tolerance(**limits)
    if isinstance(candidate, float):
        candidate = Decimal(str(candidate))  # as numbers of responses are read
    assert tolerance.allows(baseline, candidate) is allowed
    assert tolerance.allows(candidate, baseline) is allowed


CLICK = "https://octopart.com/opatz8j6/a1?t=abc"
UID = "2c3be9310496fffc"


@pytest.mark.parametrize(
    "form, value, has",
    [
        *cases.of(__file__, "value_matches_its_form_or_not"),
        ("click-link", CLICK, True),
        ("uid", UID, True),
        ("uid", UID[:-1], False),
    ],
)
def test_value_matches_its_form_or_not(form: tolerances.Form, value: Any, has: bool) -> None:
    assert tolerances.has_form(value, (form,)) is has


def test_requested_uid_must_be_equal() -> None:
    requested_uids = frozenset((UID, "0" * 16))
    assert not tolerances.has_form(UID, ("other-uid",), "redirected_uids[0]", requested_uids)
    assert tolerances.has_form("1" * 16, ("other-uid",), "redirected_uids[0]", requested_uids)
    assert not tolerances.has_form("x", ("other-uid",), "redirected_uids[0]", requested_uids)


def test_each_of_several_parts_has_its_requested_uid() -> None:
    requested_uids = frozenset((UID, "0" * 16))
    assert not tolerances.has_form(UID, ("other-uid",), f"[{UID}].redirected_uids[0]", requested_uids)
    assert tolerances.has_form(UID, ("other-uid",), f"[{'0' * 16}].redirected_uids[0]", requested_uids)
