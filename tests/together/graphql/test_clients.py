"""A program of today's API on the proxy, which searches, then asks for parts by their ids."""

from typing import Any

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


async def test_parts_of_a_search_cost_nothing_by_their_ids(pair: Any) -> None:
    async with pair(application={"features": "all"}) as both:
        found = await both.assert_same(SEARCH, {"keyword": "flip flop", "limit": 4, **MARKET})
        billed = both.billed
        ids = [result["part"]["id"] for result in found.data["supSearch"]["results"]]
        assert len(ids) == billed
        details = await both.assert_same(BY_ID, {"ids": ids, **MARKET})
        assert details.headers["X-Parts-Cost"] == "0"
        assert both.billed == billed
