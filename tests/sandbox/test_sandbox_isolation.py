"""Two sandboxes in one process: changes of one do not affect the other."""

import dataclasses
import random
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from sandbox.design_client import APPLICATION, DesignClient

from nexar_sandbox import app, faults, settings, user_directory
from nexar_sandbox.behavior import Behavior
from nexar_sandbox.catalog import store
from nexar_sandbox.identity import keys
from nexar_sandbox.legacy_v3 import settings as legacy_settings
from proxy.kit import clock
from sandbox import design_client, legacy_client

PART = """{ supSearchMpn(q: "SN74S74N", limit: 1) {
  hits results { part { id sellers { offers { sku inventoryLevel } } } }
} }"""
EVERYTHING = "{ supCategories { id numParts } }"


@asynccontextmanager
async def _started(seed: Any, catalog: Any, key: Any, **chosen: Any) -> Any:
    """A sandbox with its own clock and random source, and a signed-in user."""
    usual = {"applications": (dataclasses.replace(APPLICATION, client_secret=f"secret-{seed}"),), "seed": seed}
    legacy = legacy_settings.LegacySettings(requests_per_second=None)
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
    made = [(store.open_catalog(700, seed=1), keys.generate_key()), (store.open_catalog(seed=2), keys.generate_key())]
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
        _started(1, *own[0], users=others, behavior=Behavior(token_lifetime=3600)) as first,
        _started(2, *own[1]) as second,
    ):
        yield first, second


async def _parts(caller: Any) -> Any:
    return max(each["numParts"] for each in (await caller.get(EVERYTHING))["supCategories"])


async def _journal(caller: Any) -> Any:
    url = caller.sandbox.url + "/admin/journal"
    async with caller.session.get(url) as response:
        return (await response.json())["totals"]["requests"]


async def test_two_sandboxes_have_their_own_parts_and_offers(both: Any) -> None:
    first, second = both
    assert await _parts(first) == 700
    assert await _parts(second) < 700
    mine, other = [await caller.get(PART) for caller in both]
    assert mine["supSearchMpn"]["results"][0]["part"]["id"] == other["supSearchMpn"]["results"][0]["part"]["id"]
    assert mine != other


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
    used = [caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id) for caller in both]
    assert used == [1, 0]
    assert await _journal(second) == before
    assert (await second.ask(PART)).status == 200


async def test_users_sessions_and_design_data_are_not_shared(both: Any) -> None:
    first, second = both
    names = []
    for caller in both:
        headers = {"Authorization": f"Bearer {caller.token}"}
        async with caller.session.get(caller.sandbox.url + "/connect/userinfo", headers=headers) as response:
            names.append((await response.json())["sub"])
    assert names[0] == names[1]
    shown = [caller.sandbox.users.by_email("ada@sandbox.example").name for caller in both]
    assert shown[0] == "Ada of the First" != shown[1]
    first.sandbox.users.add(
        dataclasses.replace(
            user_directory.DEFAULT_USERS[0], id=user_directory.DEFAULT_USERS[0].id[:-1] + "9", email="new@x.example"
        )
    )
    assert (
        await second.log_in(
            grant_type="password", username="new@x.example", password="sandbox-ada", scope=design_client.SCOPES
        )
    ).status == 400
    await second.sign_in()
    before = [await _tasks(caller) for caller in both]
    project_id = (await first.project())["id"]
    await first.change(
        "desCreateProjectTask", "task { id }", projectId=project_id, task={"name": "Only here", "description": ""}
    )
    assert [await _tasks(caller) for caller in both] == [before[0] + 1, before[1]]


async def _tasks(caller: Any) -> Any:
    query = "query($p: ID!) { desProjectTasks(projectId: $p) { totalCount } }"
    return (await caller.get(query, p=(await caller.project())["id"]))["desProjectTasks"]["totalCount"]


async def test_legacy_requests_and_disturbances_are_not_shared(both: Any) -> None:
    first, second = (legacy_client.LegacyClient(caller.sandbox, caller.session) for caller in both)
    await first.match({"mpn": "SN74S74N"})
    url = first.sandbox.url + "/admin/legacy"
    async with first.session.put(url, json=["errors share=1"]) as response:
        assert response.status == 200
    assert (await first.get("/parts/match?queries=[]")).status == 503
    assert await second.match({"mpn": "SN74S74N"})
    assert second.sandbox.legacy.requests(legacy_client.KEY) == 1
