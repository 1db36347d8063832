"""The sandbox as a whole: start, stop, every field of the schema once, and two of them in one process."""

import asyncio
import dataclasses
import random
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import yarl
from graphql import GraphQLObjectType, get_named_type, is_composite_type, is_required_argument, is_union_type
from sandbox.design_client import APPLICATION, DesignClient
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import app, applications, faults, settings, user_directory
from nexar_sandbox.catalog import store
from nexar_sandbox.graphql import schema
from nexar_sandbox.identity import tokens
from nexar_sandbox.legacy_v3 import service as legacy_service
from proxy.kit import clock

BUILT = schema.build()
QUERIES = tuple(BUILT.query_type.fields) if BUILT.query_type else ()
ARGUMENTS = {
    "supOctopartIdFromCiivaId": 'workspaceUrl: "x", ciivaId: "x"',
    "supPartIdFromCiivaId": 'ciivaId: "x"',
    "supPartIdsFromCiivaIds": 'ciivaIds: ["x", "y"]',
    "supCiivaIdFromPartId": 'partId: "54445"',
    "supCiivaIdsFromPartIds": 'partIds: ["54445"]',
    "supPartExtrasByPartId": 'partId: "54445"',
    "supPartExtrasByPartIds": 'partIds: ["54445"]',
    "supParts": 'ids: ["54445", "none"]',
    "supPartOffers": 'country: "US", currency: "EUR", references: [{partId: "54445", offerId: "1"}]',
    "supSuggest": 'q: "sn"',
    "supSearch": 'q: "SN74S74N", filters: {manufacturer_id: ["370"]}',
    "supSearchMpn": 'q: "LM358"',
    "supSpellingCorrection": 'q: "capacitr"',
    "supMultiMatch": 'queries: [{mpn: "SN74S74N"}]',
    "supOctocart": 'items: [{sellerId: "459", items: []}]',
    "admApplicationById": f'id: "{applications.DEFAULT_APPLICATION.application_id}"',
    "specAggs": 'attributeNames: ["numberofpins"], attributeSelection: ALL',
    "sellers": "includeBrokers: true",
}


def selection(kind: object, depth: int = 0) -> str:
    """Every field of a type, objects down to a depth where the service's loops have turned once."""
    if is_union_type(kind):
        return " { __typename " + " ".join(f"... on {one}{selection(one, depth)}" for one in kind.types) + " }"
    assert isinstance(kind, GraphQLObjectType)
    names = [name for name, one in kind.fields.items() if depth < 5 or not is_composite_type(get_named_type(one.type))]
    return " { " + " ".join(written(kind, name, depth) for name in names) + " }"


def written(parent: GraphQLObjectType, name: str, depth: int) -> str:
    field = parent.fields[name]
    kind = get_named_type(field.type)
    arguments = ARGUMENTS.get(name, "") if field.args else ""
    assert arguments or not any(map(is_required_argument, field.args.values())), name
    below = selection(kind, depth + 1) if is_composite_type(kind) else ""
    return f"{name}({arguments}){below}" if arguments else name + below


@pytest.mark.parametrize("name", [name for name in QUERIES if not name.startswith("des")])
async def test_every_query_returns_every_field_of_its_type(caller: SandboxClient, name: str) -> None:
    assert BUILT.query_type is not None
    response = await caller.ask("{ " + written(BUILT.query_type, name, 3) + " }")
    assert response.status == 200
    assert name in response.data


@pytest.mark.parametrize("host", [b"", b"[", b"a b", b"[::1", b"x:99999", b"x:y", b"\xff", b"a/b", b'"<b>'])
@pytest.mark.parametrize("path", [b"/", b"/graphql", b"/.well-known/openid-configuration"])
async def test_an_invalid_host_header_gets_400(caller: SandboxClient, host: bytes, path: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", caller.sandbox.port)
    writer.write(b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, host))
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Traceback" not in answer


@pytest.mark.parametrize("path", ["/admin/faults", "/admin/journal", "/%61dmin/faults"])
async def test_admin_requests_with_a_foreign_host_are_rejected(start: StartSandbox, path: str) -> None:
    async with start(admin_hosts=("sandbox",)) as caller:
        url = yarl.URL(caller.sandbox.url + path, encoded=True)
        for host, status in (
            ("evil.example", 403),
            ("localhost.evil.example:80", 403),
            ("127.0.0.1.evil.example", 403),
            ("localhost", 200),
            ("LOCALHOST.:8081", 200),
            ("v3.localhost:8081", 200),
            ("127.0.0.1:8081", 200),
            ("[::1]:8081", 200),
            ("192.0.2.7", 200),
            ("Sandbox:8081", 200),
        ):
            async with caller.session.get(url, headers={"Host": host}) as response:
                assert response.status == status, host
                assert status == 200 or "--admin-host" in await response.text()


async def test_a_foreign_host_cannot_declare_faults(caller: SandboxClient) -> None:
    url = caller.sandbox.url + "/admin/faults"
    async with caller.session.put(url, data='["latency ms=1"]', headers={"Host": "evil.example"}) as response:
        assert response.status == 403
    assert caller.sandbox.faults.remaining() == []


async def test_the_sandbox_records_documents_and_counts_requests(caller: SandboxClient) -> None:
    query = "query($ids: [String!]) { supSellers(ids: $ids) { id } }"
    await caller.ask(query, {"ids": ["459"]})
    await caller.ask("{ nonsense }")
    assert caller.sandbox.documents == ((query, {"ids": ["459"]}), ("{ nonsense }", {}))
    assert caller.sandbox.request_counts.graphql == 2


async def test_the_port_is_closed_after_the_context(start: StartSandbox) -> None:
    async with start() as caller:
        url = caller.sandbox.url
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(url)


async def test_a_port_in_use_is_an_error(start: StartSandbox, catalog: store.Catalog) -> None:
    async with start() as caller:
        with pytest.raises(OSError, match=str(caller.sandbox.port)):
            async with app.serve(settings.SandboxSettings(), port=caller.sandbox.port, catalog=catalog):
                pass


PART = """{ supSearchMpn(q: "SN74S74N", limit: 1) {
  hits results { part { id sellers { offers { sku inventoryLevel } } } }
} }"""
EVERYTHING = "{ supCategories { id numParts } }"


@asynccontextmanager
async def _started(seed: Any, catalog: Any, key: Any, **chosen: Any) -> Any:
    """A sandbox with its own clock and random source, and a signed-in user."""
    usual = {"applications": (dataclasses.replace(APPLICATION, client_secret=f"secret-{seed}"),)}
    legacy = legacy_service.LegacySettings(requests_per_second=None)
    running = app.serve(
        settings.SandboxSettings(**{**usual, "legacy": legacy, **chosen}),
        catalog=catalog,
        key=key,
        clock=clock.ManualClock(),
        rng=random.Random(seed),
    )
    async with running as sandbox, aiohttp.ClientSession() as session:
        person = DesignClient(sandbox, session)
        await person.sign_in()
        yield person


@pytest.fixture(scope="module")
def own() -> Any:
    """A catalog and a key for each of the two, which are slow to create."""
    made = [(store.open_catalog(), tokens.generate_key()) for _ in range(2)]
    yield made
    for catalog, _ in made:
        catalog.close()


@pytest.fixture
async def both(own: Any) -> Any:
    """Two sandboxes; the first has other parts, other users, and tokens with a lifetime of an hour."""
    others = (
        dataclasses.replace(user_directory.DEFAULT_USERS[0], name="Ada of the First"),
        *user_directory.DEFAULT_USERS[1:],
    )
    async with (
        _started(1, *own[0], users=others, token_lifetime=3600) as first,
        _started(2, *own[1]) as second,
    ):
        yield first, second


async def _journal(caller: Any) -> Any:
    url = caller.sandbox.url + "/admin/journal"
    async with caller.session.get(url) as response:
        return (await response.json())["totals"]["requests"]


async def test_tokens_secrets_and_keys_are_valid_in_their_sandbox_only(both: Any) -> None:
    first, second = both
    stranger = {"headers": {"Authorization": f"Bearer {first.token}"}}
    assert (await first.ask(EVERYTHING, **stranger)).status == 200
    assert (await second.ask(EVERYTHING, **stranger)).status == 401
    assert (await second.log_in(client_secret="secret-1")).status == 400
    published = []
    for caller in both:
        async with caller.session.get(caller.sandbox.url + "/.well-known/openid-configuration/jwks") as response:
            published.append({key["kid"] for key in (await response.json())["keys"]})
    assert not published[0] & published[1]


async def test_usage_faults_and_key_rotation_affect_one_sandbox_only(both: Any) -> None:
    first, second = both
    before = await _journal(second)
    first.sandbox.faults.replace(faults.parse_faults("5xx status=503"))
    url = first.sandbox.graphql_url
    async with first.session.post(url, json={"query": PART}) as response:
        assert response.status == 503
    first.sandbox.faults.clear()
    await first.get(PART)
    used = [caller.sandbox.billed_parts for caller in both]
    assert used == [1, 0]
    assert await _journal(second) == before
    assert (await second.ask(PART)).status == 200
