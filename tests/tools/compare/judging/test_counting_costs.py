"""Tests of the estimated usage of a month, in parts."""

from typing import Any

import pytest

from proxy.tools.compare.judging import counting
from proxy.tools.compare.judging.counting import RowCount, SourceCount

DAY = 86_400.0


def row(
    client: str = "erp", endpoint: str = "/parts/match", paid: int = 0, priced: int = 0, occurrences: int = 0
) -> Any:
    return RowCount(client, endpoint, occurrences=occurrences, paid=paid, priced=priced)


def test_request_cost_is_multiplied_by_its_frequency() -> None:
    assert counting.monthly_parts([row(paid=300, priced=100, occurrences=100)], None, 3 * DAY) == 3000


def test_known_source_size_scales_the_cost() -> None:
    rows = [row(paid=30, priced=10, occurrences=10)]
    assert counting.monthly_parts(rows, {("erp", "/parts/match"): SourceCount(50, 1000)}, 30 * DAY) == 3000


def test_free_requests_cost_nothing() -> None:
    assert counting.monthly_parts([row(endpoint="/brands/search", priced=10, occurrences=10)], None, DAY) == 0


@pytest.mark.parametrize("seconds", [None, 0, -5.0])
def test_unknown_time_span_gives_no_monthly_cost(seconds: float | None) -> None:
    assert counting.monthly_parts([row(paid=1, priced=1, occurrences=1)], None, seconds) is None


def test_endpoint_without_any_cost_gives_no_estimate() -> None:
    rows = [row(paid=1, priced=1, occurrences=1), row(endpoint="/parts/search", occurrences=1)]
    assert counting.monthly_parts(rows, None, DAY) is None
    assert counting.monthly_parts([], None, DAY) is None
