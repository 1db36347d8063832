"""Searches: pages, order, filters, aggregations, and what is refused (contract graphql.md §2)."""

from collections.abc import Iterator
from typing import Any

import pytest
from support import cases
from support.sandbox_client import SandboxClient

from nexar_sandbox.catalog import store

START = "start must be between 0 and 1000"
LIMIT = "limit must be between 0 and 100"
MATCH = "query($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) { hits parts { id } } }"


async def test_a_bad_range_gets_both_errors_in_the_vendors_format_start_first(caller: SandboxClient) -> None:
    response = await caller.ask('{\n  supSearchMpn(q: "x", limit: 101, start: 1001) { hits }\n}')
    assert response.status == 200
    assert set(response.body) == {"errors", "extensions"}
    assert response.body["errors"] == [
        {
            "message": message,
            "locations": [{"line": 2, "column": 3}],
            "path": ["supSearchMpn"],
            "extensions": {
                "remote": {"message": message, "path": ["supSearchMpn"]},
                "schemaName": "Supply",
            },
        }
        for message in (START, LIMIT)
    ]


@pytest.mark.parametrize("field", ["supSearch", "supSearchMpn"])
@pytest.mark.parametrize(
    "arguments, messages",
    [
        ("start: -1", [START]),
        ("start: 1001", [START]),
        ("limit: -1", [LIMIT]),
        ("limit: 101", [LIMIT]),
        ("start: -1, limit: -1", [START, LIMIT]),
        ("start: 0, limit: 0", None),
        ("start: 1000, limit: 100", None),
    ],
)
async def test_search_ranges_include_their_ends(
    caller: SandboxClient, field: str, arguments: str, messages: list[str] | None
) -> None:
    response = await caller.ask(f'{{ {field}(q: "x", {arguments}) {{ hits }} }}')
    assert response.status == 200
    assert [error["message"] for error in response.body.get("errors", [])] == (messages or [])


@pytest.mark.parametrize(
    "queries, messages",
    [
        ([{"mpn": "x", "limit": 1}] * 100, None),
        ([{"mpn": "x"}] * 33, None),
        ([{"mpn": "x", "limit": 5}] * 20, None),
        ([{"mpn": "x", "limit": 100}], None),
        ([], None),
        ([{"mpn": "x"}] * 34, ["the sum of all limits must not exceed 100"]),
        ([{"mpn": "x", "limit": 51}] * 2, ["the sum of all limits must not exceed 100"]),
        ([{"mpn": "x", "limit": 0}] * 101, ["the number of queries must not exceed 100"]),
        ([{"mpn": "x", "limit": 101}], [LIMIT]),
        ([{"mpn": "x", "limit": -1}, {"mpn": "x", "start": 1001}], [START, LIMIT]),
    ],
)
async def test_a_multi_match_allows_a_hundred_parts_and_a_hundred_queries(
    caller: SandboxClient, queries: list[dict[str, Any]], messages: list[str] | None
) -> None:
    response = await caller.ask(MATCH, {"queries": queries})
    assert response.status == 200
    if messages is None:
        assert len(response.data["supMultiMatch"]) == len(queries)
    else:
        assert response.messages == messages
        assert all(error["path"] == ["supMultiMatch"] for error in response.body["errors"])
        assert "data" not in response.body


@pytest.mark.parametrize("number, refused", [(100, False), (101, True)])
async def test_a_hundred_ids_are_allowed(caller: SandboxClient, number: int, refused: bool) -> None:
    response = await caller.ask("query($ids: [String!]!) { supParts(ids: $ids) { id } }", {"ids": ["1"] * number})
    assert ("errors" in response.body) is refused
    assert not refused or response.messages == ["the number of ids must not exceed 100"]


async def test_an_error_path_has_the_response_name_of_the_field(caller: SandboxClient) -> None:
    response = await caller.ask('{ ok: supSearch(q: "x") { hits } bad: supSearch(q: "x", limit: 500) { hits } }')
    assert [error["path"] for error in response.body["errors"]] == [["bad"]]
    assert "data" not in response.body


async def test_an_unknown_sort_is_named(caller: SandboxClient) -> None:
    response = await caller.ask('{ supSearch(q: "x", sort: "no_such_sort") { hits } }')
    assert "no_such_sort" in response.messages[0]


async def test_filters_must_be_an_object(caller: SandboxClient) -> None:
    query = 'query($f: Map) { supSearch(q: "x", filters: $f) { hits } }'
    assert (await caller.ask(query, {"f": {"manufacturer_id": ["370"]}})).status == 200
    assert (await caller.ask(query, {"f": None})).status == 200
    assert (await caller.ask(query, {"f": ["370"]})).status == 400
    assert (await caller.ask('{ supSearch(q: "x", filters: "370") { hits } }')).status == 400


async def test_aggregations_cover_all_hits(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ supSearch(q: "resistor", limit: 1) { hits inStockAgg { isInStock count } cadAgg { cadState count }'
        " manufacturerAgg(size: 1000) { company { name } count }"
        " top: manufacturerAgg(size: 1) { company { name } count } categoryAgg(size: 1000) { category { name } count }"
        " distributorAgg { company { name } count } suggestedCategories { category { id } }"
        ' specAggs(attributeNames: ["resistance"], size: 2) { attribute { shortname } buckets { displayValue floatValue'
        " count } min max siMin siMax displayMin displayMax valueType unitsSymbol } } }"
    )
    found = response.data["supSearch"]
    hits = found["hits"]
    for name in ("inStockAgg", "cadAgg", "manufacturerAgg", "categoryAgg"):
        assert sum(bucket["count"] for bucket in found[name]) == hits, name
    assert found["top"] == found["manufacturerAgg"][:1]
    assert found["distributorAgg"][0]["count"] <= hits
    assert found["suggestedCategories"]
    (spread,) = found["specAggs"]
    assert len(spread["buckets"]) == 2
    assert spread["min"] < spread["max"]
    assert float(spread["siMin"]) == spread["min"]
    assert spread["displayMax"].endswith("Ω")
    assert (spread["valueType"], spread["unitsSymbol"]) == ("number", "Ω")


async def test_spec_aggregations_can_be_widened_and_an_unknown_name_is_an_error(caller: SandboxClient) -> None:
    query = (
        'query($n: [String!]!, $s: SupSpecAggsSelection! = EXPLICIT) { supSearch(q: "LM358")'
        " { specAggs(attributeNames: $n, attributeSelection: $s) { attribute { shortname } } } }"
    )
    sizes = []
    for how in ("EXPLICIT", "WITH_SUGGESTED", "ALL"):
        found = (await caller.ask(query, {"n": ["numberofpins"], "s": how})).data["supSearch"]["specAggs"]
        names = [one["attribute"]["shortname"] for one in found]
        assert names[0] == "numberofpins"
        assert len(set(names)) == len(names)
        sizes.append(len(names))
    assert sizes[0] == 1 < sizes[1] < sizes[2]
    response = await caller.ask(query, {"n": ["no_such"]})
    assert "no_such" in response.messages[0]


async def test_applied_filters_have_display_names(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ supSearch(q: "", filters: {manufacturer_id: ["370"], case_package: ["DIP"]}) { appliedCategory { id }'
        " appliedFilters { shortname name values displayValues } } }"
    )
    found = response.data["supSearch"]
    assert found["appliedCategory"] is None
    assert found["appliedFilters"] == [
        {
            "shortname": "manufacturer_id",
            "name": "Manufacturer",
            "values": ["370"],
            "displayValues": ["Texas Instruments"],
        },
        {"shortname": "case_package", "name": "Case/Package", "values": ["DIP"], "displayValues": ["DIP"]},
    ]


async def test_lists_are_complete_or_filtered_by_id_slug_or_path(caller: SandboxClient, catalog: store.Catalog) -> None:
    response = await caller.ask(
        '{ all: supManufacturers { id } one: supManufacturers(ids: ["370"]) { name slug }'
        ' slug: supManufacturers(slugs: ["/manufacturers/texas-instruments"]) { id }'
        " big: supManufacturers(minNumberOfActiveParts: 20) { id } none: supManufacturers(ids: []) { id }"
        ' root: supCategories(ids: ["4161"]) { path ancestors { id } children { id parentId }'
        " relevantAttributes { id } }"
        ' path: supCategories(paths: ["/electronic-parts"]) { id } }'
    )
    data = response.data
    assert len(data["all"]) == len(catalog.reference.manufacturers)
    assert data["one"] == [{"name": "Texas Instruments", "slug": "/manufacturers/texas-instruments"}]
    assert data["slug"] == [{"id": "370"}]
    assert 0 < len(data["big"]) < len(data["all"])
    assert data["none"] == []
    (root,) = data["root"]
    assert root["ancestors"] == []
    assert {child["parentId"] for child in root["children"]} == {"4161"}
    assert root["relevantAttributes"]
    assert data["path"] == [{"id": "4161"}]


async def test_suggestions_and_spellings_come_from_the_catalog(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ supSuggest(q: "SN74S7", partNumbersOnly: true) { text inCategoryId }'
        ' supSpellingCorrection(q: "resistr") { correctionString hits } }'
    )
    assert "SN74S74N" in {one["text"] for one in response.data["supSuggest"]}
    (better,) = response.data["supSpellingCorrection"]
    assert (better["correctionString"], better["hits"] > 0) == ("resistor", True)


HITS = "query($q: String, $f: Map) { supSearch(q: $q, filters: $f, limit: 0) { hits } }"
ALL = (
    "query($q: String) { supSearch(q: $q, limit: 0) { hits"
    " manufacturerAgg(size: 999) { company { id } count } distributorAgg(size: 999) { company { id } count }"
    " categoryAgg(size: 999) { category { id } count } cadAgg { cadState count }"
    " specAggs(attributeNames: [], attributeSelection: ALL, size: 999)"
    " { attribute { shortname } buckets { displayValue count } } } }"
)


def buckets(found: Any) -> Iterator[tuple[str, str, int]]:
    """(filter key, value, count) of each."""
    for one in found["manufacturerAgg"]:
        yield "manufacturer_id", one["company"]["id"], one["count"]
    for one in found["distributorAgg"]:
        yield "distributor_id", one["company"]["id"], one["count"]
    for one in found["categoryAgg"]:
        yield "category_id", one["category"]["id"], one["count"]
    for one in found["cadAgg"]:
        yield "cad_models", one["cadState"], one["count"]
    for spread in found["specAggs"]:
        for one in spread["buckets"]:
            yield spread["attribute"]["shortname"], one["displayValue"], one["count"]


@pytest.mark.parametrize("q", ["microcontroller", "led", "SN74"])
async def test_a_filter_by_any_bucket_finds_as_many_as_the_bucket_counts(caller: SandboxClient, q: str) -> None:
    found = (await caller.ask(ALL, {"q": q})).data["supSearch"]
    counted = list(buckets(found))
    assert len({key for key, _, _ in counted}) > 10
    # Twenty aliases a request: as many as are asked at once by hand.
    for start in range(0, len(counted), 20):
        some = counted[start : start + 20]
        variables: dict[str, Any] = {f"f{i}": {key: [value]} for i, (key, value, _) in enumerate(some)}
        head = ", ".join(f"${name}: Map" for name in variables)
        fields = " ".join(f"{name}: supSearch(q: $q, filters: ${name}, limit: 0) {{ hits }}" for name in variables)
        response = await caller.ask(f"query($q: String, {head}) {{ {fields} }}", {"q": q, **variables})
        hits = [response.data[name]["hits"] for name in variables]
        assert list(zip(some, hits, strict=True)) == [((k, v, n), n) for k, v, n in some]


@cases.parametrize("filters, message")
async def test_invalid_filter_is_rejected_by_name(caller: SandboxClient, filters: dict[str, Any], message: str) -> None:
    searched = await caller.ask(HITS, {"q": "", "f": filters})
    matched = await caller.ask(
        'query($f: Map) { supMultiMatch(queries: [{mpn: "LM358"}], options: {filters: $f}) { hits } }', {"f": filters}
    )
    assert searched.messages == matched.messages == [message]
    assert searched.body["errors"][0]["path"] == ["supSearch"]


async def test_a_filter_may_be_one_value_a_number_or_null_and_a_name(caller: SandboxClient) -> None:
    async def hits(**filters: Any) -> int:
        return int((await caller.ask(HITS, {"q": "", "f": filters})).data["supSearch"]["hits"])

    assert await hits(numberofpins="8") == await hits(numberofpins=8) == await hits(numberofpins=["8"]) > 0
    assert await hits(numberofpins=None) == await hits()
    assert await hits(numberofpins=["8", "14"]) == await hits(numberofpins=["8"]) + await hits(numberofpins=["14"])
    assert await hits(manufacturer_id=["Texas Instruments"]) == await hits(manufacturer_id=["370"]) > 0
    assert await hits(manufacturer_id=["370"], numberofpins=["(__8)"]) < await hits(manufacturer_id=["370"])


async def test_a_search_sorts_by_every_key_with_parts_without_a_value_last(caller: SandboxClient) -> None:
    query = (
        "query($s: String, $d: SupSortDirection) { supSearch(q: \"resistor\", sort: $s, sortDir: $d, limit: 100)"
        " { results { part { mpn manufacturer { name } medianPrice1000 { price } specs { attribute { shortname }"
        " siValue } } } } }"
    )  # fmt: skip

    def resistance(part: Any) -> float | None:
        found = [float(one["siValue"]) for one in part["specs"] if one["attribute"]["shortname"] == "resistance"]
        return found[0] if found else None

    keys = {
        "resistance": resistance,
        "mpn": lambda part: part["mpn"].lower(),
        "manufacturer.displayname": lambda part: part["manufacturer"]["name"].lower(),
        "median_price_1000": lambda part: part["medianPrice1000"] and part["medianPrice1000"]["price"],
    }
    for sort, key in keys.items():
        for direction in ("asc", "desc"):
            found = (await caller.ask(query, {"s": sort, "d": direction})).data["supSearch"]["results"]
            values = [key(one["part"]) for one in found]  # type: ignore[no-untyped-call]
            known = [value for value in values if value is not None]
            assert len(set(known)) > 3, sort
            assert values[: len(known)] == sorted(known, reverse=direction == "desc"), (sort, direction)


async def test_a_category_is_applied_in_any_spelling_of_the_filter(caller: SandboxClient) -> None:
    query = "query($f: Map) { supSearch(q: \"\", filters: $f) { hits appliedCategory { id } } }"  # fmt: skip
    for name in ("Passive Components", "passive components"):
        found = (await caller.ask(query, {"f": {"category_id": [name]}})).data["supSearch"]
        assert found["hits"] > 0
        assert found["appliedCategory"] is not None
