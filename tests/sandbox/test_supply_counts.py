"""Aggregations agree with filtering by their buckets; invalid filters are rejected by name (contract graphql.md
§2.4)."""

from collections.abc import Iterator
from typing import Any

import pytest
from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications

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
async def test_an_invalid_filter_is_rejected_by_name(
    caller: SandboxClient, filters: dict[str, Any], message: str
) -> None:
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


async def test_lifecycle_values_are_not_counted_without_the_feature(start: StartSandbox) -> None:
    query = '{ supSearch(q: "") { specAggs(attributeNames: ["lifecyclestatus", "rohs"]) { attribute { shortname } } } }'
    features = applications.FEATURES - {"LIFECYCLE"}
    plan = (applications.SandboxApplication("plan", "app-plan", "plan-client", "plan-secret", features=features),)
    async with start(applications=plan) as caller:
        shown = (await caller.ask(query)).data["supSearch"]["specAggs"]
    assert [one["attribute"]["shortname"] for one in shown] == ["rohs"]
