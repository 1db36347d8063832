"""What a month will cost in parts."""

from typing import Any

import pytest

from proxy.compare.judging import counting
from proxy.compare.judging.counting import RowCount, SourceCount

DAY = 86_400.0


def row(client: str = "erp", endpoint: str = "/parts/match", paid: int = 0, priced: int = 0, asked: int = 0) -> Any:
    return RowCount(client, endpoint, asked=asked, paid=paid, priced=priced)


def test_each_request_costs_what_it_cost_as_often_as_it_is_asked() -> None:
    assert counting.monthly_parts([row(paid=300, priced=100, asked=100)], None, 3 * DAY) == 3000


def test_the_whole_source_counts_where_it_is_known() -> None:
    rows = [row(paid=30, priced=10, asked=10)]
    assert counting.monthly_parts(rows, {("erp", "/parts/match"): SourceCount(50, 1000)}, 30 * DAY) == 3000


def test_a_client_without_a_price_is_as_dear_as_the_others() -> None:
    rows = [row(paid=30, priced=10, asked=10), row("shop", asked=20)]
    assert counting.monthly_parts(rows, None, 30 * DAY) == 90


def test_what_never_was_compared_counts_with_the_others_price() -> None:
    rows = [row(paid=30, priced=10, asked=10)]
    asked = {("erp", "/parts/match"): SourceCount(10, 10), ("shop", "/parts/match"): SourceCount(5, 5)}
    assert counting.monthly_parts(rows, asked, 30 * DAY) == 45


def test_what_costs_nothing_costs_nothing() -> None:
    assert counting.monthly_parts([row(endpoint="/brands/search", priced=10, asked=10)], None, DAY) == 0


@pytest.mark.parametrize("seconds", [None, 0, -5.0])
def test_without_a_span_of_time_there_is_no_month(seconds: float | None) -> None:
    assert counting.monthly_parts([row(paid=1, priced=1, asked=1)], None, seconds) is None


def test_without_any_price_at_an_endpoint_nothing_is_guessed() -> None:
    rows = [row(paid=1, priced=1, asked=1), row(endpoint="/parts/search", asked=1)]
    assert counting.monthly_parts(rows, None, DAY) is None
    assert counting.monthly_parts([], None, DAY) is None


def test_a_month_is_rounded_up() -> None:
    assert counting.monthly_parts([row(paid=1, priced=3, asked=3)], None, 60 * DAY) == 1
