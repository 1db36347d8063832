"""Validation errors with the messages of the service (contract graphql.md §3.3), and its two looser rules."""

from typing import Any

import pytest
from support import cases
from support.sandbox_client import SandboxClient

SEARCH = 'supSearch(q: "x") { hits }'


@cases.parametrize(
    "query, message, extensions",
    (
        "query($a: String, $b: Int) { " + SEARCH + " }",
        "The following variables were not used: a, b.",
        {},
    ),
)
async def test_a_validation_error_gets_400_with_the_message_of_the_service(
    caller: SandboxClient, query: str, message: str, extensions: dict[str, Any]
) -> None:
    response = await caller.ask(query)
    assert (response.status, response.messages) == (400, [message])
    found = dict(response.body["errors"][0]["extensions"])
    assert found.pop("specifiedBy").startswith("http://spec.graphql.org/October2021/#sec-")
    assert found == extensions
    assert response.body["errors"][0]["locations"]
    assert "data" not in response.body


@cases.parametrize("query")
async def test_all_other_rules_of_the_specification_hold(caller: SandboxClient, query: str) -> None:
    response = await caller.ask(query)
    assert response.status == 400
    assert response.messages


@pytest.mark.parametrize(
    "variables, code",
    [({"q": 7}, "HC0016"), ({"q": ["x"]}, "HC0016"), ({"q": None}, "HC0018"), ({}, "HC0018")],
)
async def test_an_invalid_variable_gets_400_with_its_code(
    caller: SandboxClient, variables: dict[str, Any], code: str
) -> None:
    response = await caller.ask("query($q: String!) { supSuggest(q: $q) { text } }", variables)
    assert (response.status, response.body["errors"][0]["extensions"]["code"]) == (400, code)


@pytest.mark.parametrize("field", ["supSearch", "supSearchMpn"])
@cases.parametrize("head, arguments, variables")
async def test_a_search_without_q_equals_one_with_an_empty_q(
    caller: SandboxClient, field: str, head: str, arguments: str, variables: dict[str, Any]
) -> None:
    response = await caller.ask(f"{head} {{ {field}{arguments} {{ hits results {{ part {{ id }} }} }} }}", variables)
    empty = await caller.ask(f'{{ {field}(q: "") {{ hits results {{ part {{ id }} }} }} }}')
    found, everything = response.data[field], empty.data[field]
    assert response.status == 200
    assert found["hits"] == everything["hits"] > 300
    assert found["results"] == everything["results"][: len(found["results"])] != []


async def test_the_vendors_examples_without_q_succeed(caller: SandboxClient) -> None:
    """Contract graphql.md §2.4, from the vendor's page on sorting and filtering."""
    part = "{ hits results { part { mpn manufacturer { name id } specs { attribute { shortname } siValue } } } }"
    sorted_ = f'query SupSearch {{ supSearch(sort: "maxoutputvoltage", sortDir: desc) {part} }}'
    volts = [_spec(hit, "maxoutputvoltage") for hit in (await caller.ask(sorted_)).data["supSearch"]["results"]]
    assert volts == sorted(volts, reverse=True)
    assert volts[0] > 0
    filters = '{manufacturer_id: ["Infineon"], numberofpins: ["(8__16)"]}'
    narrow = f'query filter_test {{ supSearch(filters: {filters} sort: "numberofpins" start: 2) {part} }}'
    found = (await caller.ask(narrow)).data["supSearch"]
    assert found["results"]
    assert found["hits"] == len(found["results"]) + 2
    assert {hit["part"]["manufacturer"]["name"] for hit in found["results"]} == {"Infineon"}
    pins = [_spec(hit, "numberofpins") for hit in found["results"]]
    assert pins == sorted(pins)
    assert 8 <= pins[0] <= pins[-1] <= 16


def _spec(hit: dict[str, Any], name: str) -> float:
    [value] = [one["siValue"] for one in hit["part"]["specs"] if one["attribute"]["shortname"] == name]
    return float(value)
