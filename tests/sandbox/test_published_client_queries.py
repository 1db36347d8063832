"""Requests of published clients, as they send them (contract graphql.md §7, §9): headers, sizes, spelling."""

from support.sandbox_client import SandboxClient

from nexar_sandbox.catalog import records, store

# KiCost's: names one after the other with commas and no blanks, and no name for the operation.


ADD_IN = """query MultiMatch($queries: [SupPartMatchQuery!]!, $currency: String!, $country: String!) {
  supMultiMatch(queries: $queries, currency: $currency, country: $country) {
    reference hits parts { v3uid mpn octopartUrl shortDescription manufacturer { id name }
      bestDatasheet { url } estimatedFactoryLeadDays
      sellers { company { id name } offers { sku moq orderMultiple packaging factoryLeadDays inventoryLevel updated
        clickUrl prices { quantity convertedPrice convertedCurrency } } } } } }"""


def numbers(catalog: store.Catalog, count: int) -> list[str]:
    found = map(catalog.part, catalog.search("", records.SearchConditions()).ids)
    return list(dict.fromkeys(part.mpn for part in found if part))[:count]


async def test_ten_queries_of_one_part_from_the_spreadsheet_add_in(
    caller: SandboxClient, catalog: store.Catalog
) -> None:
    part_numbers = numbers(catalog, 10)
    queries = [{"mpn": mpn, "limit": 1, "start": 0, "reference": mpn} for mpn in part_numbers]
    body = {
        "query": ADD_IN,
        "operationName": "MultiMatch",
        "variables": {"queries": queries, "currency": "EUR", "country": "DE"},
    }
    headers = {
        "Authorization": f"Bearer {caller.token}",
        "X-Nexar-Client": "NexarSupplyExcel",
        "X-Nexar-Client-Version": "0.6.1",
    }
    found = (await caller.post(caller.sandbox.graphql_url, json=body, headers=headers)).data["supMultiMatch"]
    assert [one["reference"] for one in found] == part_numbers
    uids = [part["v3uid"] for one in found for part in one["parts"]]
    assert len(uids) == 10
    assert all(len(uid) == 16 and int(uid, 16) for uid in uids)
    prices = [p for one in found for s in one["parts"][0]["sellers"] for o in s["offers"] for p in o["prices"]]
    assert {price["convertedCurrency"] for price in prices} == {"EUR"}


async def test_the_vendors_example_filters_by_life_in_hours(caller: SandboxClient) -> None:
    query = (
        "query($f: Map) { supSearch(filters: $f) { results { part { mpn specs { attribute { shortname } value } } } } }"
    )
    found = (await caller.ask(query, {"f": {"life_hours_": ["(1000__5000)"]}})).data["supSearch"]["results"]
    assert "UVR1H100MDD" in {each["part"]["mpn"] for each in found}
    for each in found:
        values = {spec["attribute"]["shortname"]: spec["value"] for spec in each["part"]["specs"]}
        assert values["life_hours_"] == "2000"
