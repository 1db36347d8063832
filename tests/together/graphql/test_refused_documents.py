"""Documents that are refused before anything is sent: broken, invalid, too large, too expensive; and introspection."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import graphql
import pytest
import pytest_asyncio
from support import running_proxy
from together.conftest import starter
from together.graphql.conftest import GraphQLReply, Pair, started_pair

from proxy.kit import clock

FRAGMENTS = "".join(f"fragment F{n} on SupPart {{ ...F{n + 1} ...F{n + 1} }}\n" for n in range(30))
DOUBLED = "query { supParts(ids: []) { ...F0 } }\n" + FRAGMENTS + "fragment F30 on SupPart { mpn }"
ROOTS = "query { ...R0 }\n" + "".join(f"fragment R{n} on Query {{ ...R{n + 1} ...R{n + 1} }}\n" for n in range(40))
DOUBLED_ROOTS = ROOTS + "fragment R40 on Query { __typename }"
NAMES = [f"C{n}" for n in range(14)]
CLIQUE = "query { ...C0 }\n" + "".join(
    f"fragment {name} on Query {{ {' '.join(f'...{other}' for other in NAMES)} }}\n" for name in NAMES
)
CHAIN = "query { ...C0 } " + "".join(f"fragment C{n} on Query {{ ...C{n + 1} }}\n" for n in range(150))
TYPES = "{ __schema { types { " + " ".join(f"a{n}: name" for n in range(249)) + " } } }"
SPREAD_TYPES = (
    "{ __schema { types { " + "...T " * 4 + "} } } fragment T on __Type { "
    + " ".join(f"a{n}: name" for n in range(99)) + " }"
)  # fmt: skip
SELLERS = "sellers { company { name } } "
ALIASES = " ".join(f"a{n}: mpn" for n in range(100))
CYCLE = "{ supParts(ids: []) { ...A } } fragment A on SupPart { ...B } fragment B on SupPart { ...A }"


def nested(depth: int) -> str:
    return "{ supCategories { " + "children { " * depth + "name" + " }" * (depth + 2)


REFUSED = {
    "syntax": ("{ supParts(", "Syntax Error"),
    "empty": ("   ", "Syntax Error"),
    "unknown field": ("{ supParts(ids: []) { nothing } }", "nothing"),
    "unknown root field": ("{ supNothing { name } }", "supNothing"),
    "no selection": ("{ supParts(ids: []) }", "subfields"),
    "missing argument": ("{ supParts { mpn } }", "ids"),
    "wrong argument": ("{ supParts(ids: 1.5) { mpn } }", "String"),
    "undeclared variable": ("{ supParts(ids: $a) { mpn } }", "$a"),
    "fragment only": ("fragment A on SupPart { mpn }", "no operation"),
    "unknown fragment": ("{ supParts(ids: []) { ...A } }", "Unknown fragment"),
    "cycle of fragments": (CYCLE, "Cannot spread fragment"),
    "doubled fragments": (DOUBLED, "more often"),
    "doubled fragments of the root": (DOUBLED_ROOTS, "more often"),
    "fragments that spread each other": (CLIQUE, "more often"),
    "chain of fragments": (CHAIN + "fragment C150 on Query { __typename }", "more operations and fragments"),
    "aliases of introspection": (TYPES, "more often"),
    "fragments of introspection": (SPREAD_TYPES, "more often"),
    "depth": (nested(40), "nested deeper"),
    "depth that a parser fails at": (nested(5_000), "nested"),
    "size": ("{ supSellers { name } }" + " " * 100_000, "characters"),
    "tokens": ("{ supSellers { " + "name " * 2_000 + "} }", "tokens"),
    "operations": (" ".join(f"query Q{n} {{ __typename }}" for n in range(101)), "more operations and fragments"),
    "repeated fields": ("{ supParts(ids: []) { " + SELLERS * 60 + "} }", "the same fields more often"),
    "repeated fragments": (
        "{ supParts(ids: []) { " + "...F " * 101 + "} } fragment F on SupPart { mpn }",
        "the same fields more often",
    ),
    "unused fragments": (
        "{ __typename } " + "".join(f"fragment F{n} on SupPart {{ {SELLERS * 9} }} " for n in range(60)),
        "tokens",
    ),
    "unused fragments that spread others": (
        "{ __typename } fragment A on SupPart { " + "...B " * 90 + "} fragment B on SupPart { mpn sku: mpn }",
        "more often",
    ),
    "aliases": ("{ " + " ".join(f"a{n}: supSellers {{ name }}" for n in range(21)) + " }", "root fields"),
    "aliases of fields": (
        "{ " + " ".join(f"r{n}: supParts(ids: []) {{ ...F }}" for n in range(20))
        + " } fragment F on SupPart { " + ALIASES + " }",
        "more fields",
    ),
    "parts": (
        "{ " + " ".join(f'a{n}: supSearch(q: "x{n}", limit: 100) {{ results {{ part {{ mpn }} }} }}' for n in range(11))
        + " }",
        "may cost 1,100 parts; at most 1,000 are allowed",
    ),
}  # fmt: skip


pytestmark = pytest.mark.asyncio(loop_scope="module")

OF_DIRECTIVES = {"SupNexarFeatureID", "SupPlanTier", "SupRole"}  # that only directives of the upstream use


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(catalog: Any, signing_key: Any) -> AsyncIterator[Pair]:
    """A pair that all tests of this file use: nothing that is refused leaves anything behind."""
    async with started_pair(starter(catalog, signing_key, clock.ManualClock())) as ready:
        yield ready


@pytest.mark.parametrize("name", REFUSED)
async def test_document_is_refused_before_it_costs_anything(both: Pair, name: str) -> None:
    document, message = REFUSED[name]
    sent = len(both.environment.sandbox.documents)
    for accept, status in (("*/*", 400), ("application/json", 200), ("application/graphql-response+json", 400)):
        reply = await both.ask(document, Accept=accept)
        assert reply.status == status
        assert "data" not in reply.json
        assert any(message in each["message"] for each in reply.json["errors"]), reply.json
        assert len(reply.json["errors"]) <= 20
        assert len(reply.body) < 20_000
    assert len(both.environment.sandbox.documents) == sent


async def test_variables_are_checked_before_anything_is_sent(both: Pair) -> None:
    query = "query A($q: [SupPartMatchQuery!]!) { supMultiMatch(queries: $q) { parts { mpn } } } query B { __typename }"
    sent = len(both.environment.sandbox.documents)
    for variables, name, message in (
        ({}, "A", "$q"),
        ({"q": None}, "A", "$q"),
        ({"q": [{"mpn": 1}]}, "A", "mpn"),
        ({"q": [{"nothing": "1"}]}, "A", "nothing"),
        ({"q": [{"mpn": "1", "limit": "x"}]}, "A", "limit"),
        ({"q": [{"mpn": "1", "limit": 2_000}]}, "A", "may cost 2,000 parts"),
        ({"q": [{"mpn": "1"}] * 1_001}, "A", "more values than allowed"),
        ({"q": [], "unused": [[]] * 2_001}, "A", "more values than allowed"),
        ({"q": []}, "C", "Unknown operation"),
        ({"q": []}, None, "operation name"),
    ):
        reply = await both.ask(query, variables, name)
        assert reply.status == 400
        assert any(message in each["message"] for each in reply.json["errors"]), reply.json
    assert len(both.environment.sandbox.documents) == sent
    assert (await both.ask(query, {}, "B")).data == {"__typename": "Query"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'[{"query": "{ __typename }"}]',
        b'"text"',
        b"{}",
        b'{"query": null}',
        b'{"query": ""}',
        b'{"query": 7}',
        b'{"query": "{ __typename }", "variables": []}',
        b'{"query": "\xff"}',
        b'{"query": "{ __typename }", "variables": ' + b"[" * 100_000,
    ],
)
async def test_body_that_is_no_request_is_refused_with_a_graphql_error(both: Pair, body: bytes) -> None:
    headers = {"token": running_proxy.KEY}
    async with both.environment.proxy.session.post(f"{both.url}/graphql", data=body, headers=headers) as response:
        assert (response.status, set(await response.json())) == (400, {"errors"})


async def test_get_serves_queries_for_parts_only(both: Pair) -> None:
    async def get(query: str, variables: str = "") -> GraphQLReply:
        target = f"/graphql?token={running_proxy.KEY}&query={quote(query)}&variables={quote(variables)}"
        reply = await both.environment.get(target)
        return GraphQLReply(reply.status, reply.headers, reply.body)

    found = await get("query A($i: [String!]!) { supSellers(ids: $i) { name } }", '{"i": ["459"]}')
    assert (found.status, found.data) == (200, {"supSellers": [{"name": "Digi-Key"}]})
    mutation = "mutation { desDeleteComment(input: {}) { errors { message } } }"
    for query in (mutation, "{ admOrganizations { name } }", "{ desWorkspaceInfos { name } }", ""):
        reply = await get(query)
        assert reply.status == 400
        assert set(reply.json) == {"errors"}
    assert (await get("{ __typename }", "{")).status == 400


async def test_other_methods_are_graphql_errors_or_405(both: Pair) -> None:
    for path, allowed in (("/graphql", "GET, POST"), ("/api/v4/endpoint/", "GET, POST"), ("/connect/token", "POST")):
        for method in ("PUT", "DELETE", "OPTIONS", "HEAD"):
            reply = await both.environment.get(f"{path}?token={running_proxy.KEY}", method)
            assert (reply.status, reply.headers["allow"]) == (405, allowed)
            assert method == "HEAD" or b"send a POST" in reply.body


async def test_introspection_is_that_of_the_upstream_for_supply_types(both: Pair) -> None:
    """From the shipped schema: nothing is sent."""
    query = graphql.get_introspection_query(descriptions=False, input_value_deprecation=False)
    sent = len(both.environment.sandbox.documents)
    reply = await both.ask(query)
    assert len(both.environment.sandbox.documents) == sent
    assert "errors" not in reply.json
    upstream = (await both.ask_upstream(query)).data["__schema"]
    theirs = {each["name"]: each for each in upstream["types"]}
    ours = {each["name"]: each for each in reply.data["__schema"]["types"]}
    supply = {name for name in theirs if name.startswith("Sup")} - OF_DIRECTIVES
    assert len(supply) > 40
    assert supply - set(ours) == set()
    for name in sorted(supply):
        assert ours[name] == theirs[name], name
    roots = [{each["name"]: each for each in types["Query"]["fields"]} for types in (ours, theirs)]
    expected = {name: field for name, field in roots[1].items() if name.startswith("sup")}
    assert {name: field for name, field in roots[0].items() if name.startswith("sup")} == expected


async def test_introspection_of_a_type_is_served_beside_parts(both: Pair) -> None:
    query = (
        'query ($n: String!) { __typename a: __type(name: $n) { ...T } supSellers(ids: ["459"]) { __typename name } }'
        " fragment T on __Type { name kind }"
    )
    reply = await both.assert_same(query, {"n": "SupSeller"})
    assert reply.data["supSellers"] == [{"__typename": "SupCompany", "name": "Digi-Key"}]
    await both.assert_same(query, {"n": "SupPart"})
