"""octopart 0.0.24, `OctopartClient.match`: its requests, and the responses that it returns."""

from typing import Any

import pytest
from octopart.client import OctopartClient
from octopart.directives import IncludeDirectives
from octopart.exceptions import OctopartError

pytestmark = pytest.mark.filterwarnings("ignore::schematics.deprecated.SchematicsDeprecationWarning")

SHOWN = {"__class__", "uid", "mpn", "manufacturer", "brand", "octopart_url", "offers", "redirected_uids"}
MICROCHIP = ["ATMEGA328P-PU", "ATMEGA328PPU"]


def mpns(result: dict[str, Any]) -> list[str]:
    return [item["mpn"] for item in result["items"]]


def test_a_part_number_finds_the_part_of_every_maker(octopart_client: OctopartClient) -> None:
    [result] = octopart_client.match([{"mpn": "sn74s74n", "limit": 20}])["results"]
    makers = [item["manufacturer"]["name"] for item in result["items"]]
    assert makers[0] == "Texas Instruments"
    assert sorted(makers) == ["AMD", "Signetics", "Texas Instruments", "Vishay Siliconix"]
    assert result["hits"] == 4


def test_without_a_limit_there_are_three_parts_and_all_hits_are_counted(octopart_client: OctopartClient) -> None:
    reply = octopart_client.match([{"mpn": "SN74S74N"}])
    assert reply["request"]["queries"][0]["limit"] == 3
    assert [(len(result["items"]), result["hits"]) for result in reply["results"]] == [(3, 4)]


def test_results_have_the_order_of_the_queries_and_errors_are_separate(octopart_client: OctopartClient) -> None:
    queries = [{"mpn": "ATMEGA328P-PU"}, {"mpn": "NOSUCHPART-1"}, {}, {"mpn": "SN74S74N"}, {"mpn": "ATMEGA328P-PU"}]
    numbered = [{**query, "reference": f"line {number}"} for number, query in enumerate(queries)]
    results = octopart_client.match(numbered)["results"]
    assert [result["reference"] for result in results] == [query["reference"] for query in numbered]
    assert [mpns(result) for result in results] == [MICROCHIP, [], [], ["SN74S74N"] * 3, MICROCHIP]
    assert [result["error"] for result in results] == [None, None, "Missing search filters", None, None]


@pytest.mark.parametrize(
    "query",
    [
        {"sku": "67K1122"},
        {"mpn_or_sku": "67K1122"},
        {"mpn": "SN74S74N", "brand": "Texas Instruments"},
        {"mpn": "SN74S74N", "seller": "Newark"},
    ],
    ids=lambda query: "+".join(query),
)
def test_sku_brand_and_seller_narrow_it_down_to_one_part(octopart_client: OctopartClient, query: Any) -> None:
    [result] = octopart_client.match([query])["results"]
    assert [item["manufacturer"]["name"] for item in result["items"]] == ["Texas Instruments"]
    assert "67K1122" in [offer["sku"] for offer in result["items"][0]["offers"]]
    assert {offer["seller"]["name"] for offer in result["items"][0]["offers"]} > {"Newark"}


def test_exact_only_respects_punctuation(octopart_client: OctopartClient) -> None:
    loose, exact = (octopart_client.match([{"mpn": "ATMEGA328P-PU"}], exact_only=flag) for flag in (False, True))
    assert (mpns(loose["results"][0]), mpns(exact["results"][0])) == (MICROCHIP, MICROCHIP[:1])
    assert (loose["request"]["exact_only"], exact["request"]["exact_only"]) == (False, True)


@pytest.mark.parametrize("directive", [directive.value for directive in IncludeDirectives])
def test_an_optional_field_is_present_only_when_included(octopart_client: OctopartClient, directive: str) -> None:
    query = [{"mpn": "SN74S74N", "brand": "TI"}]
    without, included = (octopart_client.match(query, includes=names) for names in (None, [directive]))
    assert set(without["results"][0]["items"][0]) == SHOWN
    assert set(included["results"][0]["items"][0]) == SHOWN | {directive}


def test_show_keeps_only_the_named_fields(octopart_client: OctopartClient) -> None:
    reply = octopart_client.match([{"mpn": "ATMEGA328P-PU", "limit": 1}], show=["mpn", "brand.name"])
    assert reply["results"][0]["items"] == [{"mpn": "ATMEGA328P-PU", "brand": {"name": "Microchip"}}]


def test_hide_removes_only_the_named_fields(octopart_client: OctopartClient) -> None:
    reply = octopart_client.match([{"mpn": "ATMEGA328P-PU", "limit": 1}], hide=["offers", "manufacturer"])
    assert set(reply["results"][0]["items"][0]) == SHOWN - {"offers", "manufacturer"}


def test_twenty_queries_make_a_line_beyond_8190_bytes_and_keep_their_references(
    octopart_client: OctopartClient,
) -> None:
    queries = [{"mpn": "SN74LS00N", "limit": 1, "reference": f"{number} " + "Ωµ–" * 20} for number in range(20)]
    results = octopart_client.match(queries)["results"]
    assert [result["reference"] for result in results] == [query["reference"] for query in queries]
    assert [mpns(result) for result in results] == [["SN74LS00N"]] * 20


@pytest.mark.usefixtures("octopart_hurries")
def test_an_unknown_key_is_an_http_error_of_the_client(proxy_url: str) -> None:
    with pytest.raises(OctopartError, match="HTTPError 403"):
        OctopartClient("no-such-key", base_url=f"{proxy_url}/api/v3").match([{"mpn": "SN74S74N"}])
