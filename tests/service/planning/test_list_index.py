"""Tests of filters, facets and stats over v3 objects in memory (contract v3-rest.md §1.1, §3.6)."""

from typing import Any

import pytest
from support import cases

from proxy import errors
from proxy.kit import slices
from proxy.model import FacetField
from proxy.planning import list_index
from proxy.planning.lucene import Condition

ONE = {
    "__class__": "Category",
    "name": "Resistors",
    "parent_uid": None,
    "num_parts": 80,
    "ancestor_uids": ["a", "b"],
    "known": True,
}


@cases.parametrize("condition, passes")
def test_conditions_select_objects(condition: Any, passes: bool) -> None:
    field, values, *ends = condition
    column = list_index.Column([None, ONE.get(field)])
    assert slices.run_to_end(column.passing(Condition(field, tuple(values), *ends))) == (0x100 if passes else 0)


def test_unknown_field_is_refused_with_the_known_ones() -> None:
    with pytest.raises(errors.BadRequest, match="there is no field 'x'; there are name, parent_uid, num_parts"):
        list_index.check_field("x", ONE)
    with pytest.raises(errors.BadRequest, match="there is no field '__class__'"):
        list_index.check_field("__class__", ONE)
    list_index.check_field("name", ONE)


OBJECTS: dict[str, list[Any]] = {"n": [1, 3, None], "t": ["b", "a", "b"], "l": [["x", "y"], [], ["x"]]}
ALL = 0x010101


@pytest.mark.parametrize(
    "wanted, values, missing",
    [
        (FacetField("t"), [("b", 2), ("a", 1)], 0),
        (FacetField("t", start=1), [("a", 1)], 0),
        (FacetField("t", limit=1), [("b", 2)], 0),
        (FacetField("l"), [("x", 2), ("y", 1)], 1),
        (FacetField("n"), [(1, 1), (3, 1)], 1),
    ],
)
def test_facets_count_every_list_value_and_missing_ones(wanted: FacetField, values: Any, missing: int) -> None:
    found = list_index.Column(OBJECTS[wanted.field]).facet(wanted, ALL)
    assert [(each["value"], each["count"]) for each in found["facets"]] == values
    assert (found["missing"], found["__class__"], found["spec_drilldown_rank"]) == (missing, "SearchFacetResult", None)


def test_stats_describe_numeric_values() -> None:
    found = list_index.Column(OBJECTS["n"]).stats("n", ALL)
    assert (found["min"], found["max"], found["mean"], found["count"], found["missing"]) == (1, 3, 2.0, 2, 1)
    assert found["stddev"] == pytest.approx(2**0.5)


def test_facets_and_stats_cover_the_selected_objects() -> None:
    found = list_index.Column(OBJECTS["t"]).facet(FacetField("t"), 0x000100)
    assert [(each["value"], each["count"]) for each in found["facets"]] == [("a", 1)]
    assert list_index.Column(OBJECTS["n"]).stats("n", 0x000100)["mean"] == 3.0


@pytest.mark.parametrize("objects, missing", [([], 0), ([None], 1)])
def test_stats_of_nothing_are_null(objects: list[Any], missing: int) -> None:
    found = list_index.Column(objects).stats("n", list_index.mask(range(len(objects))))
    assert [found[key] for key in ("min", "max", "mean", "stddev")] == [None] * 4
    assert (found["count"], found["missing"]) == (0, missing)


def test_stats_of_text_are_refused() -> None:
    with pytest.raises(errors.BadRequest, match="stats: t holds no numbers"):
        list_index.Column(OBJECTS["t"]).stats("t", ALL)


@pytest.mark.parametrize("descending", [False, True])
def test_sort_orders_numbers_then_case_insensitive_text_then_missing(descending: bool) -> None:
    values = [None, "b", 10, "A", 9.5, "c", None]
    found = [values[n] for n in list_index.Column(values).ordered(list(range(len(values))), descending)]
    inner = [9.5, 10, "A", "b", "c"]
    assert found == [*(reversed(inner) if descending else inner), None, None]


def test_equal_values_keep_their_order() -> None:
    column = list_index.Column(["b", "a", "B", "a"])
    assert column.ordered([3, 2, 1, 0], False) == [3, 1, 2, 0]
    assert column.ordered([3, 2, 1, 0], True) == [2, 0, 3, 1]


def test_nested_objects_are_counted_by_text() -> None:
    found = list_index.Column([[{"a": 1}], [{"a": 1}], []]).facet(FacetField("imagesets"), ALL)
    assert found["facets"] == [{"value": "{'a': 1}", "count": 2}]
