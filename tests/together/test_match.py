"""Tests of parts/match against the sandbox: v3's match rules (contract v3-rest.md §4), as a client sees them."""

from typing import Any

import pytest
from together.environment import ProxyEnvironment

SN74S74N = {"mpn": "SN74S74N"}


def mpns(result: Any) -> list[str]:
    return [item["mpn"] for item in result["items"]]


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


async def test_text_beside_an_mpn_narrows_its_matches(environment: ProxyEnvironment) -> None:
    both, narrowed, nothing, itself = await environment.results(
        {**SN74S74N, "q": "flip-flop"},
        {**SN74S74N, "q": "dual", "brand": "Texas Instruments"},
        {**SN74S74N, "q": "resistor"},
        {**SN74S74N, "q": "sn 74S74-N"},
    )
    assert [each["hits"] for each in (both, narrowed, nothing, itself)] == [4, 1, 0, 4]
    assert set(mpns(both)) == {"SN74S74N"}
    assert len(mpns(both)) == 3


@pytest.mark.parametrize("query, name", [({"sku": "67K1122"}, "sku"), ({"mpn": "SN74*"}, "mpn")])
async def test_text_beside_what_is_no_word_is_refused(
    environment: ProxyEnvironment, query: dict[str, str], name: str
) -> None:
    (refused,) = await environment.results({**query, "q": "flip-flop"})
    assert (refused["error"], refused["items"]) == (f"q and {name} cannot be combined", [])
    assert environment.billed_parts == 0


async def test_lone_surrogate_fails_only_its_query(environment: ProxyEnvironment) -> None:
    queries = '[{"mpn":"SN74S74N","reference":"\\ud83d"},{"mpn":"\\ud800"},{"mpn":"X\\udfff1"}]'
    first, second, third = (await environment.proxy.match(queries))["results"]
    assert (len(first["items"]), first["reference"]) == (3, "?")
    assert (second["error"], third["error"]) == ("mpn has no letters or digits", None)
