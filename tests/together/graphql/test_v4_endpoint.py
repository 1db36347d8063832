"""v4's GraphQL endpoint and its REST wrapper: documents in its names, parts and envelope as it had them, and money."""

import json
from typing import Any
from urllib.parse import quote

import pytest
import yarl
from support import cases, running_proxy
from support.running_proxy import KEY
from together.environment import ProxyEnvironment, RawResponse, lowercase_names
from together.graphql.conftest import GraphQLReply, Pair

PATH = "/api/v4/endpoint"
TOKEN = {"token": running_proxy.KEY}
# What a stock management program sends, shortened.
QUERY = """query MyPartSearch($q: String!, $filters: Map, $limit: Int!, $start: Int) {
  search(q: $q, filters: $filters, limit: $limit, start: $start, sort_dir: asc) {
    hits
    results { part { ...fields } }
  }
}
fragment fields on Part {
  __typename id mpn short_description
  manufacturer { id name homepage_url is_verified }
  best_datasheet { url page_count }
  specs { attribute { id name shortname group } display_value }
  sellers(include_brokers: false) {
    company { name is_distributorapi }
    offers { sku inventory_level moq prices { quantity price currency } }
  }
}"""


async def ask(both: Pair, query: Any, variables: Any = None, name: str | None = None, **headers: str) -> GraphQLReply:
    sent = {"query": query, "variables": variables, "operationName": name}
    return await both.post(f"{both.url}{PATH}", sent, **(headers or TOKEN))


async def test_program_gets_the_data_of_the_upstream_in_v4_names(pair: Any) -> None:
    async with pair(application={"features": "all"}) as both:
        variables = {"q": "flip flop", "filters": {"manufacturer_id": ["370"]}, "limit": 2}
        reply = await ask(both, QUERY, variables)
        assert reply.status == 200, reply.json
        (first, second) = reply.data["search"]["results"]
        assert list(first["part"]) == [
            "__typename", "id", "mpn", "short_description", "manufacturer", "best_datasheet", "specs", "sellers",
        ]  # fmt: skip
        assert (first["part"]["__typename"], first["part"]["manufacturer"]["id"]) == ("Part", "370")
        assert all("inventory_level" in offer for seller in second["part"]["sellers"] for offer in seller["offers"])
        assert "is_distributorapi" in second["part"]["sellers"][0]["company"]
        expected = await both.ask_upstream(
            'query ($filters: Map) { supSearch(q: "flip flop", filters: $filters, limit: 2, sortDir: asc) { results '
            "{ part { mpn } } } }",
            {"filters": variables["filters"]},
        )
        shown = [part["part"]["mpn"] for part in expected.data["supSearch"]["results"]]
        assert [each["part"]["mpn"] for each in reply.data["search"]["results"]] == shown


async def test_introspection_stands_beside_data(both: Pair) -> None:
    query = """query ($name: String!, $queries: [PartMatchQuery!]!) {
      __typename
      multi_match(queries: $queries) { hits }
      __type(name: $name) { ...names fields { name type { ofType { name } } } }
      ...root
    }
    fragment names on __Type { name kind }
    fragment root on Query { __schema { queryType { name } } }"""
    data = (await ask(both, query, {"name": "Spec", "queries": [{"mpn": "1N4007"}]})).data
    assert list(data) == ["__typename", "multi_match", "__type", "__schema"]
    assert data["__type"] == {
        "name": "Spec", "kind": "OBJECT", "fields": [
            {"name": "attribute", "type": {"ofType": {"name": "Attribute"}}},
            {"name": "value", "type": {"ofType": {"name": "String"}}},
            {"name": "units", "type": {"ofType": {"name": "String"}}},
            {"name": "display_value", "type": {"ofType": {"name": "String"}}},
        ],
    }  # fmt: skip
    assert (data["__typename"], data["__schema"]) == ("Query", {"queryType": {"name": "Query"}})


@cases.parametrize("query, variables, says, place")
async def test_error_is_in_v4_names(both: Pair, query: str, variables: Any, says: str, place: list[Any]) -> None:
    reply = await ask(both, query, variables)
    assert (reply.status, both.billed) == (400, 0)
    (error, *_) = reply.json["errors"]
    assert says in error["message"]
    assert "Sup" not in error["message"].replace("supSearch", "")
    assert [error["locations"][0][end] for end in ("line", "column")] == place


async def test_null_where_it_is_no_value_is_an_error_of_the_client(both: Pair) -> None:
    """A variable with a default may be null, its place not."""
    sellers = 'query ($b: Boolean = true) { parts(ids: ["1"]) { sellers(include_brokers: $b) { is_rfq } } }'
    assert (await ask(both, sellers, {"b": None})).data == {"parts": [None]}  # as the upstream
    included = 'query ($b: Boolean = true) { parts(ids: ["1"]) @include(if: $b) { mpn } }'
    reply = await ask(both, included, {"b": None})
    assert (reply.status, "'if'" in reply.json["errors"][0]["message"]) == (400, True)


async def test_null_in_a_variable_is_refused_in_v4_names(both: Pair) -> None:
    query = """query ($timeout: String = "3s", $limit: Int = 3) {
      multi_match(queries: [{mpn_or_sku: "SN74S74N", limit: $limit}], distributorapi_timeout: $timeout) { hits } }"""
    for name, says in (
        ("timeout", "'distributorapi_timeout'"),
        ("limit", "'queries' has invalid value"),
    ):
        reply = await ask(both, query, {name: None})
        assert (reply.status, both.billed) == (400, 0)
        assert says in reply.json["errors"][0]["message"]


async def test_token_is_accepted_in_header_and_url(both: Pair) -> None:
    url = f"{both.url}{PATH}"
    sent = {"query": '{ categories(ids: ["4161"]) { name num_parts } }'}
    for address in (f"{url}?token={running_proxy.KEY}", f"{url}/?token={running_proxy.KEY}"):
        assert (await both.post(address, sent)).data["categories"][0]["name"] == "Electronic Parts"
    assert (await both.post(url, sent, **TOKEN)).data == (await both.post(address, sent)).data
    missing = await both.post(url, sent)
    assert (missing.status, "`token: KEY`" in missing.json["errors"][0]["message"]) == (401, True)


WRAPPER = "/api/v4/rest/parts/match"
SN74S74N = {"mpn": "SN74S74N"}
# As recorded, in order (contract graphql.md §10).
PART = ["uid", "mpn", "brand", "manufacturer", "octopart_url", "offers"]
WHOLE_PART = [*PART[:4], "specs", *PART[4:], "datasheets", "compliance_documents"]
OFFER = [
    "id", "sku", "factory_lead_days", "factory_order_multiple", "in_stock_quantity", "on_order_quantity",
    "order_multiple", "multipack_quantity", "packaging", "moq", "product_url", "last_updated", "prices", "seller",
    "is_authorized",
]  # fmt: skip


async def fetch(
    environment: ProxyEnvironment, *queries: dict[str, Any], more: str = f"&apikey={KEY}", **headers: str
) -> RawResponse:
    target = f"{WRAPPER}?queries={quote(json.dumps(queries))}{more}"
    url = yarl.URL(environment.proxy.url + target, encoded=True)
    async with environment.proxy.session.get(url, headers=headers) as response:
        return RawResponse(response.status, lowercase_names(response.headers.items()), await response.read())


async def test_part_has_the_recorded_fields_in_their_order(environment: ProxyEnvironment) -> None:
    plain = (await fetch(environment, SN74S74N)).json["results"][0]["items"][0]
    whole = await fetch(environment, SN74S74N, more=f"&apikey={KEY}&include[]=specs&include[]=datasheets")
    part = whole.json["results"][0]["items"][0]
    assert (list(plain), list(part)) == (PART, WHOLE_PART)
    assert b"__class__" not in whole.body
    assert part["brand"] == part["manufacturer"] == {
        "uid": "370", "name": "Texas Instruments", "homepage_url": part["brand"]["homepage_url"],
    }  # fmt: skip
    assert {tuple(offer) for offer in part["offers"]} == {tuple(OFFER)}
    seller = part["offers"][0]["seller"]
    assert (list(seller), seller["uid"]) == (["uid", "id", "name", "homepage_url"], seller["id"])
    (currency, prices), *_ = part["offers"][0]["prices"].items()
    assert (len(currency), isinstance(prices[0][0], int), prices[0][1].partition(".")[2].isdigit()) == (3, True, True)
    status = part["specs"]["lifecyclestatus"]
    assert status["metadata"] == {"name": "Lifecycle Status", "key": "lifecyclestatus"}
    assert [isinstance(value, str) for value in status["value"]] == [True]
    (document, *_) = part["datasheets"]
    assert list(document) == ["attribution", "metadata", "mimetype", "url"]
    assert list(document["metadata"]) == ["date_created", "num_pages"]
    assert [list(source) for source in document["attribution"]["sources"]] == [["name"]]


@pytest.mark.parametrize("more, headers", [(f"&token={KEY}", {}), ("", {"token": KEY}), (f"&apikey={KEY}", {})])
async def test_token_is_accepted_anywhere(environment: ProxyEnvironment, more: str, headers: dict[str, str]) -> None:
    response = await fetch(environment, SN74S74N, more=more, **headers)
    assert (response.status, response.json["results"][0]["hits"]) == (200, 4)


async def test_token_of_a_header_shares_no_response_with_a_wrong_one(start: Any) -> None:
    async with start() as environment:
        for _ in range(3):  # the third time, the encoded response comes from its cache
            assert (await fetch(environment, SN74S74N, more="", token=KEY)).status == 200
        refused = await fetch(environment, SN74S74N, more="", token="another-key")
        assert (refused.status, (await fetch(environment, SN74S74N, more="")).status) == (403, 400)


@pytest.mark.parametrize(
    "queries, says",
    [
        ("[", "queries is not valid JSON"),
        ("", "queries argument missing"),
        ("[{}]&include[]=" + "x&include[]=" * 300, "at most"),
    ],
)
async def test_bad_parameters_get_the_errors_of_v3(environment: ProxyEnvironment, queries: str, says: str) -> None:
    response = await environment.get(f"{WRAPPER}?token={KEY}&queries={quote(queries, safe='&=')}")
    assert (response.status, list(response.json)) == (400, ["message"])
    assert says in response.json["message"]


async def test_error_of_a_query_is_its_own(environment: ProxyEnvironment) -> None:
    body = (await fetch(environment, {"reference": 1}, SN74S74N)).json
    assert [(result["reference"], result["error"]) for result in body["results"]] == [
        (1, "Missing search filters"),
        (None, None),
    ]


@cases.parametrize("path, use")
async def test_other_path_of_v4_names_what_to_use(environment: ProxyEnvironment, path: str, use: str) -> None:
    response = await environment.get(f"{path}?token={KEY}")
    assert response.status == 404
    assert ("__class__" in response.json) == ("/rest/" not in path)
    assert use in response.json["message"]


async def test_usage_of_other_methods(environment: ProxyEnvironment) -> None:
    assert (await environment.get(WRAPPER, "OPTIONS")).headers["allow"] == "GET, HEAD, OPTIONS"
    assert (await environment.get(WRAPPER, "POST")).status == 405
