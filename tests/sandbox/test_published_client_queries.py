"""Requests of published clients, as they send them (contract graphql.md §7, §9): headers, sizes, spelling."""

import dataclasses
from typing import Any

from support.sandbox_client import SandboxClient

from nexar_sandbox import applications
from nexar_sandbox.catalog import records, store

# KiCost's: names one after the other with commas and no blanks, and no name for the operation.
KICOST = """query($input:[SupPartMatchQuery!]!){supMultiMatch(currency:"USD",queries:$input){hits,reference,parts{
manufacturer{name},mpn,octopartUrl,bestDatasheet{url},specs{attribute{shortname},displayValue},
sellers(authorizedOnly:false){company{id,name,homepageUrl},isAuthorized,offers{id,sku,eligibleRegion,inventoryLevel,
packaging,moq,prices{quantity,price,currency,convertedPrice},clickUrl,updated,factoryLeadDays,onOrderQuantity,
orderMultiple,multipackQuantity}}}}}"""
ADD_IN = """query MultiMatch($queries: [SupPartMatchQuery!]!, $currency: String!, $country: String!) {
  supMultiMatch(queries: $queries, currency: $currency, country: $country) {
    reference hits parts { v3uid mpn octopartUrl shortDescription manufacturer { id name }
      bestDatasheet { url } estimatedFactoryLeadDays
      sellers { company { id name } offers { sku moq orderMultiple packaging factoryLeadDays inventoryLevel updated
        clickUrl prices { quantity convertedPrice convertedCurrency } } } } } }"""


def numbers(catalog: store.Catalog, count: int) -> list[str]:
    found = map(catalog.part, catalog.search("", records.SearchConditions()).ids)
    return list(dict.fromkeys(part.mpn for part in found if part))[:count]


async def test_twenty_queries_of_five_parts_with_the_token_header(
    caller: SandboxClient, catalog: store.Catalog
) -> None:
    part_numbers = numbers(catalog, 20)
    queries = [{"mpn": mpn, "limit": 5, "reference": str(place)} for place, mpn in enumerate(part_numbers)]
    headers = {"token": caller.token, "Accept": "*/*"}
    body = {"query": KICOST, "variables": {"input": queries}}
    response = await caller.post(caller.sandbox.graphql_url + "/", json=body, headers=headers)
    found = response.data["supMultiMatch"]
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    assert [one["reference"] for one in found] == [query["reference"] for query in queries]
    assert all(one["hits"] >= len(one["parts"]) >= 1 for one in found)


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


async def test_a_hundred_parts_fit_in_a_request_by_number_id_or_alias(
    caller: SandboxClient, catalog: store.Catalog
) -> None:
    ids = list(catalog.search("", records.SearchConditions()).ids[:100])
    by_id = (await caller.ask("query($i: [String!]!) { supParts(ids: $i) { id } }", {"i": ids})).data["supParts"]
    assert [part["id"] for part in by_id] == ids
    queries = [{"mpn": mpn, "limit": 1} for mpn in numbers(catalog, 100)]
    query = "query($q: [SupPartMatchQuery!]!) { supMultiMatch(queries: $q) { parts { id } } }"
    assert len((await caller.ask(query, {"q": queries})).data["supMultiMatch"]) == 100
    aliases = " ".join(
        f"p{place}: supParts(ids: [{mpn!r}]) {{ id }}".replace("'", '"') for place, mpn in enumerate(ids)
    )
    data: dict[str, Any] = (await caller.ask(f"{{ {aliases} }}")).data
    assert [data[f"p{place}"][0]["id"] for place in range(100)] == ids


async def test_variables_may_be_missing_or_empty(caller: SandboxClient) -> None:
    bodies: tuple[dict[str, Any], ...] = ({}, {"variables": {}}, {"variables": None})
    for more in bodies:
        body = {"query": "{ supAttributes { id } }", **more}
        response = await caller.post(caller.sandbox.graphql_url, json=body, headers={"token": caller.token})
        assert response.data["supAttributes"]


async def test_a_higher_limit_applies_at_once_and_keeps_the_usage(caller: SandboxClient) -> None:
    registry, application = caller.sandbox.applications, applications.DEFAULT_APPLICATION
    match = '{ supParts(ids: ["54445"]) { id } }'
    registry.replace(dataclasses.replace(application, part_limit=1))
    await caller.ask(match)
    assert "part limit of 1." in (await caller.ask(match)).messages[0]
    registry.replace(dataclasses.replace(application, part_limit=2))
    assert (await caller.ask(match)).data["supParts"] == [{"id": "54445"}]
    assert caller.sandbox.part_usage.used(application.application_id) == 2


async def test_the_vendors_example_filters_by_life_in_hours(caller: SandboxClient) -> None:
    query = (
        "query($f: Map) { supSearch(filters: $f) { results { part { mpn specs { attribute { shortname } value } } } } }"
    )
    found = (await caller.ask(query, {"f": {"life_hours_": ["(1000__5000)"]}})).data["supSearch"]["results"]
    assert "UVR1H100MDD" in {each["part"]["mpn"] for each in found}
    for each in found:
        values = {spec["attribute"]["shortname"]: spec["value"] for spec in each["part"]["specs"]}
        assert values["life_hours_"] == "2000"
