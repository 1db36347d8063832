"""Tests of the cost of /parts/match: parts by the sandbox's counter, and requests (contract graphql.md §2.1, §6)."""

from typing import Any
from urllib.parse import quote

import pytest
from together.environment import ProxyEnvironment, StartEnvironment

SINGLE = {"mpn": "SN74S74N"}
MPNS = (
    "SN74S74N", "ATMEGA328P-PU", "1N4007", "6N137-000E", "IRF540NPBF", "LM386N-1/NOPB", "C0603C104K5RACTU",
    "MFR-25FBF52-1K", "IRFZ44NPBF", "2N7002,215", "SN74S74D", "SN74S74NE4", "22-23-2021", "FLUKE-424D",
    "105017-0001", "206062-1", "ATMEGA328PPU", "AD9361BBCZ-REEL", "LPC1768FBD100,551", "4062",
)  # fmt: skip


@pytest.mark.parametrize(
    "queries, single, parts, requests, hits",
    [
        # One number: supSearchMpn bills partial matches as well, up to the limit; a second request, which returns no
        # parts, counts the hits where the page leaves them open.
        ([SINGLE], "supSearchMpn", 3, 2, [4]),
        ([SINGLE], "supMultiMatch", 3, 1, [4]),
        ([{**SINGLE, "limit": 20}], "supSearchMpn", 6, 1, [4]),
        ([{**SINGLE, "limit": 20}], "supMultiMatch", 4, 1, [4]),
        ([{**SINGLE, "limit": 0}], "supSearchMpn", 0, 2, [4]),
        ([{**SINGLE, "limit": 1}], "supSearchMpn", 1, 2, [4]),
        ([{"mpn": "SN74S7"}], "supSearchMpn", 3, 1, [0]),
        ([{"mpn": "SN74S7"}], "supMultiMatch", 0, 1, [0]),
        ([{"mpn": "none-such-number"}], "supSearchMpn", 0, 1, [0]),
        # Everything else is asked together, and only matches are billed.
        ([SINGLE, SINGLE], "supSearchMpn", 3, 1, [4, 4]),
        ([{**SINGLE, "brand": "TI"}], "supSearchMpn", 1, 1, [1]),
        ([{"sku": "67K1122"}], "supSearchMpn", 1, 1, [1]),
        ([{"mpn_or_sku": "67K1122"}], "supSearchMpn", 1, 1, [1]),
        ([{"sku": "67K1122", "seller": "Digi-Key"}], "supSearchMpn", 0, 1, [0]),
        ([{"q": "flip-flop"}], "supSearchMpn", 3, 1, [8]),
        ([{"mpn": "atmega328*"}], "supMultiMatch", 3, 1, [5]),
        ([{"mpn": "atmega328*", "limit": 20}], "supMultiMatch", 5, 1, [5]),
        ([{"q": "flip-flop"}, {"mpn": "atmega328*"}, SINGLE, {"sku": "67K1122"}], "supSearchMpn", 10, 3, [8, 5, 4, 1]),
        # A mistake costs nothing.
        ([{}], "supSearchMpn", 0, 0, [0]),
        ([{"mpn": "a*"}, {"mpn": "X", "limit": 21}, 7], "supSearchMpn", 0, 0, [0, 0, 0]),
    ],
)
async def test_billed_parts_and_upstream_requests_match_the_table(
    start: StartEnvironment, queries: list[Any], single: str, parts: int, requests: int, hits: list[int]
) -> None:
    async with start(translation={"single_query": single}) as environment:
        results = await environment.results(*queries)
        assert [result["hits"] for result in results] == hits
        assert (environment.billed_parts, environment.sandbox.request_counts.graphql) == (parts, requests)
        assert (
            f'v3bridge_parts_returned_total{{application="demo"}} {parts:.1f}' in await metrics(environment)
            or not requests
        )


async def metrics(environment: ProxyEnvironment) -> str:
    return await (await environment.proxy.get("/metrics")).text()


async def test_twenty_queries_of_twenty_parts_are_split_at_a_hundred_parts(start: StartEnvironment) -> None:
    queries = [{"mpn": mpn, "limit": 20, "reference": mpn} for mpn in MPNS]
    async with start(application={"features": "all"}) as environment:
        results = await environment.results(*queries)
        asked = [variables["queries"] for variables in environment.sent_variables]
        assert environment.billed_parts == sum(len(result["items"]) for result in results)
    assert [result["reference"] for result in results] == list(MPNS)
    assert [result["items"][0]["mpn"] for result in results] == list(MPNS)
    assert len(asked) == 4
    assert all(sum(query["limit"] for query in chunk) <= 100 for chunk in asked)


async def test_client_input_is_never_part_of_a_document(environment: ProxyEnvironment) -> None:
    odd = "zz} evil { __typename"
    more = f"&show[]={quote(odd)}&include[]={quote(odd)}&slice[{quote(odd)}]=0:1"
    await environment.results({"mpn": odd, "brand": odd}, {"sku": odd, "reference": odd}, more=more)
    sent = [query for variables in environment.sent_variables for query in variables["queries"]]
    assert {"sku": odd, "start": 0, "limit": 3} in sent
    assert {"mpn": odd.upper(), "manufacturer": odd, "start": 0, "limit": 3} in sent
    assert not any("evil" in document.lower() for document, _ in environment.sandbox.documents)
