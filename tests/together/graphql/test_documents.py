"""Documents: what is paid once however it is said, what is fetched as it stands, and what is the caller's own."""

import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support import cases, running_proxy, scripted_upstream
from together.graphql.conftest import Pair

import nexar_sandbox
from proxy import log


@pytest.mark.parametrize("order", [({}, {"brokers": None}), ({"brokers": None}, {})])
async def test_null_is_not_a_variable_without_a_value(both: Pair, order: Any) -> None:
    """Null is an error of each part; without a value the argument has its default, in whatever order they come."""
    document = (
        'query ($brokers: Boolean) { supParts(ids: ["1"]) { mpn sellers(includeBrokers: $brokers) { isBroker } } }'
    )
    for variables in order:
        await both.assert_same(document, variables)
    billed = both.billed
    assert (await both.ask(document, {})).headers["X-Parts-Cost"] == "0"
    assert (both.billed, (await both.ask('{ supParts(ids: ["1"]) { mpn } }')).headers["X-Cache"]) == (billed, "hit")


async def test_empty_operation_name_is_none(both: Pair) -> None:
    for path in ("/graphql", "/api/v4/endpoint"):
        sent = {"query": "query Name { __typename }", "operationName": ""}
        reply = await both.post(f"{both.url}{path}", sent, token=running_proxy.KEY)
        assert (reply.status, reply.data) == (200, {"__typename": "Query"})


@pytest.mark.parametrize("name", ["supSearch", "supSearchMpn"])
async def test_arguments_that_change_nothing_cost_nothing(both: Pair, name: str) -> None:
    """Programs send null, or the default, for what others leave out."""
    document = f"""query ($start: Int, $stock: Boolean, $filters: Map, $sort: String, $limit: Int = 2) {{
      {name}(q: "SN74", start: $start, limit: $limit, inStockOnly: $stock, filters: $filters, sort: $sort) {{
        hits results {{ part {{ mpn }} }} }} }}"""
    first = await both.assert_same(document)
    billed = both.billed
    nothing: tuple[dict[str, Any], ...] = (
        {"start": None, "stock": None, "filters": None, "sort": None},
        {"start": 0},
        {"stock": False, "filters": {}},
    )
    for variables in nothing:
        again = await both.ask(document, variables)
        assert (again.data, again.headers["X-Parts-Cost"], both.billed) == (first.data, "0", billed), variables
    for changed in ({"start": 1}, {"limit": 1}, {"limit": 0}, {"sort": "median_price_1000"}):
        await both.assert_same(document, changed)
    assert both.billed > billed


@pytest.mark.parametrize("name", ["supSearch", "supSearchMpn"])
async def test_search_without_hits_has_null_results_from_the_store_too(both: Pair, name: str) -> None:
    """Programs test for null."""
    for source in ("miss", "hit"):
        reply = await both.assert_same(f'{{ {name}(q: "no such number") {{ hits results {{ part {{ mpn }} }} }} }}')
        assert (reply.data, reply.headers["X-Cache"]) == ({name: {"hits": 0, "results": None}}, source)
    behind = f'{{ {name}(q: "SN74S74N", start: 900) {{ hits results {{ part {{ mpn }} }} }} }}'
    assert (await both.assert_same(behind)).data[name]["results"] == []


SIMILAR = '{ supSearchMpn(q: "SN74S74N", limit: 2) { hits results { part { mpn similarParts { mpn } } } } }'
OPERATIONS = {
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


@pytest.mark.parametrize("name", OPERATIONS)
async def test_own_operation_is_metered_and_cached(pair: Any, name: str) -> None:
    async with pair(application={"features": "all"}) as both:
        first = await both.assert_same(OPERATIONS[name])
        billed = both.billed
        assert int(first.headers["X-Parts-Cost"]) == billed
        sent = len(both.environment.sandbox.documents) + 1  # of the upstream beside it
        again = await both.assert_same(OPERATIONS[name])
        assert again.headers["X-Parts-Cost"] == "0"
        assert (both.billed, len(both.environment.sandbox.documents)) == (billed, sent)


OWN = "X-Nexar-Authorization"
ORGANIZATIONS = "{ admOrganizations { name } }"
SUPPLY = '{ supParts(ids: ["1"]) { mpn } }'


async def test_wrong_own_token_is_refused_by_the_upstream(both: Pair) -> None:
    reply = await both.ask(ORGANIZATIONS, **{OWN: "Bearer of-nobody"})
    assert reply.errors[0][1] == "AuthInvalidToken"
    assert reply.status == 401


@cases.parametrize("document")
async def test_document_that_mixes_both_is_refused(both: Pair, document: str) -> None:
    sent = len(both.environment.sandbox.documents)
    reply = await both.ask(document, **{OWN: f"Bearer {both.token}"})
    assert reply.status == 400
    assert "two requests" in reply.json["errors"][0]["message"]
    assert len(both.environment.sandbox.documents) == sent


async def test_operations_of_both_kinds_in_one_document_never_pass_parts_on(both: Pair) -> None:
    """An operation for parts beside one for design data would be charged to the caller's token."""
    document = f"query Own {ORGANIZATIONS} query Parts {SUPPLY}"
    for name in ("Own", "Parts"):
        sent, before = len(both.environment.sandbox.documents), oracle_usage(both)
        reply = await both.ask(document, None, name, **{OWN: f"Bearer {both.token}"})
        assert reply.status == 400
        assert (len(both.environment.sandbox.documents), oracle_usage(both)) == (sent, before)


async def test_subscription_is_refused_as_by_the_upstream(both: Pair) -> None:
    document = 'subscription { desOnCommentUpdated(input: {token: "t", projectId: "p"}) { projectId } }'
    reply = await both.ask(document, **{OWN: f"Bearer {both.token}"})
    assert reply.data is None
    assert reply.json["errors"]


async def test_own_token_is_not_sent_with_queries_for_parts(both: Pair) -> None:
    before = oracle_usage(both)
    assert (await both.ask(SUPPLY, **{OWN: f"Bearer {both.token}"})).status == 200
    assert oracle_usage(both) == before


def oracle_usage(both: Pair) -> int:
    """Return the parts that the caller's own application has used."""
    return both.environment.sandbox.part_usage.used("oracle")


async def test_refusal_of_the_upstream_says_when_to_come_back_and_what_it_is(both: Pair) -> None:
    both.environment.sandbox.faults.replace(nexar_sandbox.parse_faults("429 retry_after=9"))
    reply = await both.ask(ORGANIZATIONS, **{OWN: f"Bearer {both.token}"})
    assert (reply.status, reply.headers["Retry-After"]) == (429, "9")
    assert reply.headers["Content-Type"].startswith("text/plain")


SECRETS = {"clientId": "cl1entPLANTED", "clientSecret": "s3cretPLANTED", "username": "us3rPLANTED",
           "password": "p4ss\"é+PLANTED", "apiKey": "k3yPLANTED"}  # fmt: skip
CREDENTIALS = [{"apiName": "digikey", **SECRETS}]
WITH = """query ($c: [SupApiCredentials!]) { supSearchMpn(q: "SN74S74N", limit: 1, customPricingCredentials: $c) {
  results { part { mpn } } } }"""
INLINE = WITH.replace("($c: [SupApiCredentials!])", "").replace(
    "$c", '[{apiName: "digikey", ' + ", ".join(f"{name}: {json.dumps(each)}" for name, each in SECRETS.items()) + "}]"
)


@pytest.fixture
def log_format(log_output: io.StringIO) -> io.StringIO:
    log.configure("debug", "json", log_output)
    return log_output


def planted(text: str) -> list[str]:
    """Return the secrets in a text, in any of their spellings."""
    spellings = {form for each in SECRETS.values() for form in (each, quote(each, safe=""), json.dumps(each)[1:-1])}
    return [each for each in spellings if each in text]


@pytest.mark.parametrize("document, variables", [(WITH, {"c": CREDENTIALS}), (INLINE, {})])
async def test_results_are_never_cached(
    pair: Any, tmp_path: Path, log_format: io.StringIO, document: str, variables: Any
) -> None:
    async with pair(store=f"sqlite:{tmp_path}/state.sqlite", admin=True) as both:
        for number in range(1, 4):
            reply = await both.ask(document, variables)
            assert reply.data["supSearchMpn"]["results"][0]["part"]["mpn"] == "SN74S74N"
            assert (both.billed, reply.headers["X-Parts-Cost"]) == (number, "1")
        assert both.environment.sent_variables[-1] == variables
        plain = await both.ask(WITH)
        assert (plain.headers["X-Parts-Cost"], both.billed) == ("1", 4)
        await both.environment.get(
            f"/graphql?token={running_proxy.KEY}&query={quote(document)}&variables={quote(json.dumps(variables))}"
        )
        assert both.billed == 5
        shown = json.dumps(await both.environment.admin.status())
    kept = {file.name: file.read_bytes().decode("latin-1") for file in tmp_path.iterdir()}
    assert {name: found for name, text in kept.items() if (found := planted(text))} == {}
    assert planted(shown) == []
    assert planted(log_format.getvalue()) == []


async def test_errors_show_credentials_in_the_response_only(tmp_path: Path, log_format: io.StringIO) -> None:
    """Neither the upstream's, which hide nothing that was paid for, nor those of wrong variables are kept."""
    messages = [f"Unknown: {each}" for each in SECRETS.values()]
    echoed = [
        {"message": each, "path": ["supSearchMpn"], "extensions": {"remote": {"message": each}}} for each in messages
    ]
    found, gap = ({"supSearchMpn": {"results": [{"part": {"mpn": "A1"}}, *more]}} for more in ([], [None]))
    async with scripted_upstream.running() as upstream:
        settings = running_proxy.settings(
            upstream.graphql_url, upstream.token_url, store=f"sqlite:{tmp_path}/state.sqlite"
        )
        async with running_proxy.running(settings) as proxy:
            for document, variables, response in (
                (WITH, {"c": CREDENTIALS}, {"data": None, "errors": echoed}),
                (WITH, {"c": CREDENTIALS}, {"data": found, "errors": echoed}),
                (INLINE, {}, {"data": gap, "errors": echoed}),
                (INLINE, {}, {"data": None, "errors": echoed}),
                (WITH, {"c": [{**CREDENTIALS[0], "wrong": "p4ssPLANTED"}]}, {}),
                (WITH, {"c": [SECRETS]}, {}),
                (WITH, {"c": "s3cretPLANTED"}, {}),
                (WITH, {"c": [{"apiName": 1, **SECRETS}]}, {}),
                (INLINE.replace("apiName", "wrong"), {}, {}),
            ):
                upstream.respond_with(response)
                sent = {"query": document, "variables": variables}
                async with proxy.session.post(
                    f"{proxy.url}/graphql", json=sent, headers={"token": running_proxy.KEY}
                ) as got:
                    reply = await got.json()
                assert reply["errors"]
                if response.get("data"):
                    assert (got.status, reply["data"], got.headers["X-Parts-Cost"]) == (200, response["data"], "1")
                    assert [each["message"] for each in reply["errors"]] == messages
    kept = "".join(file.read_bytes().decode("latin-1") for file in tmp_path.iterdir())
    assert planted(kept) == []
    assert planted(log_format.getvalue()) == []
