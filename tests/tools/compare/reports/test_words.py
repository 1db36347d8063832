"""Tests of the wording that all reports share."""

import msgspec
import pytest
from support import cases, comparison_result

from proxy.tools.compare.reports import words
from proxy.tools.compare.results import ComparisonCost, Interval


def plain(text: str) -> str:
    """With ordinary spaces, as a test is written."""
    return text.replace(words.GAP, " ")


@cases.parametrize("value,message")
def test_share_is_rounded_to_neither_all_nor_none(value: float, message: str) -> None:
    assert plain(words.share(value)) == message


@pytest.mark.parametrize(
    "value,message",
    [(0.0004, "0.4 ms"), (0.412, "412 ms"), (1.2389, "1.24 s"), (200, "3 min 20 s"), (120, "2 min")],
)
def test_time_has_a_suitable_unit(value: float, message: str) -> None:
    assert plain(words.seconds(value)) == message


def test_interval_names_its_bounds() -> None:
    assert plain(words.interval(Interval(0.992, 0.995))) == "99.2–99.5 %"


def test_reason_has_verdict_and_its_basis() -> None:
    assert plain(words.because(comparison_result.result())) == (
        "17 requests could not be compared, equivalent on 98.8 % of 12 480 requests, 3 kinds of difference "
        "remain, rules ignored 100 684 differences (click links 88 204, msec 12 480), "
        "a month will cost 1 240 000 parts."
    )


def test_reason_names_an_empty_run() -> None:
    nothing = comparison_result.result(rows=(), groups=(), verdict="inconclusive", cost=ComparisonCost(0, None, None))
    assert words.because(nothing) == "no request could be compared."


def test_reason_names_an_incomplete_run() -> None:
    cut_off = comparison_result.result(complete=False)
    assert words.because(cut_off).endswith(", but the run is not complete.")


def test_reason_names_the_absence_of_differences() -> None:
    assert "no difference remains" in words.because(comparison_result.ready_result())


def test_reason_counts_differences_that_do_not_count() -> None:
    group = msgspec.structs.replace(comparison_result.result().groups[0], counts=False, cause="uid not known")
    reason = plain(words.because(msgspec.structs.replace(comparison_result.ready_result(), groups=(group,))))
    assert ", 1 kind of difference, none counts, " in reason
    assert "no difference remains" not in reason


def test_group_has_its_share_of_the_endpoint() -> None:
    result = comparison_result.result()
    assert plain(words.seen_on(result.groups[0], result)) == "61 of 3 120 requests (2 %)"


@cases.parametrize("changes,message")
def test_group_that_does_not_count_has_a_reason(changes: dict[str, object], message: str) -> None:
    group = msgspec.structs.replace(comparison_result.result().groups[0], **changes)
    assert words.effect(group) == message


def test_rules_have_their_counts() -> None:
    message = {rule.name: plain(words.used(rule)) for rule in comparison_result.result().rules}
    assert message == {
        "msec": "ignored 12 480 differences",
        "click links": "ignored 88 204 differences",
        "old footprints": "ignores nothing: expired on 2026-02-01",
        "broker listings": "unused",
    }


def test_unknown_costs_are_not_estimated() -> None:
    assert plain(words.spent(ComparisonCost(1, 500, None))) == "this run cost 1 part of a budget of 500"
    assert words.spent(ComparisonCost(0, None, None)).endswith("0 parts")
    assert "is unknown" in words.per_month(ComparisonCost(1, 500, None))
    assert "timestamps" in words.per_month(ComparisonCost(1, 500, None))
    assert "the cost of its responses" in words.per_month(ComparisonCost(1, 500, None))
