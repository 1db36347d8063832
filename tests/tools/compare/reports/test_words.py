"""Tests of the wording that all reports share."""

import msgspec
import pytest
from support import cases, comparison_result

from proxy.tools.compare.reports import words
from proxy.tools.compare.results import ComparisonCost


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


def test_reason_has_verdict_and_its_basis() -> None:
    assert plain(words.because(comparison_result.result())) == (
        "17 requests could not be compared, equivalent on 98.8 % of 12 480 requests, 3 kinds of difference "
        "remain, rules ignored 100 684 differences (click links 88 204, msec 12 480), "
        "a month will cost 1 240 000 parts."
    )


@cases.parametrize("changes,message")
def test_group_that_does_not_count_has_a_reason(changes: dict[str, object], message: str) -> None:
    group = msgspec.structs.replace(comparison_result.result().groups[0], **changes)
    assert words.effect(group) == message


def test_unknown_costs_are_not_estimated() -> None:
    assert plain(words.spent(ComparisonCost(1, 500, None))) == "this run cost 1 part of a budget of 500"
    assert words.spent(ComparisonCost(0, None, None)).endswith("0 parts")
    assert "is unknown" in words.per_month(ComparisonCost(1, 500, None))
    assert "timestamps" in words.per_month(ComparisonCost(1, 500, None))
    assert "the cost of its responses" in words.per_month(ComparisonCost(1, 500, None))
