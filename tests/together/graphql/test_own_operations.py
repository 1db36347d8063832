"""What records of parts do not hold is fetched as the client asks for it: metered, cached, and in flight only once."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support import running_proxy, scripted_upstream
from together.environment import StartEnvironment, single_application
from together.graphql.conftest import ORACLE, GraphQLReply, Pair, started_pair

import nexar_sandbox
from proxy import config

SIMILAR = '{ supSearchMpn(q: "SN74S74N", limit: 2) { hits results { part { mpn similarParts { mpn } } } } }'
BY_ID = "query ($ids: [String!]!) { supParts(ids: $ids) { id mpn } }"
OWN = {
    "similar parts": SIMILAR,
    "aggregations": """{ supSearch(q: "SN74", limit: 2) {
        hits manufacturerAgg { count company { name } } results { part { mpn } } } }""",
    "sellers of a page": """{ supSearchMpn(q: "SN74S74N", limit: 1) {
        results { part { sellers(limit: 1) { company { name } } } } } }""",
    "price breaks": """{ supSearchMpn(q: "SN74S74N", limit: 1) {
        results { part { sellers { offers(priceBreaks: [10]) { prices { quantity } } } } } } }""",
    "converted prices": """{ supSearchMpn(q: "SN74S74N", limit: 1, currency: "EUR") {
        results { part { sellers { offers { prices { convertedPrice convertedCurrency } } } } } } }""",
    "suggestions": '{ supSuggest(q: "SN74") { text } }',
    "lists": '{ supManufacturers(ids: ["370"]) { name slug } supAttributes { shortname } }',
    "matches without parts": '{ supMultiMatch(queries: [{mpn: "SN74S74N"}]) { hits } }',
    "parts without fields": '{ supParts(ids: ["1"]) { __typename } }',
    "count": '{ supSearch(q: "SN74", limit: 0) { hits } }',
}


@pytest.mark.parametrize("name", OWN)
async def test_own_operation_is_metered_and_cached(pair: Any, name: str) -> None:
    async with pair(application={"features": "all"}) as both:
        first = await both.assert_same(OWN[name])
        billed = both.billed
        assert int(first.headers["X-Parts-Cost"]) == billed
        sent = len(both.environment.sandbox.documents) + 1  # of the upstream beside it
        again = await both.assert_same(OWN[name])
        assert again.headers["X-Parts-Cost"] == "0"
        assert (both.billed, len(both.environment.sandbox.documents)) == (billed, sent)


async def test_own_operation_is_found_by_normalized_document_and_variables(pair: Any) -> None:
    """Names of operations, aliases of root fields, unused parts of the document and white space are no difference."""
    spellings = (
        ("query A($q: String) { supSearchMpn(q: $q, limit: 2) { results { part { similarParts { mpn } } } } }", "A"),
        (
            "query B($q: String) { x: supSearchMpn(q: $q, limit: 2) {\n results { part { similarParts { mpn } } } } }"
            " query A { __typename }",
            "B",
        ),
        ("query($q:String){supSearchMpn(q:$q,limit:2){results{part{similarParts{mpn}}}}}", None),
    )
    async with pair(application={"features": "all"}) as both:
        values = []
        for document, name in spellings:
            reply = await both.ask(document, {"q": "SN74S74N", "unused": 1}, name)
            values += reply.data.values()
        assert values[0]
        assert values == values[:1] * 3
        assert both.billed == 2
        await both.ask(spellings[0][0], {"q": "1N4007"}, "A")
        assert both.billed > 2


@pytest.mark.parametrize(
    "document", [SIMILAR, '{ supSearchMpn(q: "SN74S74N", limit: 2) { results { part { mpn } } } }']
)
async def test_same_document_in_flight_is_paid_for_once(pair: Any, document: str) -> None:
    async with pair(
        application={"features": "all"}, sandbox={"faults": nexar_sandbox.parse_faults("latency ms=200")}
    ) as both:
        replies: list[GraphQLReply] = await asyncio.gather(*(both.ask(document) for _ in range(6)))
        assert {reply.status for reply in replies} == {200}
        assert len({str(reply.data) for reply in replies}) == 1
        assert both.billed == 2
        assert sum(int(reply.headers["X-Parts-Cost"]) for reply in replies) == 2


async def test_part_of_a_search_costs_nothing_by_its_id_elsewhere(pair: Any, tmp_path: Path) -> None:
    """Over the shared cache: by a process that starts when the one that has searched has ended, and by one beside."""
    async with pair() as both, AsyncExitStack() as stack:
        async with other_process(both, tmp_path) as searching:
            found = await searching.ask('{ supSearch(q: "SN74S74", limit: 3) { results { part { id mpn } } } }')
        parts = [result["part"] for result in found.data["supSearch"]["results"]]
        billed = both.billed
        assert len(parts) == billed > 1
        for _ in range(2):
            by_id = await stack.enter_async_context(other_process(both, tmp_path))
            reply = await by_id.ask(BY_ID, {"ids": [part["id"] for part in parts]})
            assert (reply.data, reply.headers["X-Parts-Cost"]) == ({"supParts": parts}, "0")
        assert both.billed == billed


@asynccontextmanager
async def other_process(both: Pair, folder: Path) -> AsyncIterator[Pair]:
    """A service of its own, with the store of all others."""
    upstream = both.environment.sandbox
    own = {
        "features": "all",
        "client_id": config.ClientId(upstream.client_id),
        "client_secret": config.Secret(upstream.client_secret),
    }
    store = f"sqlite:{folder}/state.sqlite"
    settings = running_proxy.settings(
        upstream.graphql_url, upstream.token_url, application=own, store=store, cache={"seconds": 80_000}
    )
    async with running_proxy.running(settings, both.environment.time) as proxy:
        yield Pair(dataclasses.replace(both.environment, proxy=proxy), both.token)


async def test_feature_that_the_plan_lacks_is_the_error_of_the_upstream(
    start: StartEnvironment, catalog: nexar_sandbox.Catalog
) -> None:
    """The same error as without the proxy, and what it names is null."""
    plain = single_application(features=frozenset())
    oracle = dataclasses.replace(ORACLE, features=frozenset())
    for query in (
        f'{{ supParts(ids: ["{next(iter(catalog.parts())).id}"]) {{ mpn specs {{ displayValue }} }} }}',
        '{ supSearchMpn(q: "SN74S74N", limit: 1) { results { part { mpn specs { displayValue } } } } }',
        '{ supMultiMatch(queries: [{mpn: "SN74S74N"}]) { parts { mpn specs { displayValue } } } }',
        '{ supSearchMpn(q: "SN74S74N", limit: 1) { results { part { mpn similarParts { mpn } } } } }',
    ):
        async with started_pair(start, sandbox={"applications": (*plain, oracle)}) as both:
            expected, found = await both.ask_upstream(query), await both.ask(query)
            assert found.data == expected.data, query
            assert found.errors == expected.errors != []
            told = [each["message"] for each in found.json["errors"]]
            assert told == [each["message"] for each in expected.json["errors"]]
            assert (await both.ask('{ supSearchMpn(q: "SN74S74N", limit: 1) { results { part { mpn } } } }')).data


async def test_part_without_what_the_plan_lacks_is_null_beside_the_error_of_the_upstream(
    start: StartEnvironment, catalog: nexar_sandbox.Catalog
) -> None:
    """Fields that may be null: the plan is found out about once, then such a document costs as without the proxy."""
    features = nexar_sandbox.DEFAULT_APPLICATION.features - {"DATASHEETS"}
    plain, oracle = single_application(features=features), dataclasses.replace(ORACLE, features=features)
    for document in (
        '{{ supSearchMpn(q: "SN74S74N", limit: 1) {{ results {{ part {{ mpn {} }} }} }} }}',
        '{{ supMultiMatch(queries: [{{mpn: "SN74S74N", limit: 1}}]) {{ hits parts {{ mpn {} }} }} }}',
        f'{{{{ supParts(ids: ["{next(iter(catalog.parts())).id}"]) {{{{ mpn {{}} }}}} }}}}',
    ):
        async with started_pair(start, sandbox={"applications": (*plain, oracle)}) as both:
            gated, plain_document = document.format("bestDatasheet { url }"), document.format("shortDescription")
            for _ in range(2):
                reply = await both.assert_same(gated)
                assert reply.json["errors"]
                assert reply.data
            before = both.billed
            await both.assert_same(gated)
            assert both.billed == before + 1
            reply = await both.assert_same(plain_document)
            before = both.billed
            again = await both.assert_same(plain_document)
            assert (again.headers["X-Parts-Cost"], both.billed) == ("0", before)


async def test_partial_errors_are_passed_on_and_never_cached() -> None:
    broken = {"message": "It broke.", "path": ["supSuggest", 1], "extensions": {"code": "X"}}
    partial = {
        "data": {"supSuggest": [{"text": "a"}], "supParts": [{"similarParts": None}]},
        "errors": [broken],
    }
    async with scripted_upstream.running() as upstream:
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, cache={"seconds": 300})
        async with running_proxy.running(settings) as proxy:
            for number in range(3):
                upstream.respond_with(partial if number < 2 else {"data": {"supSuggest": []}})
                sent = {"query": '{ a: supSuggest(q: "x") { text } }'}
                async with proxy.session.post(
                    f"{proxy.url}/graphql", json=sent, headers={"token": running_proxy.KEY}
                ) as got:
                    reply = await got.json()
                if number < 2:
                    assert reply["data"] == {"a": [{"text": "a"}]}
                    assert reply["errors"] == [{**broken, "path": ["a", 1]}]
                else:
                    assert reply == {"data": {"a": []}}
            assert len(upstream.requests) == 3
