"""The old service's /parts/match and /parts/search: matches, filters, order and errors (§1.1, §3.6, §4)."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from sandbox.legacy_client import LegacyClient
from support import cases


async def _mpns(legacy: LegacyClient, query: dict[str, Any], more: str = "") -> list[str]:
    return [item["mpn"] for item in await legacy.items(query, more)]


@pytest.mark.parametrize("spelling", ["exact_only=1", "exact_only=true", "exact_only=True", "exact_only"])
async def test_exact_only_respects_punctuation_and_case(legacy: LegacyClient, spelling: str) -> None:
    assert len(await _mpns(legacy, {"mpn": "SN74S74N"}, f"&{spelling}")) == 3
    assert await _mpns(legacy, {"mpn": "SN-74S74N"}, f"&{spelling}") == []


async def test_a_partial_number_matches_only_with_a_wildcard(legacy: LegacyClient) -> None:
    assert await _mpns(legacy, {"mpn": "SN74S7"}) == []
    assert "SN74S74N" in await _mpns(legacy, {"mpn": "SN74S7*", "limit": 20})
    assert "SN74S74N" in await _mpns(legacy, {"mpn": "*74S74*", "limit": 20})


async def test_a_sku_matches_its_part_with_all_offers(legacy: LegacyClient) -> None:
    (part,) = await legacy.items({"mpn": "SN74S74N", "brand": "Texas Instruments"})
    digikey = next(offer for offer in part["offers"] if offer["seller"]["name"] == "Digi-Key")
    for name in ("sku", "mpn_or_sku"):
        assert await legacy.items({name: digikey["sku"]}) == [part]


@pytest.mark.parametrize("reference", [7, "a:b", None, 1.5, [1], {"line": 3}, 2**70])
async def test_reference_is_returned_with_its_own_type(legacy: LegacyClient, reference: Any) -> None:
    (result,) = await legacy.match({"mpn": "SN74S74N", "reference": reference})
    assert result["reference"] == reference
    assert type(result["reference"]) is type(reference)


async def test_every_query_is_echoed_with_all_nine_keys(legacy: LegacyClient) -> None:
    queries = quote(json.dumps([{"mpn": "X1", "flavor": "red"}, "no query"]))
    body = await legacy.read(f"/parts/match?queries={queries}&exact_only=0")
    defaults = dict.fromkeys(("mpn", "brand", "sku", "seller", "mpn_or_sku", "reference"))
    plain = {"__class__": "PartsMatchQuery", "q": "", "start": 0, "limit": 3, **defaults}
    assert body["request"] == {
        "__class__": "PartsMatchRequest",
        "queries": [{**plain, "mpn": "X1"}, plain],
        "exact_only": False,
    }


@cases.parametrize("query, words")
async def test_an_invalid_query_has_its_own_error(legacy: LegacyClient, query: dict[str, Any], words: str) -> None:
    mistaken, good = await legacy.match(query, {"mpn": "1N4007"})
    assert (mistaken["items"], mistaken["hits"]) == ([], 0)
    assert words in mistaken["error"]
    assert good["items"]


@pytest.mark.parametrize("queries", ["", "[", "{}", "5", "[NaN]", "[" * 4000, json.dumps([{"mpn": "A"}] * 21)])
async def test_invalid_queries_get_400(legacy: LegacyClient, queries: str) -> None:
    response = await legacy.get(f"/parts/match?queries={quote(queries, safe='[]')}")
    assert (response.status, response.json["__class__"]) == (400, "ClientErrorResponse")


RESISTANCE = "specs.resistance.value"


async def _items(legacy: LegacyClient, more: str) -> list[dict[str, Any]]:
    body = await legacy.read(f"/parts/search?limit=100&include[]=specs&{more}")
    assert body["hits"] == len(body["results"]) or body["hits"] > 100
    return [result["item"] for result in body["results"]]


async def test_a_search_of_parts_has_snippets_and_the_callers_country(legacy: LegacyClient) -> None:
    body = await legacy.read("/parts/search?q=SN74S74N&limit=1")
    assert (body["user_country"], body["user_currency"]) == ("US", "USD")
    assert "flip-flop" in body["results"][0]["snippet"]
    assert (await legacy.read("/brands/search?q=texas&limit=1"))["results"][0]["snippet"] is None


@pytest.mark.parametrize("spelling", ["filter[fields][brand.name][]", "filter[fields][brand.name]"])
async def test_a_field_is_filtered_by_whole_values(legacy: LegacyClient, spelling: str) -> None:
    found = await _items(legacy, f"q=&{spelling}=Texas+Instruments")
    assert {item["brand"]["name"] for item in found} == {"Texas Instruments"}
    assert await _items(legacy, f"q=&{spelling}=Texas") == []
    assert {item["brand"]["name"] for item in await _items(legacy, f"q=&{spelling}=Texas*")} == {"Texas Instruments"}


async def test_uids_of_sellers_and_categories_filter(legacy: LegacyClient) -> None:
    resistors = await _items(legacy, "q=&filter[fields][category_uids][]=5c6a91606d4187ad&include[]=category_uids")
    assert {"5c6a91606d4187ad"} < {uid for item in resistors for uid in item["category_uids"][2:]}
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
async def test_filter_queries_have_ranges_and_groups(legacy: LegacyClient, query: str, low: float, high: float) -> None:
    found = await _items(legacy, f"q=&filter[queries][]={quote(query)}")
    assert found
    assert all(low <= float(item["specs"]["resistance"]["value"][0]) <= high for item in found)
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


async def test_parts_are_ordered_by_several_fields_and_by_score(legacy: LegacyClient) -> None:
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
