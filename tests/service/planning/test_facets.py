"""Tests of v3's facets, stats and spec_drilldown from upstream aggregations (contract v3-rest.md §3.6)."""

from types import SimpleNamespace
from typing import Any

import pytest

from proxy import errors
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.model import FacetField
from proxy.planning import documents, facets

TABLES = loader.load(shipped.path("mappings"), "octopart").tables
ALL = frozenset({"TECH_SPECS"})
R = "specs.resistance.value"


def field(name: str, **more: Any) -> FacetField:
    return FacetField(name, include=True, **more)


def spec(shortname: str, *buckets: tuple[str, float | None, int], **more: Any) -> documents.SpecAgg:
    kind = "number" if any(number is not None for _, number, _ in buckets) else "text"
    return documents.SpecAgg(
        attribute=documents.SpecAttribute(shortname.title(), shortname),
        buckets=[
            documents.Bucket(displayValue=shown, floatValue=number, count=count) for shown, number, count in buckets
        ],
        **{"valueType": kind, **more},
    )


RESISTANCE = spec("resistance", ("1 kΩ", 1000.0, 4), ("2.2 Ω", 2.2, 1), siMin="0", siMax="22000", unitsName="ohms")
CASE = spec("case_package", ("0603", None, 5), siMin=None, siMax="", unitsName="")


@pytest.mark.parametrize("start, limit", [(0, 100), (900, 100), (1000, 100), (1000, 0)])
def test_requested_buckets_are_limited(start: int, limit: int) -> None:
    wanted = facets.request(TABLES, [field("brand.name", start=start, limit=limit)], [], False, ALL)
    assert wanted.size == min(1000, max(10, start + limit))


@pytest.mark.parametrize("name", ["mpn", "avg_price"])
def test_unsupported_facet_is_refused(name: str) -> None:
    with pytest.raises(errors.BadRequest, match=f"cannot count by '{name}'; it can by brand.name"):
        facets.request(TABLES, [field(name)], [], False, ALL)


def test_plan_without_specs_has_no_drilldown() -> None:
    assert facets.request(TABLES, [], [], True, frozenset()).aggregations == frozenset()


FOUND = SimpleNamespace(specAggs=[RESISTANCE, CASE])


def test_suggested_specs_keep_their_rank() -> None:
    found, stats = facets.drilldown_results(TABLES, FOUND, 10, 100)
    assert [facet["spec_drilldown_rank"] for facet in found.values()] == [1, 2]
    assert {field: each["spec_drilldown_rank"] for field, each in stats.items()} == {R: 1}
    assert list(facets.drilldown_results(TABLES, FOUND, 1, 100)[0]) == [R]
    assert facets.drilldown_results(TABLES, FOUND, 0, 100) == ({}, {})


def test_suggested_spec_has_at_most_ten_values() -> None:
    many = SimpleNamespace(specAggs=[spec("resistance", *((f"{n} Ω", float(n), 1) for n in range(30)))])
    values = facets.drilldown_results(TABLES, many, 10, 100)[0][R]["facets"]
    assert [each["value"] for each in values] == [f"{n}.0" for n in range(10)]


def test_requested_spec_keeps_its_counts_and_gets_the_rank() -> None:
    drilled, _ = facets.drilldown_results(TABLES, FOUND, 10, 100)
    asked: dict[str, dict[str, Any]] = {
        "brand.name": {"facets": [], "spec_drilldown_rank": None},
        R: {"facets": [1], "spec_drilldown_rank": None},
    }
    found = facets.with_drilldown(asked, drilled, drilled)
    assert found["brand.name"] == asked["brand.name"]
    assert found[R] == {"facets": [1], "spec_drilldown_rank": 1}
    assert found["specs.case_package.value"] == drilled["specs.case_package.value"]
    # Statistics of a text, which the drilldown itself has none of.
    assert facets.with_drilldown({R: asked[R]}, {}, drilled) == {R: {"facets": [1], "spec_drilldown_rank": 1}}


@pytest.mark.parametrize(
    "name, ends", [(R, (0.0, 22000.0)), ("specs.case_package.value", (None, None)), ("specs.x.value", (None, None))]
)
def test_stats_are_the_upstream_minimum_and_maximum(name: str, ends: tuple[float | None, float | None]) -> None:
    found = facets.stats_result(TABLES, name, FOUND, 1000)
    assert (found["min"], found["max"]) == ends
    unknown = ("mean", "stddev", "missing", "spec_drilldown_rank")
    assert set(found) == {"__class__", "min", "max", "count", *unknown}
    assert all(found[key] is None for key in unknown)


@pytest.mark.parametrize(
    "buckets, size, count",
    [
        ([("1 kΩ", 1000.0, 4), ("2.2 Ω", 2.2, 1)], 3, 5),
        ([("1 kΩ", 1000.0, 4), ("2.2 Ω", 2.2, 1)], 2, None),  # there may be more
        ([("1 kΩ", 1000.0, 4), ("0 Ω or so", None, 1)], 3, 4),
        ([("1 kΩ", 1000.0, 4), ("2.2 Ω", 2.2, None)], 3, None),
        ([], 3, None),  # it has a minimum
    ],
)
def test_stats_count_the_values_of_complete_buckets(buckets: list[Any], size: int, count: int | None) -> None:
    found = SimpleNamespace(specAggs=[spec("resistance", *buckets, siMin="2.2", siMax="1000")])
    assert facets.stats_result(TABLES, R, found, size)["count"] == count


def test_non_numeric_bounds_are_null() -> None:
    odd = SimpleNamespace(specAggs=[spec("resistance", siMin="about 5", siMax="n/a")])
    assert facets.stats_result(TABLES, R, odd, 1000)["min"] is None


def test_metadata_has_only_counted_specs() -> None:
    assert facets.metadata(TABLES, FOUND, [R, "brand.name"]) == {
        "resistance": {
            "__class__": "SpecMetadata",
            "key": "resistance",
            "name": "Resistance",
            "datatype": "decimal",
            "unit": {"__class__": "UnitOfMeasurement", "name": "ohms", "symbol": None},
        }
    }
    assert facets.metadata(TABLES, FOUND, ["specs.case_package.value"])["case_package"]["unit"] is None
    assert facets.metadata(TABLES, SimpleNamespace(), [R]) == {}
