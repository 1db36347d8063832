"""The sandbox's pages in docs/reference: faults match the code, examples are accepted, curl lines and the test work."""

import dataclasses
import json
import re
import shlex
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from graphql import GraphQLObjectType
from support import cases

from nexar_sandbox import (
    admin,
    app,
    applications,
    faults,
    journal,
    settings,
    user_directory,
)
from nexar_sandbox.catalog import store
from nexar_sandbox.design import sample_workspaces
from nexar_sandbox.graphql import documents, schema, transport
from nexar_sandbox.graphql.resolvers import parts
from nexar_sandbox.identity import authorizations, discovery, scopes, sessions
from nexar_sandbox.legacy_v3 import disturbances

from .conftest import Page

ADDRESS = "http://127.0.0.1:8081"
OPERATIONS = Path(__file__).with_name("service_operations.txt").read_text(encoding="utf-8").splitlines()
ORDINARY = {"on": "graphql", "share": 1.0, "count": None}


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    names = ("sandbox", "sandbox-services", "sandbox-data")
    return Page("docs/reference/sandbox*.md", "\n".join(pages[f"docs/reference/{name}.md"].text for name in names))


@pytest.fixture
async def sandbox() -> Any:
    catalog = store.open_catalog()
    async with app.serve(settings.SandboxSettings(), catalog=catalog) as running:
        yield running
    catalog.close()


def _figures(kind: Any) -> Any:
    """What the table must show of a kind: each figure that is not as everywhere, with its default."""
    shown = set()
    for field in msgspec.structs.fields(faults.KINDS[kind]):
        if field.required or (field.default is None and field.name not in ORDINARY):
            shown.add(field.name)
        elif field.name not in ORDINARY or field.default != ORDINARY[field.name]:
            shown.add(f"{field.name}={field.default}")
    return shown


def test_fault_table_has_every_kind_with_its_parameters(page: Any) -> None:
    rows = {row[0].strip("`"): set(re.findall(r"`([^`]+)`", row[1])) for row in page.table("kind")}
    wanted = {kind: _figures(kind) for kind in faults.KINDS}
    # A kind that strikes one service only is always said to.
    for kind in ("401", "expired", "quota", "missing-field"):
        wanted[kind].add("on=graphql")
    assert rows == wanted


def test_documented_bounds_are_those_of_the_code(page: Any) -> None:
    chosen = settings.SandboxSettings()
    assert [int(row[1]) for row in page.table("bound")] == [
        transport.MAX_BODY,
        documents.MAX_LENGTH,
        documents.MAX_TOKENS,
        documents.MAX_FIELDS,
        documents.MAX_DEPTH,
        chosen.answer_fields,
        chosen.execution_timeout,
    ]


@cases.parametrize("query, outcome")
async def test_status_by_media_type_is_as_documented(page: Any, sandbox: Any, query: str, outcome: str) -> None:
    row = next(row for row in page.table("result") if outcome in row[0])
    found = []
    account = sandbox.default_application
    form = {"grant_type": "client_credentials", "client_id": account.client_id, "client_secret": account.client_secret}
    async with aiohttp.ClientSession() as session:
        async with session.post(sandbox.token_url, data=form) as response:
            token = (await response.json())["access_token"]
        for accept in ("application/json", "*/*", "application/graphql-response+json"):
            headers = {"token": token, "Accept": accept}
            async with session.post(sandbox.graphql_url, json={"query": query}, headers=headers) as response:
                found.append(str(response.status))
    assert found == list(row[1:])


def test_disturbance_table_has_every_kind_with_its_parameters(page: Any) -> None:
    rows = {row[0].strip("`"): re.findall(r"`([^`]+)`", row[1]) for row in page.table("disturbance")}
    assert rows == {
        word: [f"{field.name}={field.default}" for field in msgspec.structs.fields(kind)]
        for word, kind in disturbances.PARSER.by_word.items()
    }


async def test_every_disturbance_example_is_accepted(page: Any, sandbox: Any) -> None:
    texts = [line for block in page.blocks("disturbances") for line in block.text.splitlines()]
    kinds = {text.split()[0] for text in texts}
    assert kinds == set(disturbances.PARSER.by_word)
    sandbox.legacy.disturbances.replace([disturbances.PARSER.parse(text) for text in texts])


def test_mixed_faults_are_all_kinds_but_the_last_four(page: Any) -> None:
    mixed = {faults.kind_name(type(fault)) for fault in faults.parse_faults("mixed")}
    assert mixed == set(faults.KINDS) - {"mixed", "missing-field", "quota", "wrong-clock", "no-expiry"}


async def test_every_example_is_accepted_by_a_sandbox(page: Any, sandbox: Any) -> None:
    texts = [line for block in page.blocks("faults") for line in block.text.splitlines()]
    texts += re.findall(r'--fault "([^"]+)"', page.text)
    for text in texts:
        sandbox.faults.replace(faults.parse_faults(text))


async def test_identity_service_behaves_as_documented(page: Any, sandbox: Any) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(sandbox.url + discovery.DISCOVERY_PATH) as response,
    ):
        said = await response.json()
    endpoints = {row[0].strip("`") for row in page.table("endpoint")}
    assert endpoints == {*discovery.PATHS.values(), discovery.DISCOVERY_PATH}
    assert {said[name] for name in discovery.PATHS} == {sandbox.url + path for path in discovery.PATHS.values()}
    assert {row[0].strip("`") for row in page.table("flow")} == applications.FLOWS | {"refresh_token"}
    assert all(f"`{scope}`" in page.text for scope in scopes.ALL)
    good = {row[0]: int(row[1].split()[0]) for row in page.table("what")}
    chosen = settings.SandboxSettings()
    assert list(good.values()) == [
        chosen.behavior.token_lifetime,
        authorizations.CODE_SECONDS,
        chosen.refresh_lifetime,
        sessions.LIFETIME,
    ]


async def test_documented_users_can_sign_in(page: Any, sandbox: Any) -> None:
    written = re.findall(r"`(\S+@\S+)`\s+\((?:password )?`(\S+)`\)", page.text)
    assert [email for email, _ in written] == [user.email for user in user_directory.DEFAULT_USERS]
    for email, password in written:
        assert await sandbox.users.authenticate(email, password)
    assert all(f"`{uri}`" in page.text for uri in applications.DEFAULT_DESIGN_APPLICATION.redirect_uris)


def test_documented_plans_are_those_of_the_portal(page: Any) -> None:
    rows = {row[0]: (int(row[1]), row[2], row[3]) for row in page.table("plan")}
    assert {name: (parts, period) for name, (parts, period, _) in rows.items()} == {
        one.name: (one.parts, one.period) for one in applications.PLANS.values()
    }
    for plan in applications.PLANS.values():
        said = rows[plan.name][2]
        named = {feature for feature in applications.FEATURES if applications.FEATURE_NAMES[feature].lower() in said}
        assert plan.features == (applications.FEATURES if said == "all" else named)
        assert all(f"`{add_on}`" in page.text for add_on in plan.add_ons)


async def test_every_curl_line_works(page: Any, sandbox: Any) -> None:
    lines = [line for block in page.blocks("sh") for line in block.text.splitlines() if line.startswith("curl")]
    assert lines
    async with aiohttp.ClientSession() as session:
        for line in lines:
            words = shlex.split(line)
            method = words[words.index("-X") + 1] if "-X" in words else "GET"
            body = words[words.index("-d") + 1] if "-d" in words else None
            (address,) = (word for word in words if word.startswith(ADDRESS))
            url = address.replace(ADDRESS, sandbox.url)
            headers = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl sends it
            async with session.request(method, url, data=body, headers=headers) as response:
                assert response.status == 200, line


async def test_mistake_gives_its_documented_message(page: Any, sandbox: Any) -> None:
    (mistake,) = page.blocks("json", "mistake")
    (message,) = page.blocks("json", "")
    async with (
        aiohttp.ClientSession() as session,
        session.put(sandbox.url + admin.FAULTS_PATH, data=mistake.text) as response,
    ):
        assert (response.status, await response.json()) == (400, json.loads(message.text))


def test_journal_tables_have_every_key(page: Any) -> None:
    for first, kind in (("in an entry", journal.JournalEntry), ("in the totals", journal.JournalTotals)):
        rows = [row[0].strip("`") for row in page.table(first)]
        assert rows == [field.name for field in dataclasses.fields(kind)]


async def test_shown_test_passes(page: Any) -> None:
    (block,) = page.blocks("python")
    names: dict[str, Any] = {}
    exec(block.text, names)
    (shown,) = (one for name, one in names.items() if name.startswith("test_") and iscoroutinefunction(one))
    await shown()


def _root(kind: GraphQLObjectType | None) -> GraphQLObjectType:
    """A root type, which the schema has."""
    assert kind is not None
    return kind


def test_feature_table_has_every_gate_and_feature(page: Any) -> None:
    rows = {row[0].strip("`"): row[1] for row in page.table("feature")}
    assert set(rows) == applications.FEATURES
    gated = {name: set(re.findall(r"`(\w+\.\w+)`", text)) for name, text in rows.items()}
    wanted = {
        name: {".".join(place) for place, needed in schema.REQUIRED_FEATURES.items() if needed == name} for name in rows
    }
    assert gated == wanted
    assert set(re.findall(r"`([a-z]+status)`", rows["LIFECYCLE"])) == parts.LIFECYCLE


async def test_shown_supply_query_finds_parts_in_order_and_market(page: Any) -> None:
    (block,) = page.blocks("graphql", "supply")
    async with app.serve(settings.SandboxSettings(no_auth=True)) as running, aiohttp.ClientSession() as session:
        body = {"query": block.text, "variables": {"filters": {"resistance": ["(1000__)"]}}}
        async with session.post(running.graphql_url, json=body) as response:
            found = (await response.json())["data"]["supSearch"]
    assert len(found["results"]) == 5
    assert found["specAggs"][0]["displayMin"].endswith("kΩ")
    offers = [o for one in found["results"] for seller in one["part"]["sellers"] for o in seller["offers"]]
    assert {offer["eligibleRegion"] for offer in offers} == {"GB", None}
    assert {price["convertedCurrency"] for offer in offers for price in offer["prices"]} == {"EUR"}


def test_every_upstream_operation_is_in_the_schema_or_listed_as_missing(page: Any) -> None:
    built = schema.build()
    roots = (built.query_type, built.mutation_type, built.subscription_type)
    there = [name for root in roots for name in _root(root).fields]
    left_out = [name for row in page.table("subject") for name in re.findall(r"`(\w+)`", row[1])]
    assert sorted(there + left_out) == sorted(line.split()[1] for line in OPERATIONS if not line.startswith("#"))


async def test_shown_bom_query_finds_catalog_parts(page: Any) -> None:
    (block,) = page.blocks("graphql", "design")
    chosen = settings.SandboxSettings(no_auth=True)
    catalog = store.open_catalog()
    async with app.serve(chosen, catalog=catalog) as running, aiohttp.ClientSession() as session:
        assert set(running.design_urls) == {"workspaces", "library", "projects", "collaboration"}
        url = f"https://{sample_workspaces.WORKSPACES[0].slug}.365.example"
        async with session.post(running.graphql_url, json={"query": block.text, "variables": {"url": url}}) as response:
            answer = await response.json()
    (project,) = answer["data"]["desProjects"]["nodes"]
    lines = project["design"]["variants"][0]["bom"]["items"]["nodes"]
    assert len(lines) == 5
    assert all(catalog.part(line["component"]["manufacturerParts"][0]["octopartId"]) for line in lines)
    catalog.close()
