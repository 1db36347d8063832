"""Tests of parts/match against the sandbox: v3's match rules (contract v3-rest.md §4), as a client sees them."""

from typing import Any

import pytest
from together.environment import ProxyEnvironment

SN74S74N = {"mpn": "SN74S74N"}
INCLUDES = {
    "short_description", "descriptions", "imagesets", "datasheets", "compliance_documents", "reference_designs",
    "cad_models", "specs", "category_uids", "external_links", "broker_listings",
}  # fmt: skip


def mpns(result: Any) -> list[str]:
    return [item["mpn"] for item in result["items"]]


def makers(result: Any) -> list[str]:
    return [item["brand"]["name"] for item in result["items"]]


async def test_mpn_of_four_manufacturers_has_four_hits_and_three_items(environment: ProxyEnvironment) -> None:
    (result,) = await environment.results(SN74S74N)
    assert (result["hits"], result["error"], result["reference"]) == (4, None, None)
    assert makers(result) == ["Texas Instruments", "Signetics", "Vishay Siliconix"]
    assert {item["uid"] for item in result["items"]} >= {"5ec397c9af088104"}


async def test_start_and_limit_select_a_page(environment: ProxyEnvironment) -> None:
    (first,) = await environment.results({**SN74S74N, "limit": 2})
    (second,) = await environment.results({**SN74S74N, "limit": 2, "start": 2})
    (third,) = await environment.results({**SN74S74N, "limit": 2, "start": 4})
    (none,) = await environment.results({**SN74S74N, "limit": 0})
    assert makers(first) + makers(second) == ["Texas Instruments", "Signetics", "Vishay Siliconix", "AMD"]
    assert [page["hits"] for page in (first, second, third, none)] == [4, 4, 4, 4]
    assert third["items"] == none["items"] == []


@pytest.mark.parametrize("single", ["supSearchMpn", "supMultiMatch"])
async def test_both_forms_of_a_single_query_give_equal_results(start: Any, single: str) -> None:
    async with start(translation={"single_query": single}) as environment:
        (result,) = await environment.results({**SN74S74N, "limit": 20})
        (prefix,) = await environment.results({"mpn": "SN74S7", "limit": 20})
    assert mpns(result) == ["SN74S74N"] * 4
    assert (result["hits"], prefix["hits"], prefix["items"]) == (4, 0, [])


@pytest.mark.parametrize("number", ["ATMEGA328P-PU", "atmega328ppu", "ATmega 328P/PU"])
async def test_punctuation_and_case_are_ignored(environment: ProxyEnvironment, number: str) -> None:
    (alone,) = await environment.results({"mpn": number})
    (among, _) = await environment.results({"mpn": number}, SN74S74N)
    assert sorted(mpns(alone)) == sorted(mpns(among)) == ["ATMEGA328P-PU", "ATMEGA328PPU"]
    assert alone["hits"] == among["hits"] == 2


async def test_exact_only_respects_punctuation_and_case(environment: ProxyEnvironment) -> None:
    more = "&exact_only=true"
    (alone,) = await environment.results({"mpn": "ATMEGA328P-PU"}, more=more)
    several = await environment.results(
        {"mpn": "ATMEGA328PPU"}, {"mpn": "atmega328p-pu"}, {"mpn": "ATMEGA328"}, more=more
    )
    assert (mpns(alone), alone["hits"]) == (["ATMEGA328P-PU"], 1)
    assert [(mpns(result), result["hits"]) for result in several] == [(["ATMEGA328PPU"], 1), ([], 0), ([], 0)]


@pytest.mark.parametrize("kind", ["mpn_or_sku", "sku"])
async def test_exact_only_compares_skus_exactly(environment: ProxyEnvironment, kind: str) -> None:
    exact, other = await environment.results({kind: "67K1122"}, {kind: "67k-1122"}, more="&exact_only=1")
    assert (mpns(exact), other["items"], other["hits"]) == (["SN74S74N"], [], 0)


@pytest.mark.parametrize(
    "number, first, hits", [("SN74S74N", 5, 4), ("SN74S74N", 6, 4), ("SN74S74N", 80, 4), ("LM358", 20, 1)]
)
async def test_hits_are_equal_beyond_the_last_page(
    environment: ProxyEnvironment, number: str, first: int, hits: int
) -> None:
    (result,) = await environment.results({"mpn": number, "start": first})
    assert (result["items"], result["hits"]) == ([], hits)


async def test_partial_mpn_has_no_hits_beyond_the_page(environment: ProxyEnvironment) -> None:
    (result,) = await environment.results({"mpn": "ATMEGA328P", "start": 10})
    assert (result["items"], result["hits"]) == ([], 0)


@pytest.mark.parametrize("number, hits", [("ATMEGA328P-PU", 1), ("ATMEGA328P-*", 4), ("*P-PU", 1), ("ATMEGA*-PU", 1)])
@pytest.mark.parametrize("first, limit", [(0, 0), (0, 1), (1, 1), (0, 20), (30, 3)])
async def test_exact_only_gives_equal_hits_on_every_page(
    environment: ProxyEnvironment, number: str, hits: int, first: int, limit: int
) -> None:
    query = {"mpn": number, "start": first, "limit": limit}
    (alone,) = await environment.results(query, more="&exact_only=1")
    among, _ = await environment.results(query, SN74S74N, more="&exact_only=1")
    assert alone["hits"] == among["hits"] == hits
    assert len(alone["items"]) == len(among["items"]) == max(0, min(limit, hits - first))


async def test_lone_surrogate_fails_only_its_query(environment: ProxyEnvironment) -> None:
    queries = '[{"mpn":"SN74S74N","reference":"\\ud83d"},{"mpn":"\\ud800"},{"mpn":"X\\udfff1"}]'
    first, second, third = (await environment.proxy.match(queries))["results"]
    assert (len(first["items"]), first["reference"]) == (3, "?")
    assert (second["error"], third["error"]) == ("mpn has no letters or digits", None)


async def test_wildcard_matches_any_text(environment: ProxyEnvironment) -> None:
    (result,) = await environment.results({"mpn": "atmega328*", "limit": 20})
    assert result["hits"] == len(result["items"]) == 5
    assert all(mpn.startswith("ATMEGA328") for mpn in mpns(result))
    (inside,) = await environment.results({"mpn": "ATMEGA*PU", "limit": 20})
    assert set(mpns(inside)) >= {"ATMEGA328P-PU", "ATMEGA328PPU"}
    assert all(mpn.startswith("ATMEGA") and mpn.endswith("PU") for mpn in mpns(inside))


async def test_sku_query_returns_offers_of_all_sellers(environment: ProxyEnvironment) -> None:
    (result,) = await environment.results({"sku": "67K1122"})
    (item,) = result["items"]
    assert (item["mpn"], item["brand"]["name"], result["hits"]) == ("SN74S74N", "Texas Instruments", 1)
    sellers = {offer["seller"]["name"] for offer in item["offers"]}
    assert len(sellers) > 10
    assert {offer["seller"]["name"] for offer in item["offers"] if offer["sku"] == "67K1122"} == {"Newark"}


async def test_seller_filter_selects_parts_and_keeps_all_offers(environment: ProxyEnvironment) -> None:
    right, wrong, listed = await environment.results(
        {"sku": "67K1122", "seller": "Newark"},
        {"sku": "67K1122", "seller": "Digi-Key"},
        {**SN74S74N, "seller": "Mouser"},
    )
    assert (right["hits"], wrong["hits"], listed["hits"]) == (1, 0, 1)
    assert len({offer["seller"]["name"] for offer in listed["items"][0]["offers"]}) > 10


async def test_mpn_or_sku_matches_both(environment: ProxyEnvironment) -> None:
    by_sku, by_mpn = await environment.results({"mpn_or_sku": "67K1122"}, {"mpn_or_sku": "SN74S74N"})
    assert (makers(by_sku), by_mpn["hits"]) == (["Texas Instruments"], 4)


@pytest.mark.parametrize("brand", ["Texas Instruments", "texas instruments", "TI", "Texas Instrument"])
async def test_brand_match_is_tolerant(environment: ProxyEnvironment, brand: str) -> None:
    (result,) = await environment.results({**SN74S74N, "brand": brand})
    assert (makers(result), result["hits"]) == (["Texas Instruments"], 1)


async def test_free_text_or_brand_alone_returns_parts(environment: ProxyEnvironment) -> None:
    (text,) = await environment.results({"q": "flip-flop"})
    (narrowed,) = await environment.results({"q": "flip flop", "brand": "Texas Instruments"})
    (brand,) = await environment.results({"brand": "Texas Instruments"})
    assert text["hits"] > len(text["items"]) == 3
    assert set(makers(narrowed)) == set(makers(brand)) == {"Texas Instruments"}


async def test_alternate_mpn_finds_the_part_under_its_main_mpn(environment: ProxyEnvironment) -> None:
    (alone,) = await environment.results({"mpn": "6N137"})
    (among, _) = await environment.results({"mpn": "6n-137"}, SN74S74N)
    assert mpns(alone) == mpns(among) == ["6N137-000E"]


async def test_merged_part_resolves_to_the_surviving_part(environment: ProxyEnvironment) -> None:
    (result,) = await environment.results({"mpn": "206062-1"})
    (item,) = result["items"]
    assert item["uid"] == "bd4d768f82c5628a"


async def test_references_keep_type_and_duplicates(environment: ProxyEnvironment) -> None:
    references: list[Any] = [0, "a:b", 1.5, None, True, [1, {"x": None}], {"row": 7}, "", 12345678901234567890123]
    reply = await environment.reply(*({**SN74S74N, "limit": 1, "reference": reference} for reference in references))
    assert [result["reference"] for result in reply["results"]] == references
    assert [query["reference"] for query in reply["request"]["queries"]] == references
    assert [type(result["reference"]) for result in reply["results"]] == list(map(type, references))


async def test_request_is_echoed_with_all_nine_keys(environment: ProxyEnvironment) -> None:
    reply = await environment.reply({"sku": "67K1122", "unknown": 1}, more="&exact_only")
    assert reply["request"] == {
        "__class__": "PartsMatchRequest",
        "exact_only": True,
        "queries": [
            {
                "__class__": "PartsMatchQuery",
                "q": "", "mpn": None, "brand": None, "sku": "67K1122", "seller": None, "mpn_or_sku": None,
                "start": 0, "limit": 3, "reference": None,
            }
        ],
    }  # fmt: skip
    assert (reply["__class__"], type(reply["msec"])) == ("PartsMatchResponse", int)


async def test_include_adds_exactly_its_fields(environment: ProxyEnvironment) -> None:
    (plain,) = await environment.results(SN74S74N)
    (full,) = await environment.results(SN74S74N, more="".join(f"&include[]={name}" for name in INCLUDES))
    bare = {"__class__", "uid", "mpn", "manufacturer", "brand", "octopart_url", "offers", "redirected_uids"}
    assert {frozenset(item) for item in plain["items"]} == {frozenset(bare)}
    assert {frozenset(item) for item in full["items"]} == {frozenset(bare | INCLUDES)}
    item = full["items"][0]
    assert item["category_uids"][0] == "8a1e4714bb3951d9"
    assert {spec["__class__"] for spec in item["specs"].values()} == {"SpecValue"}
    assert item["specs"]["case_package"]["value"] == ["PDIP"]
    assert item["datasheets"][0]["__class__"] == "Datasheet"


async def test_bad_query_among_good_ones_has_its_own_error(environment: ProxyEnvironment) -> None:
    empty, good, many = await environment.results({}, SN74S74N, {"mpn": "X", "limit": 21})
    assert (empty["error"], empty["items"], good["hits"], good["error"]) == ("Missing search filters", [], 4, None)
    assert many["error"] == "limit must be between 0 and 20, not 21"
