"""Tests of uids that only one side can know: matched by identity, distinguished from wrong uids."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from proxy.kit import shipped
from proxy.mapping import loader
from proxy.tools.compare.judging import diff, unknown_uids
from proxy.traffic.v3_request import V3Request

MINE = "7be6f0c1a2d3e4f5"  # on no record
TI = "2239e3330e2df5fe"  # on record
SELLER = {"__class__": "Seller", "uid": MINE, "name": "Zoro", "id": "8284"}
PART: dict[str, Any] = {
    "__class__": "Part",
    "uid": "5ec397c9af088104",
    "mpn": "X1",
    "brand": {"__class__": "Brand", "uid": MINE, "name": "Yageo"},
    "manufacturer": {"__class__": "Manufacturer", "uid": "7be6f0c1a2d3e4f6", "name": "Yageo"},
    "category_uids": ["8a1e4714bb3951d9", MINE, "7be6f0c1a2d3e4f7"],
    "offers": [
        {"sku": "A", "seller": SELLER, "packaging": "Reel", "moq": 1},
        {"sku": "A", "seller": SELLER, "packaging": "Tube", "moq": 2},
    ],
}
OTHER, ANOTHER = "7be6f0c1a2d3e4f6", "b4a2d0000000026e"
BRAND, MAKER, SHOP = "b4a2d0000000026d", "3a2fac000000026d", "5e11e4000000205c"
CATEGORIES = ["ca7e600000000005", "ca7e600000000006"]


def differences(baseline: Any, candidate: Any) -> set[tuple[str, str]]:
    """Kind and path of each, as the judge has them."""
    found = diff.diff(baseline, candidate)
    return {(each.kind, each.path) for each in unknown_uids.explained(found, frozenset(), unknown_uids.RECORDED)}


@pytest.fixture
def candidate() -> Any:
    """The part as a side has it that computes uids."""
    part = copy.deepcopy(PART)
    part["brand"]["uid"], part["manufacturer"]["uid"] = BRAND, MAKER
    part["category_uids"][1:] = CATEGORIES
    for offer in part["offers"]:
        offer["seller"] = {**SELLER, "uid": SHOP}
    part["offers"].reverse()
    return part


ALL = {
    ("uid not known", "brand.uid"),
    ("uid not known", "manufacturer.uid"),
    ("uid not known", "category_uids[*]"),
    ("uid not known", "offers[*].seller.uid"),
}


def test_equal_objects_with_computed_uids_differ_only_in_uids(candidate: Any) -> None:
    assert differences(PART, candidate) == {*ALL, ("order", "offers")}
    found = unknown_uids.explained(diff.diff(PART, candidate), frozenset(), unknown_uids.RECORDED)
    assert {pair.path for pair in unknown_uids.pairs(found)} == {"/brands/", "/categories/", "/sellers/"}


def _set(path: str, value: Any) -> Callable[[Any], None]:
    def change(part: Any) -> None:
        *steps, last = path.split(".")
        for step in steps:
            part = part[int(step) if step.isdigit() else step]
        part[int(last) if last.isdigit() else last] = value

    return change


@pytest.mark.parametrize(
    "change, found",
    [
        (_set("brand.uid", MAKER), ("value", "brand.uid")),  # another kind's
        (_set("brand.uid", "0123456789abcdef"), ("value", "brand.uid")),  # nobody's
        (_set("brand.uid", TI), ("value", "brand.uid")),  # another brand's
        (_set("brand.uid", None), ("type", "brand.uid")),
        (_set("brand.name", "Vishay"), ("value", "brand.uid")),  # another brand
        (_set("offers.0.seller.uid", "5e11e4000000205d"), ("value", "offers[*].seller.uid")),  # of another id
        (_set("offers.0.seller.id", "8285"), ("value", "offers[*].seller.id")),
        (_set("category_uids.0", CATEGORIES[0]), ("value", "category_uids[*]")),  # the root is known
        (_set("category_uids", [*CATEGORIES, "8a1e4714bb3951d9"]), ("missing", "category_uids[*]")),  # upside down
        (_set("category_uids", ["8a1e4714bb3951d9", CATEGORIES[0]]), ("missing", "category_uids[*]")),
        (_set("category_uids.1", BRAND), ("missing", "category_uids[*]")),
        (_set("offers.0.sku", "B"), ("missing", "offers[*]")),
        (_set("offers.0.moq", 7), ("value", "offers[*].moq")),
    ],
)
def test_other_differences_are_found_beside_unknown_uids(
    candidate: Any, change: Callable[[Any], None], found: tuple[str, str]
) -> None:
    change(candidate)
    assert found in differences(PART, candidate)


@pytest.mark.parametrize(
    "names, wrong",
    [
        ({MINE: "A", OTHER: "B", BRAND: "A", ANOTHER: "B"}, False),
        ({MINE: "A", OTHER: "B", BRAND: "B", ANOTHER: "A"}, True),
        ({MINE: "A", OTHER: "B", BRAND: "A", ANOTHER: ""}, True),
        ({MINE: "", OTHER: "B", BRAND: "B", ANOTHER: "A"}, False),
        ({MINE: "A", OTHER: "B", BRAND: "B"}, False),
    ],
)
def test_facets_by_uid_must_have_equal_counts_by_name(names: dict[str, str], wrong: bool) -> None:
    def facet(*counts: tuple[str, int]) -> Any:
        values = [{"value": uid, "count": count} for uid, count in counts]
        return {"facet_results": {"fields": {"brand.uid": {"facets": values}}}}

    bodies = facet((MINE, 3), (OTHER, 1)), facet((BRAND, 3), (ANOTHER, 1))
    (found,) = diff.diff(*bodies)
    assert [pair[:3] for pair in unknown_uids.pairs([found])] == [
        (MINE, BRAND, "/brands/"),
        (OTHER, ANOTHER, "/brands/"),
    ]
    assert unknown_uids.contradicted(found, names) == wrong


@pytest.mark.parametrize(
    "path, query, requested_uids",
    [
        (f"/brands/{MINE}", (), {MINE}),
        (f"/parts/{MINE}", (), set()),
        ("/sellers/get_multi", (("uid[]", MINE), ("uid[0]", TI), ("uid", "x")), {MINE, TI}),
        ("/parts/get_multi", (("uid[]", MINE),), set()),
        ("/parts/search", (("filter[fields][category_uids][]", MINE), ("q", TI)), {MINE}),
        ("/parts/search", (("filter[fields][uid][]", MINE),), set()),
        ("/parts/search", (("filter[queries][]", f'brand.uid:({MINE} or "{TI}") AND mpn:{TI[::-1]}'),), {MINE, TI}),
        ("/parts/search", (("filter[queries][]", f"+category_uids:{MINE}"),), {MINE}),
        ("/categories/search", (("filter[fields][parent_uid]", MINE),), {MINE}),
    ],
)
def test_requested_uids_are_found(path: str, query: Any, requested_uids: set[str]) -> None:
    assert unknown_uids.requested(V3Request(path, query)) == requested_uids


NOT_FOUND = {"__class__": "ClientErrorResponse", "message": "not found"}


@pytest.mark.parametrize(
    "v3_request, baseline, candidate, cause",
    [
        (V3Request(f"/brands/{MINE}"), (200, PART["brand"]), (404, NOT_FOUND), "unknown uid requested"),
        (V3Request(f"/brands/{TI}"), (200, PART["brand"]), (404, NOT_FOUND), "status"),  # on record: it has to be found
        (V3Request(f"/brands/{MINE}"), (404, NOT_FOUND), (200, PART["brand"]), "status"),
        (V3Request(f"/brands/{BRAND}"), (404, NOT_FOUND), (200, PART["brand"]), "unknown uid requested"),
        (V3Request(f"/brands/{MINE}"), (200, PART["brand"]), (400, NOT_FOUND), "status"),
        (
            V3Request("/brands/get_multi", (("uid", MINE),)),
            (200, {MINE: PART["brand"]}),
            (200, {}),
            "unknown uid requested",
        ),
        (V3Request("/brands/get_multi", (("uid", TI),)), (200, {TI: PART["brand"]}), (200, {}), "unexplained"),
        (
            V3Request("/parts/search", (("filter[fields][category_uids]", MINE),)),
            (200, {"hits": 3, "results": [{"item": PART}]}),
            (200, {"hits": 0, "results": []}),
            "unknown uid requested",
        ),
        (
            V3Request("/parts/search", (("filter[fields][category_uids]", MINE),)),
            (200, {"hits": 0}),
            (200, {"hits": 3}),
            "extra part",
        ),
    ],
)
def test_request_by_an_unknown_uid_counts_with_its_own_cause(
    judge: Any, response: Any, v3_request: V3Request, baseline: Any, candidate: Any, cause: str
) -> None:
    sides = (response(body, status) for status, body in (baseline, candidate))
    found = judge().compare(v3_request, tuple(sides))
    assert {each.cause for each in found.findings} == {cause}
    assert (bool(found.findings), found.unknown_uids) == (True, ())


def test_own_uid_table_makes_the_uid_recorded(judge: Any, response: Any) -> None:
    pair = response(PART["brand"]), response({**PART["brand"], "uid": BRAND})
    found = judge(uids=frozenset({MINE})).compare(V3Request(f"/brands/{MINE}"), pair)
    assert [each.difference.kind for each in found.findings] == ["value"]


def test_list_of_recorded_uids_is_complete() -> None:
    """The list is separate from the proxy's table; a new uid is added to both."""
    tables = loader.read_uids(shipped("mappings") / "uids.yaml")
    assert {each.uid for entries in tables.values() for each in entries} == unknown_uids.RECORDED
