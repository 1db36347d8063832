"""The old service's /parts/match: matches, their order, and the result of each query (§4)."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from sandbox.legacy_client import LegacyClient
from support import cases


async def _mpns(legacy: LegacyClient, query: dict[str, Any], more: str = "") -> list[str]:
    return [item["mpn"] for item in await legacy.items(query, more)]


async def test_limit_and_start_select_a_page_of_all_hits(legacy: LegacyClient) -> None:
    everything = await legacy.items({"mpn": "SN74S74N", "limit": 20})
    (page,) = await legacy.match({"mpn": "SN74S74N", "start": 1, "limit": 2})
    assert page["items"] == everything[1:3]
    assert page["hits"] == len(everything) == 4


@pytest.mark.parametrize("spelling", ["exact_only=1", "exact_only=true", "exact_only=True", "exact_only"])
async def test_exact_only_respects_punctuation_and_case(legacy: LegacyClient, spelling: str) -> None:
    assert len(await _mpns(legacy, {"mpn": "SN74S74N"}, f"&{spelling}")) == 3
    assert await _mpns(legacy, {"mpn": "SN-74S74N"}, f"&{spelling}") == []


async def test_a_partial_number_matches_only_with_a_wildcard(legacy: LegacyClient) -> None:
    assert await _mpns(legacy, {"mpn": "SN74S7"}) == []
    assert "SN74S74N" in await _mpns(legacy, {"mpn": "SN74S7*", "limit": 20})
    assert "SN74S74N" in await _mpns(legacy, {"mpn": "*74S74*", "limit": 20})


async def test_a_brand_narrows_and_a_seller_selects_without_cutting_the_offers(legacy: LegacyClient) -> None:
    (first,) = await legacy.items({"mpn": "SN74S74N", "brand": "Texas Instruments"})
    seller = first["offers"][0]["seller"]["name"]
    found = await legacy.items({"mpn": "SN74S74N", "seller": seller})
    assert first in found
    assert len({offer["seller"]["name"] for offer in first["offers"]}) > 1


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
