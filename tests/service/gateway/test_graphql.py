"""GraphQL on the core: what is paid once, what is passed on, and responses that are those of the upstream."""

import asyncio
import json
import random

import pytest
from service.gateway.supply import FAULT, NUMBERS, SCHEMA, Dialect, Supply, dialect, messages
from service.gateway.world import HOUR, World, client, uid
from support import random_documents

from proxy import errors, model, v4
from proxy.graphql.documents import InvalidDocumentError
from proxy.planning.queries import matching, part

ERP = client()


@pytest.fixture
def upstream() -> Supply:
    return Supply()


@pytest.fixture
def graph(world: World) -> Dialect:
    return dialect(world)


MATCH = """query ($queries: [SupPartMatchQuery!]!, $brokers: Boolean! = false, $more: Boolean! = true) {
  found: supMultiMatch(queries: $queries) { __typename reference hits error
    parts { number: mpn ...more sellers(includeBrokers: $brokers) { isAuthorized offers { sku prices {
      quantity price currency convertedPrice } } } again: sellers(authorizedOnly: true) { company { name } } } } }
fragment more on SupPart { ... @include(if: $more) { specs { displayValue attribute { shortname } } v3uid } }"""
SEARCH = """query ($start: Int, $limit: Int) {
  supSearchMpn(q: "N11", start: $start, limit: $limit) { hits results { part { mpn } } } }"""
SIMILAR = '{ supSearchMpn(q: "N3") { hits results { part { mpn similarParts { mpn } } } } }'
BY_ID = "query ($ids: [String!]!) { supParts(ids: $ids) { id mpn } }"


async def test_match_is_that_of_the_upstream_and_paid_once_whatever_is_selected(
    world: World, graph: Dialect, upstream: Supply
) -> None:
    asked = [{"mpn": "N2", "reference": "a"}, {"mpn": "N1", "limit": 1}, {"mpn": "N7", "limit": 2, "start": 3},
             {"mpn": "unknown"}, {"mpn": "N2"}]  # fmt: skip
    flags: tuple[dict[str, bool], ...] = ({}, {"brokers": True}, {"more": False})
    for chosen in flags:
        variables = {"queries": asked, **chosen}
        expected = upstream.response(MATCH, variables)
        assert await graph.ask(ERP, MATCH, variables) == expected
        assert upstream.billed["erp"] == 2 + 1 + 2
    assert await world.counted("erp") == upstream.billed["erp"]
    (answer,) = await world.resolve(graph.pipeline, ERP, [matching(0, 3, mpn="n2")])
    assert answer.source == "hit"


@pytest.mark.parametrize("seed", range(40))
async def test_random_documents_have_the_data_and_errors_of_the_upstream(
    world: World, graph: Dialect, upstream: Supply, seed: int
) -> None:
    chosen = random.Random(seed)
    words = (*NUMBERS, "n3", "unknown", uid(5), f"id of {uid(9)}")
    left_out = {"distributorApi", "distributorApiTimeout", "customPricingCredentials", "country", "currency"}
    if seed % 4:
        left_out |= {"options", "filters"}
    for _ in range(10):
        made = random_documents.random_document(
            SCHEMA,
            chosen,
            selects=lambda parent, field: (
                (parent, field) != ("Query", "supPartExtrasByPartIds")
                and (seed % 2 == 0 or field not in ("similarParts", "companionProducts", "extras"))
            ),
            passes=lambda _, argument: argument not in left_out,
            scalars={
                "String": lambda random: random.choice(words),
                "Int": lambda random: random.choice((1, 2, 3, 10, 0)),
                "Map": lambda random: random.choice(({}, {"manufacturer_id": ["370"]})),
            },
        )
        try:
            found = await graph.ask(ERP, made.text, made.variables, made.operation_name)
        except InvalidDocumentError as refused:
            assert "may cost" in str(refused) or "root fields" in str(refused), made.text  # noqa: PT017
            continue
        expected = upstream.response(made.text, made.variables, made.operation_name)
        assert found["data"] == expected["data"], (made.text, made.variables)
        assert messages(found) == messages(expected), made.text
    assert upstream.billed["erp"] <= await world.counted("erp")


async def test_part_of_a_search_costs_nothing_by_its_id_and_pages_fetch_the_rest_only(
    world: World, graph: Dialect, upstream: Supply
) -> None:
    first = await graph.ask(ERP, SEARCH, {"limit": 3})
    second = await graph.ask(ERP, SEARCH, {"start": 3})
    assert [page["data"]["supSearchMpn"]["hits"] for page in (first, second)] == [11, 11]
    assert [len(page["data"]["supSearchMpn"]["results"]) for page in (first, second)] == [3, 8]
    ids = [f"id of {each}" for each in upstream.lists["N11"]]
    found = (await graph.ask(ERP, BY_ID, {"ids": [*ids, "unknown"]}))["data"]["supParts"]
    assert [each and each["id"] for each in found] == [*ids, None]
    assert upstream.billed["erp"] == await world.counted("erp") == 11


async def test_operation_of_its_own_is_stored_by_document_and_variables(world: World, upstream: Supply) -> None:
    spellings = (
        ("query A($q: String) { supSearchMpn(q: $q, limit: 2) { results { part { similarParts { mpn } } } } }", "A"),
        ("query B($q: String) { x: supSearchMpn(q: $q, limit: 2) {\n results { part { similarParts { mpn } } } } }"
         " query A { __typename }", "B"),
        ("query($q:String){supSearchMpn(q:$q,limit:2){results{part{similarParts{mpn}}}}}", None),
    )  # fmt: skip
    for graph in (dialect(world), dialect(world)):  # as after a restart
        replies = [await graph.ask(ERP, text, {"q": "N3", "unused": 1}, name) for text, name in spellings]
        assert len({str([*reply["data"].values()]) for reply in replies}) == 1
    assert upstream.billed["erp"] == await world.counted("erp") == 2
    await asyncio.sleep(23 * HOUR)
    await graph.ask(ERP, spellings[0][0], {"q": "N3"}, "A")
    assert len(upstream.operations) == 1
    await graph.ask(ERP, spellings[0][0], {"q": "N2"}, "A")
    assert len(upstream.operations) == 2
    await asyncio.sleep(0.6 * HOUR)
    upstream.failures = [(FAULT, False)]
    assert (await graph.ask(ERP, spellings[0][0], {"q": "N3"}, "A"))["data"]  # stale
    await graph.ask(ERP, spellings[0][0], {"q": "N3"}, "A")
    assert len(upstream.operations) == 4


async def test_same_operation_under_way_is_paid_once_in_all_processes(world: World, upstream: Supply) -> None:
    processes = [dialect(world), dialect(world)]
    replies = await asyncio.gather(*(graph.ask(ERP, SIMILAR) for graph in processes * 3))
    assert len({str(reply) for reply in replies}) == 1
    assert upstream.billed["erp"] == await world.counted("erp") == 3


async def test_what_costs_no_parts_is_sent_without_any_left_and_never_stored(
    world: World, graph: Dialect, upstream: Supply
) -> None:
    free = (
        '{ supSuggest(q: "N1") { text } supSearchMpn(q: "N3") { hits } supMultiMatch(queries: [{mpn: "N2"}]) { hits } }'
    )
    poor = client(limit=0)
    for _ in range(2):
        assert (await graph.ask(poor, free))["data"]["supSearchMpn"] == {"hits": 3}
    assert len(upstream.operations) == 3
    await asyncio.sleep(301)
    await graph.ask(poor, free)
    assert len(upstream.operations) == 6
    assert await world.store.usage() == []


@pytest.mark.parametrize(
    "argument", ["distributorApi: true", 'customPricingCredentials: [{apiName: "a", apiKey: "k"}]']
)
async def test_what_is_for_one_caller_or_moment_is_fetched_each_time(
    world: World, graph: Dialect, upstream: Supply, argument: str
) -> None:
    for number in (1, 2):
        for selected in ("mpn", "__typename"):
            await graph.ask(ERP, f'{{ supParts(ids: ["{uid(2)}"], {argument}) {{ {selected} }} }}')
        assert upstream.billed["erp"] == await world.counted("erp") == 2 * number
    (answer,) = await world.resolve(graph.pipeline, ERP, [part(uid(2))])
    assert answer.source == "miss"


async def test_errors_beside_data_are_those_of_the_upstream_and_never_stored(
    world: World, graph: Dialect, upstream: Supply
) -> None:
    document = f'{{ a: supParts(ids: ["{uid(2)}"]) {{ mpn link: manufacturerUrl }} }}'
    upstream.broken = {"manufacturerUrl"}
    for _ in range(2):
        reply = await graph.ask(ERP, document)
        assert reply["data"]["a"][0]["link"] is None
        assert messages(reply) == [(["a", 0, "link"], "manufacturerUrl is broken")]
    upstream.broken = set()
    reply = await graph.ask(ERP, document)
    assert (bool(reply["data"]["a"][0]["link"]), "errors" in reply) == (True, False)
    before = upstream.billed["erp"]
    assert await graph.ask(ERP, document) == reply
    assert upstream.billed["erp"] == before == await world.counted("erp")
    upstream.broken = {"results"}
    assert messages(await graph.ask(ERP, SIMILAR)) == [(["supSearchMpn", "results"], "results is broken")]
    assert (graph.metadata.cost, await world.counted("erp")) == (10, before + 10)  # any may have been billed


async def test_feature_that_the_tier_lacks_is_the_error_of_the_upstream(
    world: World, graph: Dialect, upstream: Supply
) -> None:
    upstream.broken = {"bestDatasheet", "documentCollections", "referenceDesigns"}
    some = client(features=None)
    for _ in range(2):
        reply = await graph.ask(some, f'{{ supParts(ids: ["{uid(2)}"]) {{ mpn bestDatasheet {{ url }} }} }}')
        assert reply["data"]["supParts"][0]["bestDatasheet"] is None
        assert messages(reply) == [(["supParts", 0, "bestDatasheet"], "bestDatasheet is broken")]
    before = len(upstream.operations)
    assert "errors" not in await graph.ask(some, f'{{ supParts(ids: ["{uid(2)}"]) {{ mpn }} }}')
    await graph.ask(some, f'{{ supParts(ids: ["{uid(2)}"]) {{ mpn bestDatasheet {{ url }} }} }}')
    assert len(upstream.operations) <= before + 2
    assert upstream.billed["erp"] <= await world.counted("erp")


async def test_queries_that_do_not_fit_a_limit_have_its_error_beside_the_others(graph: Dialect) -> None:
    poor = client(limit=4)
    queries = [{"mpn": "N1"}, {"mpn": "N2"}]
    document = """query ($queries: [SupPartMatchQuery!]!) {
      a: supMultiMatch(queries: $queries) { hits error parts { mpn } } }"""
    reply = await graph.ask(poor, document, {"queries": queries})
    first, second = reply["data"]["a"]
    assert (len(first["parts"]), second["parts"], second["hits"]) == (1, [], 0)
    assert "app/key has 1 of 4 parts left" in second["error"]
    ((path, message),) = messages(reply)
    assert path == ["a", 1]
    assert message.startswith("You have exceeded your part limit: app/key has 1 of 4 parts left")
    reply = await graph.ask(poor, document, {"queries": [{"mpn": "N5", "limit": 5}]})
    assert reply["data"] is None
    assert [path for path, _ in messages(reply)] == [["a"]]
    ids = f'{{ supParts(ids: ["{uid(1)}", "{uid(4)}", "{uid(5)}", "{uid(6)}", "{uid(7)}"]) {{ mpn }} }}'
    reply = await graph.ask(poor, ids)
    assert [bool(each) for each in reply["data"]["supParts"]] == [True] * 4 + [False]
    assert [path for path, _ in messages(reply)] == [["supParts", 4]]


async def test_parts_within_parts_are_refused_under_a_limit(graph: Dialect, upstream: Supply) -> None:
    reply = await graph.ask(client(limit=1_000), SIMILAR)
    assert reply["data"] is None
    assert messages(reply) == [
        (["supSearchMpn"], "supSearchMpn: parts within parts are not served under a limit of parts")
    ]
    assert upstream.operations == []


@pytest.mark.parametrize(
    "failure, billed, uncertain",
    [
        (FAULT, False, 0),
        (errors.UpstreamUnreadable("cut", may_be_billed=True), True, 10),
        (errors.QuotaExhausted("You have exceeded your part limit of 5."), False, 0),
    ],
)
async def test_operation_of_its_own_that_fails_is_counted_and_fetched_again(
    world: World, graph: Dialect, upstream: Supply, failure: errors.BridgeError, billed: bool, uncertain: int
) -> None:
    upstream.failures = [(failure, billed)]
    reply = await graph.ask(ERP, SIMILAR)
    assert reply["data"] is None
    assert messages(reply) == [(["supSearchMpn"], str(failure))]
    assert await world.counted("erp") == uncertain
    again = await graph.ask(ERP, SIMILAR)
    if isinstance(failure, errors.QuotaExhausted):
        assert (again, len(upstream.operations)) == (reply, 1)
    else:
        assert len(again["data"]["supSearchMpn"]["results"]) == 3
        assert await world.counted("erp") == uncertain + 3


async def test_refused_operation_has_the_errors_of_the_upstream(world: World, graph: Dialect, upstream: Supply) -> None:
    reported = model.GraphQLError("limit must be between 0 and 100", ["supSearchMpn"], {"code": "X"})
    refused = errors.QueryRefused("no", reported=(reported,))
    upstream.failures = [(refused, False)]
    reply = await graph.ask(ERP, '{ a: supSearchMpn(q: "N1", limit: 101) { results { part { mpn } } } }')
    shown = {"message": reported.message, "path": ["a"], "extensions": reported.extensions}
    assert reply == {"data": None, "errors": [shown]}
    assert await world.counted("erp") == 101  # its error has a path: it may have been executed
    upstream.failures = [(refused, False)] * 2
    reply = await graph.ask(ERP, '{ a: supSearchMpn(q: "N1", limit: 3) { results { part { mpn } } } }')
    assert reply == {"data": None, "errors": [shown]}
    assert await world.counted("erp") == 101 + 3 + 3  # not as it stands, too


async def test_markets_are_paid_apart(graph: Dialect, upstream: Supply) -> None:
    for country, billed in (("US", 1), ("US", 1), ("DE", 2), ("DE", 2)):
        await graph.ask(ERP, f'{{ supParts(ids: ["{uid(2)}"], country: "{country}") {{ mpn }} }}')
        assert upstream.billed["erp"] == billed
    assert [each["variables"]["country"] for each in upstream.operations] == ["US", "DE"]


async def test_v4_document_has_the_parts_of_others_in_its_names(world: World, graph: Dialect, upstream: Supply) -> None:
    document = """query ($q: [PartMatchQuery!]!) { multi_match(queries: $q) { parts { __typename mpn short_description
      sellers { company { homepage_url } } } } }"""
    await world.resolve(graph.pipeline, ERP, [matching(0, 3, mpn_or_sku="N2")])
    reader = v4.V4DocumentReader(v4.schema())
    request = reader.request(document, None, {"q": [{"mpn_or_sku": "N2", "limit": 2}]})
    found, again = json.loads((await graph.execute(ERP, request)).body)["data"]["multi_match"][0]["parts"]
    assert list(found) == ["__typename", "mpn", "short_description", "sellers"]
    assert (found["__typename"], again["__typename"]) == ("Part", "Part")
    assert upstream.billed["erp"] == 2
    nested = """{ match: search_mpn(q: "N1") { type: __typename manufacturer_agg { company { __typename } }
      results { part { similar_parts { __typename } } } } }"""
    request = reader.request(nested, None, {})
    for _ in range(2):
        match = json.loads((await graph.execute(ERP, request)).body)["data"]["match"]
        assert (match["type"], match["manufacturer_agg"][0]["company"]) == (
            "PartResultSet",
            {"__typename": "Company"},
        )
        assert match["results"][0]["part"]["similar_parts"][0] == {"__typename": "Part"}


async def test_options_of_a_match_are_sent_and_paid_apart_where_they_change_something(
    graph: Dialect, upstream: Supply
) -> None:
    for options, billed in (("", 2), ("requireStockAvailable: false", 2), ("requireStockAvailable: true", 4)):
        given = f", options: {{{options}}}" if options else ""
        for _ in range(2):
            await graph.ask(ERP, f'{{ supMultiMatch(queries: [{{mpn: "N2"}}]{given}) {{ parts {{ mpn }} }} }}')
        assert upstream.billed["erp"] == billed
    assert [each["variables"].get("options") for each in upstream.operations] == [
        None,
        {"requireStockAvailable": True},
    ]
