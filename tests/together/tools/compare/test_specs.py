"""Specs in filters, counts, statistics and orders: both sides have v3's keys, tolerances as text, and ranges.

Offers, three quarters of a response, are left out: other comparisons have them.
"""

import pytest
from together.tools.compare.comparison import CompareRequests, reported_differences

from proxy.traffic.v3_request import V3Request

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environment, which is that of the file

KEYS = (
    *("tolerance", "resistance_tolerance", "capacitance_tolerance", "inductance_tolerance", "resistance", "pin_count"),
    *("mount", "min_operating_temperature"),
)
RANGES = ("operating_temperature", "supply_voltage_dc")
FIELDS = tuple(
    f"specs.{field}"
    for field in (
        *(f"{key}.value" for key in (*KEYS, *RANGES)),
        *(f"{key}.{end}" for key in RANGES for end in ("min_value", "max_value")),
    )
)
TOLERANCES = tuple(f"specs.{key}.value" for key in KEYS[:4])


def _search(*pairs: tuple[str, str], q: str = "") -> V3Request:
    view = (("q", q), ("limit", "20"), ("include[]", "specs"), ("hide[]", "offers"))
    return V3Request("/parts/search", (*view, *pairs), "specs", origin="specs")


def _filter(field: str, value: str) -> V3Request:
    return _search((f"filter[fields][{field}][]", value))


def _within(field: str, low: str, high: str) -> V3Request:
    return _search(("filter[queries][]", f"{field}:[{low} TO {high}]"))


async def _same(compare: CompareRequests, requests: list[V3Request]) -> None:
    result = await compare(requests)
    assert reported_differences(result) == set(), [(group["path"], group["samples"][:1]) for group in result["groups"]]
    assert sum(row["requests"] for row in result["rows"]) == len({request.id for request in requests})
    assert result["failures"] == []


@pytest.mark.parametrize("q", ["", "op amp"])
async def test_facets_and_statistics_are_equal(compare: CompareRequests, q: str) -> None:
    counts = [((f"facet[fields][{field}][include]", "1"), (f"stats[{field}][include]", "1")) for field in FIELDS]
    await _same(compare, [_search(*each, q=q) for each in counts])


async def test_sort_orders_are_equal(compare: CompareRequests) -> None:
    """Not by the tolerance of one quantity: the service can order by every tolerance only (docs/v3-today.md)."""
    able = [field for field in FIELDS if field not in TOLERANCES[1:]]
    orders = [_search(("sortby", f"{field} {way}")) for field in able for way in ("asc", "desc")]
    await _same(compare, orders)


async def test_filters_are_equal(compare: CompareRequests) -> None:
    spelled = [_filter(field, value) for field in TOLERANCES for value in ("±5%", "5%", "5", "5.0", "±3%")]
    numbers = [_within(field, low, high) for field in FIELDS for low, high in (("2", "10"), ("*", "3"))]
    value = "specs.supply_voltage_dc.value:"  # the service cannot filter by either of several specs: a 400
    able = [request for request in numbers if not any(text.startswith(value) for _, text in request.query)]
    temperature = [_filter("specs.operating_temperature.value", degrees) for degrees in ("85", "-200")]
    await _same(compare, [*spelled, *able, *temperature])


async def test_drilldowns_are_equal(compare: CompareRequests) -> None:
    asked = (("spec_drilldown[include]", "1"), ("spec_drilldown[limit]", "10"))
    await _same(compare, [_search(*asked, q=q) for q in ("resistor", "op amp", "inductor", "LM317", "")])
