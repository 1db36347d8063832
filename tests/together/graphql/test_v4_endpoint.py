"""Tests of v4's GraphQL endpoint: documents in its names, with the data of the upstream in its shape."""

from typing import Any

import graphql
from support import cases, running_proxy
from together.graphql.conftest import GraphQLReply, Pair

from proxy.v4 import documents

V4 = documents.schema()
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
    return await both.post(f"{both.environment.proxy.url}{PATH}", sent, **(headers or TOKEN))


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


async def test_input_fields_are_renamed_in_variables(pair: Any) -> None:
    query = """query ($queries: [PartMatchQuery!]!, $options: PartMatchOptions) {
      multi_match(queries: $queries, options: $options) { reference hits error } }"""
    async with pair() as both:
        queries = [{"mpn_or_sku": "SN74S74N", "reference": "1"}, {"mpn": "1N4007", "limit": 1}]
        reply = await ask(both, query, {"queries": queries, "options": {"require_stock_available": False}})
        matches = reply.data["multi_match"]
        assert [(match["reference"], match["hits"] > 0) for match in matches] == [("1", True), (None, True)]


async def test_introspection_shows_the_v4_schema(pair: Any) -> None:
    async with pair() as both:
        reply = await ask(both, graphql.get_introspection_query())
        shown = graphql.build_client_schema(reply.data)
        assert set(shown.type_map) == set(V4.type_map)
        assert graphql.print_type(shown.type_map["Query"]) == graphql.print_type(V4.type_map["Query"])
        assert graphql.print_type(shown.type_map["Part"]) == graphql.print_type(V4.type_map["Part"])
        assert both.billed == 0


async def test_introspection_stands_beside_data(pair: Any) -> None:
    query = """query ($name: String!, $queries: [PartMatchQuery!]!) {
      __typename
      multi_match(queries: $queries) { hits }
      __type(name: $name) { ...names fields { name type { ofType { name } } } }
      ...root
    }
    fragment names on __Type { name kind }
    fragment root on Query { __schema { queryType { name } } }"""
    async with pair() as both:
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
async def test_error_of_a_document_has_v4_names_and_its_place(
    pair: Any, query: str, variables: Any, says: str, place: list[Any]
) -> None:
    async with pair() as both:
        reply = await ask(both, query, variables)
        assert (reply.status, both.billed) == (400, 0)
        (error, *_) = reply.json["errors"]
        assert says in error["message"]
        assert "Sup" not in error["message"].replace("supSearch", "")
        assert [error["locations"][0][end] for end in ("line", "column")] == place


async def test_null_where_it_is_no_value_is_an_error_of_the_client(pair: Any) -> None:
    """A variable with a default may be null, its place not."""
    async with pair() as both:
        sellers = 'query ($b: Boolean = true) { parts(ids: ["1"]) { sellers(include_brokers: $b) { is_rfq } } }'
        assert (await ask(both, sellers, {"b": None})).data == {"parts": [None]}  # as the upstream
        included = 'query ($b: Boolean = true) { parts(ids: ["1"]) @include(if: $b) { mpn } }'
        reply = await ask(both, included, {"b": None})
        assert (reply.status, "'if'" in reply.json["errors"][0]["message"]) == (400, True)


async def test_null_in_a_variable_is_refused_in_v4_names(pair: Any) -> None:
    query = """query ($timeout: String = "3s", $limit: Int = 3) {
      multi_match(queries: [{mpn_or_sku: "SN74S74N", limit: $limit}], distributorapi_timeout: $timeout) { hits } }"""
    async with pair() as both:
        for name, says in (
            ("timeout", "'distributorapi_timeout'"),
            ("limit", "'queries' has invalid value"),
        ):
            reply = await ask(both, query, {name: None})
            assert (reply.status, both.billed) == (400, 0)
            assert says in reply.json["errors"][0]["message"]


async def test_token_is_accepted_in_header_and_url(pair: Any) -> None:
    async with pair() as both:
        url = f"{both.environment.proxy.url}{PATH}"
        sent = {"query": '{ categories(ids: ["4161"]) { name num_parts } }'}
        for address in (f"{url}?token={running_proxy.KEY}", f"{url}/?token={running_proxy.KEY}"):
            assert (await both.post(address, sent)).data["categories"][0]["name"] == "Electronic Parts"
        assert (await both.post(url, sent, **TOKEN)).data == (await both.post(address, sent)).data
        missing = await both.post(url, sent)
        assert (missing.status, "`token: KEY`" in missing.json["errors"][0]["message"]) == (401, True)
