"""Programs of today's API on the proxy: the library gql, and one that searches, then asks for parts by their ids."""

import asyncio
from typing import Any

import gql
import pytest
from gql.transport.exceptions import TransportQueryError
from gql.transport.requests import RequestsHTTPTransport
from support import running_proxy
from together.graphql.conftest import Pair

# The fields and arguments of Part-DB's two documents (contract graphql.md §9).
PART = """id mpn octopartUrl manufacturer { name } shortDescription category { ancestors { name } name }
  bestImage { url } bestDatasheet { url } manufacturerUrl medianPrice1000 { price currency quantity }
  sellers(includeBrokers: false, authorizedOnly: $authorizedOnly) { company { name homepageUrl }
    offers { clickUrl inventoryLevel moq sku packaging prices { price currency quantity } } }
  specs { attribute { shortname group name id } displayValue value siValue units unitsName unitsSymbol valueType }"""
ARGUMENTS = "$currency: String!, $country: String!, $authorizedOnly: Boolean!"
SEARCH = f"""query partSearch($keyword: String, $limit: Int, {ARGUMENTS}) {{
  supSearch(q: $keyword, inStockOnly: false, limit: $limit, currency: $currency, country: $country) {{
    hits results {{ part {{ {PART} }} }} }} }}"""
BY_ID = f"""query partInfo($ids: [String!]!, {ARGUMENTS}) {{
  supParts(ids: $ids, currency: $currency, country: $country) {{ {PART} }} }}"""
MARKET = {"currency": "EUR", "country": "DE", "authorizedOnly": False}


def client(both: Pair, key: str = running_proxy.KEY) -> gql.Client:
    url = f"{both.environment.proxy.url}/graphql"
    transport = RequestsHTTPTransport(url, headers={"Authorization": f"Bearer {key}"})
    return gql.Client(transport=transport, fetch_schema_from_transport=True)


async def test_gql_reads_the_schema_and_executes_what_it_allows(pair: Any) -> None:
    async with pair() as both:
        document = gql.gql("query ($q: [SupPartMatchQuery!]!) { supMultiMatch(queries: $q) { parts { mpn } } }")
        document.variable_values = {"q": [{"mpn": "SN74S74N", "limit": 1}]}
        found = await asyncio.to_thread(client(both).execute, document)
        assert found == {"supMultiMatch": [{"parts": [{"mpn": "SN74S74N"}]}]}
        assert both.billed == 1


async def test_gql_raises_the_error_of_exhausted_parts(pair: Any) -> None:
    async with pair(application={"parts": 1}) as both:
        document = gql.gql('{ supMultiMatch(queries: [{mpn: "SN74S74N"}]) { parts { mpn } } }')
        with pytest.raises(TransportQueryError, match="You have exceeded your part limit"):
            await asyncio.to_thread(client(both).execute, document)
        assert both.billed == 0


async def test_parts_of_a_search_cost_nothing_by_their_ids(pair: Any) -> None:
    async with pair(application={"features": "all"}) as both:
        found = await both.assert_same(SEARCH, {"keyword": "flip flop", "limit": 4, **MARKET})
        billed = both.billed
        ids = [result["part"]["id"] for result in found.data["supSearch"]["results"]]
        assert len(ids) == billed
        details = await both.assert_same(BY_ID, {"ids": ids, **MARKET})
        assert details.headers["X-Parts-Cost"] == "0"
        assert both.billed == billed
