"""The old service's /parts/search: filters, filter queries, descriptions and order (§1.1, §3.6)."""

from typing import Any
from urllib.parse import quote

import pytest
from sandbox.legacy_client import LegacyClient

RESISTANCE = "specs.resistance.value"


async def _items(legacy: LegacyClient, more: str) -> list[dict[str, Any]]:
    body = await legacy.read(f"/parts/search?limit=100&include[]=specs&{more}")
    assert body["hits"] == len(body["results"]) or body["hits"] > 100
    return [result["item"] for result in body["results"]]


def _resistance(item: dict[str, Any]) -> float:
    return float(item["specs"]["resistance"]["value"][0])


async def test_a_search_response_has_request_facets_and_statistics(legacy: LegacyClient) -> None:
    body = await legacy.read("/parts/search?q=SN74S74N&limit=1")
    assert body["__class__"] == "SearchResponse"
    assert (body["user_country"], body["user_currency"]) == ("US", "USD")
    assert (body["facet_results"], body["stats_results"]) == ({"fields": {}, "queries": {}}, {})
    (result,) = body["results"]
    assert (result["__class__"], result["item"]["mpn"]) == ("SearchResult", "SN74S74N")
    assert "flip-flop" in result["snippet"]
    assert body["hits"] >= 4


@pytest.mark.parametrize("spelling", ["filter[fields][brand.name][]", "filter[fields][brand.name]"])
async def test_a_field_is_filtered_by_whole_values(legacy: LegacyClient, spelling: str) -> None:
    found = await _items(legacy, f"q=&{spelling}=Texas+Instruments")
    assert {item["brand"]["name"] for item in found} == {"Texas Instruments"}
    assert await _items(legacy, f"q=&{spelling}=Texas") == []
    assert {item["brand"]["name"] for item in await _items(legacy, f"q=&{spelling}=Texas*")} == {"Texas Instruments"}


async def test_uids_of_sellers_and_categories_filter(legacy: LegacyClient) -> None:
    resistors = await _items(legacy, "q=&filter[fields][category_uids][]=5c6a91606d4187ad&include[]=category_uids")
    assert resistors
    assert all("5c6a91606d4187ad" in item["category_uids"] for item in resistors)
    sold = await _items(legacy, "q=&filter[fields][offers.seller.uid][]=2c3be9310496fffc&filter[fields][mpn][]=1N4007")
    assert all("Digi-Key" in {offer["seller"]["name"] for offer in item["offers"]} for item in sold)
    assert {item["mpn"] for item in sold} == {"1N4007"}
    assert await _items(legacy, "q=&filter[fields][category_uids][]=ffffffffffffffff") == []


@pytest.mark.parametrize(
    "query, low, high",
    [
        (f"{RESISTANCE}:[1000 TO 10000]", 1000, 10_000),
        (f"{RESISTANCE}:[* TO 1e3]", 0, 1000),
        (f"{RESISTANCE}:[10000 TO *]", 10_000, 1e12),
        (f"{RESISTANCE}:(1000 or 10000)", 1000, 10_000),
        (f'{RESISTANCE}:[1 TO *] AND brand.name:(Vishay OR "Yageo")', 1, 1e12),
        (f"({RESISTANCE}:[1 TO 1e9]) {RESISTANCE}:[* TO 100]", 1, 100),
    ],
)
async def test_filter_queries_support_ranges_groups_and_several_fields(
    legacy: LegacyClient, query: str, low: float, high: float
) -> None:
    found = await _items(legacy, f"q=&filter[queries][]={quote(query)}")
    assert found
    assert all(low <= _resistance(item) <= high for item in found)
    if "brand" in query:
        assert {item["brand"]["name"] for item in found} <= {"Vishay", "Yageo"}


@pytest.mark.parametrize(
    "query",
    [
        "red", "flavor:red", f"{RESISTANCE}:{{1 TO 5}}", "NOT mpn:A", "mpn:A OR uid:B", "mpn:A~", "mpn:(",
        f"{RESISTANCE}:[a TO b]",
    ],
)  # fmt: skip
async def test_an_unsupported_filter_query_gets_400(legacy: LegacyClient, query: str) -> None:
    response = await legacy.get(f"/parts/search?q=&filter[queries][]={quote(query)}")
    assert (response.status, response.json["__class__"]) == (400, "ClientErrorResponse")


async def test_parts_are_ordered_by_prices_specs_and_several_fields(legacy: LegacyClient) -> None:
    up = [
        _resistance(item)
        for item in await _items(legacy, f"q=&sortby={RESISTANCE}+asc&filter[queries][]={RESISTANCE}:[*+TO+*]")
    ]
    assert up == sorted(up)
    by_two = await _items(legacy, "q=resistor&sortby=brand.name+desc,mpn+asc")
    keys = [(item["brand"]["name"], item["mpn"]) for item in by_two]
    assert [name for name, _ in keys] == sorted((name for name, _ in keys), key=str.casefold, reverse=True)
    for name in {name for name, _ in keys}:
        mpns = [mpn for brand, mpn in keys if brand == name]
        assert mpns == sorted(mpns, key=str.casefold)
    plain = await _items(legacy, "q=resistor&sortby=score+desc")
    assert plain == await _items(legacy, "q=resistor")
    assert await _items(legacy, "q=resistor&sortby=score+asc") == plain[::-1]


@pytest.mark.parametrize(
    "mistake", ["sortby=flavor+asc", "sortby=category_uids+asc", "stats[mpn][include]=1", "filter[fields][flavor]=x"]
)
async def test_an_unknown_filter_field_gets_400(legacy: LegacyClient, mistake: str) -> None:
    assert (await legacy.get(f"/parts/search?q=resistor&{mistake}")).status == 400


async def test_descriptions_can_be_counted(legacy: LegacyClient) -> None:
    """A public client requests this facet, and those of specs that few parts have."""
    body = await legacy.read(
        "/parts/search?q=SN74S74N&limit=100&include[]=descriptions&facet[fields][descriptions.value][include]=true"
        "&facet[fields][descriptions.value][limit]=100&spec_drilldown[include]=true&spec_drilldown[limit]=100&facet[fields][specs.wire_gauge.value][include]=true"
    )
    texts = [each["value"] for result in body["results"] for each in result["item"]["descriptions"]]
    fields = body["facet_results"]["fields"]
    assert {each["value"]: each["count"] for each in fields["descriptions.value"]["facets"]} == {
        text: texts.count(text) for text in texts
    }
    assert fields["specs.wire_gauge.value"] == {
        "__class__": "SearchFacetResult",
        "facets": [],
        "missing": body["hits"],
        "spec_drilldown_rank": None,
    }


async def test_a_limit_above_100_is_rejected(legacy: LegacyClient) -> None:
    """The GraphQL service, its successor, refuses too (contract graphql.md §2.2); whether v3 did is not on record."""
    response = await legacy.get("/parts/search?q=resistor&start=1&limit=999")
    assert (response.status, response.json["__class__"]) == (400, "ClientErrorResponse")
    assert "100" in response.json["message"].replace("999", "")
