"""Two sandboxes in one process: changes of one do not affect the other."""

import dataclasses
import random
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from sandbox.design_client import APPLICATION, DesignClient

from nexar_sandbox import app, faults, settings, user_directory
from nexar_sandbox.catalog import store
from nexar_sandbox.identity import tokens
from nexar_sandbox.legacy_v3 import service as legacy_service
from proxy.kit import clock

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
    used = [caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id) for caller in both]
    assert used == [1, 0]
    assert await _journal(second) == before
    assert (await second.ask(PART)).status == 200
