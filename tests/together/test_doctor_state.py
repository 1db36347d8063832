"""State of the store that `v3bridge doctor` uses: tokens, rate limits and usage."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support import cases
from together import inspected_upstream
from together.inspected_upstream import Inspected

import nexar_sandbox
from proxy import config
from proxy.kit import clock
from proxy.store import open as opening
from proxy.store.protocol import Account
from proxy.store.store import Store
from proxy.upstream.auth import identity
from proxy.upstream.stored_tokens import StoredTokens

TIME = clock.SystemClock()  # aiohttp makes the Date headers of the sandbox by the system's clock
OTHER = nexar_sandbox.SandboxApplication(
    "Another",
    "8c0f6d3e-51f4-4a8e-9f0b-2f7d5f1d9a08",
    "11111111-1111-4111-8111-111111111118",
    "a-secret-of-24-characters",
)
ACCOUNT = config.digest(nexar_sandbox.DEFAULT_APPLICATION.client_id).reveal()


@pytest.fixture
async def sandbox(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> AsyncIterator[nexar_sandbox.Sandbox]:
    chosen = nexar_sandbox.SandboxSettings(applications=(nexar_sandbox.DEFAULT_APPLICATION, OTHER))
    async with nexar_sandbox.serve(chosen, catalog=catalog, key=signing_key) as started:
        yield started
        assert started.journal.totals.parts == 0


@asynccontextmanager
async def opened(folder: Path, time: clock.Clock = TIME) -> AsyncIterator[Store]:
    """The store that the configuration of `inspected` names, as the service opens it."""
    store = await opening.open_store(
        config.StoreUrl(f"sqlite:{folder}/state.sqlite"), time, worker="test", cache_bytes=2**20
    )
    try:
        yield store
    finally:
        await store.aclose()


def credentials(application: nexar_sandbox.SandboxApplication = nexar_sandbox.DEFAULT_APPLICATION) -> dict[str, str]:
    return {"client_id": application.client_id, "client_secret": application.client_secret}


async def inspected(folder: Path, sandbox: nexar_sandbox.Sandbox, **changes: Any) -> Inspected:
    """Run all stages; `application` are changes of the application."""
    upstream = {"graphql_url": sandbox.graphql_url, "token_url": sandbox.token_url}
    application = {**inspected_upstream.APPLICATION, **credentials(), **changes.pop("application", {})}
    chosen = changes.pop("applications", {"demo": application})
    return await inspected_upstream.inspect(folder, upstream, applications=chosen, **changes)


def credentials_of(sandbox: nexar_sandbox.Sandbox, client_secret: str | None = None) -> identity.Credentials:
    account = sandbox.default_application
    return identity.Credentials("demo", account.client_id, config.Secret(client_secret or account.client_secret))


def tokens(state: Store, sandbox: nexar_sandbox.Sandbox) -> StoredTokens:
    return StoredTokens(state, sandbox.token_url, "supply.domain", TIME)


async def keep(
    state: Store,
    sandbox: nexar_sandbox.Sandbox,
    token: str = "revoked",
    seconds: float = 3600,
    client_secret: str | None = None,
) -> None:
    """Store a token of the application."""
    kept = identity.AccessToken(token, TIME.now() + seconds)
    await tokens(state, sandbox).keep(credentials_of(sandbox, client_secret), kept)


async def test_requested_token_is_stored_and_used_by_the_next_run(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path
) -> None:
    async with opened(tmp_path):
        pass
    runs = [await inspected(tmp_path, sandbox) for _ in range(2)]
    assert [run.failed for run in runs] == [set(), set()]
    assert runs[0].finding("token_received").text == "a new token, valid for 24 hours"
    assert runs[1].finding("token_stored").text == "the store has a token, valid for 24 hours"
    assert sandbox.journal.totals.requests["token"] == 1


async def test_store_that_does_not_exist_is_not_made(sandbox: nexar_sandbox.Sandbox, tmp_path: Path) -> None:
    assert (await inspected(tmp_path, sandbox)).failed == set()
    assert [file.name for file in tmp_path.iterdir()] == ["config.yaml"]


async def test_store_that_is_down_hides_nothing_else(sandbox: nexar_sandbox.Sandbox, tmp_path: Path) -> None:
    result = await inspected(tmp_path, sandbox, store="redis://:planted@127.0.0.1:9/0")
    assert result.failed == {"redis_unreachable"}
    assert result.finding("token_accepted").outcome == "passed"
    assert "planted" not in repr(result)


async def test_stored_token_that_is_refused_is_replaced_by_one_request(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path
) -> None:
    async with opened(tmp_path) as state:
        await keep(state, sandbox)
    result = await inspected(tmp_path, sandbox)
    assert result.failed == set()
    assert result.finding("token_replaced").application == "demo"
    assert sandbox.journal.totals.requests["token"] == 1
    async with opened(tmp_path) as state:
        token = await tokens(state, sandbox).token(credentials_of(sandbox))
        assert token is not None
        assert token.token != "revoked"


async def test_own_rate_limit_is_kept_without_a_request(sandbox: nexar_sandbox.Sandbox, tmp_path: Path) -> None:
    time = clock.ManualClock(TIME.now() - 120)
    async with opened(tmp_path, time) as state:
        while not await tokens(state, sandbox).take(credentials_of(sandbox)):
            time.advance(0.5)
    result = await inspected(tmp_path, sandbox)
    assert result.failed == {"token_rate_limited"}
    assert "the next one is allowed in" in result.finding("token_rate_limited").text
    assert "token" not in sandbox.journal.totals.requests


@pytest.mark.parametrize("has_stored_token", [False, True])
async def test_applications_with_the_same_credentials_share_a_token(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path, has_stored_token: bool
) -> None:
    if has_stored_token:
        async with opened(tmp_path) as state:
            await keep(state, sandbox)
    chosen = {name: {**inspected_upstream.APPLICATION, "apikeys": [name], **credentials()} for name in ("one", "two")}
    result = await inspected(tmp_path, sandbox, applications=chosen)
    assert result.failed == set()
    assert result.finding("token_shared").application == "two"
    assert sandbox.journal.totals.requests["token"] == 1


async def test_each_application_is_checked_and_named(sandbox: nexar_sandbox.Sandbox, tmp_path: Path) -> None:
    wrong = {**credentials(OTHER), "client_secret": '"a-secret-of-24-characters"'}
    chosen = {
        name: {**inspected_upstream.APPLICATION, "apikeys": [name], **own}
        for name, own in (("good", credentials()), ("wrong", wrong), ("other", credentials(OTHER)))
    }
    result = await inspected(tmp_path, sandbox, applications=chosen)
    assert result.failed == {"client_refused"}
    finding = result.finding("client_refused")
    assert finding.application == "wrong"
    assert "the client secret has a quote at an end" in finding.text
    assert finding.advice.startswith("correct that first; ")
    accepted = [finding.application for finding in result.findings if finding.code == "token_accepted"]
    assert accepted == ["good", "other"]
    assert sandbox.journal.totals.requests["token"] == 3
    assert len([finding for finding in result.findings if finding.code == "schema_complete"]) == 1


@cases.parametrize("parts, used, code, outcome, words")
async def test_remaining_parts_are_those_of_the_store(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path, parts: Any, used: int, code: str, outcome: str, words: str
) -> None:
    async with opened(tmp_path) as state:
        await state.set_usage(Account(ACCOUNT, f"{datetime.now(UTC):%Y-%m}"), used)
    result = await inspected(tmp_path, sandbox, application={"parts": parts})
    assert result.finding(code).outcome == outcome
    assert result.finding(code).text.startswith(words)


async def test_quota_that_is_marked_exhausted_although_the_plan_has_parts_is_reopened_by_hand(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path
) -> None:
    refused = json.dumps(["You have exceeded your part limit of 500.", TIME.now() + 3600])
    async with opened(tmp_path) as state:
        await state.put_value(f"exhausted {ACCOUNT}", refused, 3600)
    result = await inspected(tmp_path, sandbox, application={"parts": 1000})
    assert (result.failed, result.warned) == ({"quota_marked_exhausted"}, {"part_limit_differs"})
    assert "v3bridge usage --set demo=PARTS" in result.finding("quota_marked_exhausted").advice


async def test_no_secret_is_in_a_finding(sandbox: nexar_sandbox.Sandbox, tmp_path: Path) -> None:
    planted = {"client_secret": "planted-secret-of-30-characters", "apikeys": ["planted-key"]}
    result = await inspected(tmp_path, sandbox, application=planted)
    sandbox.faults.replace(nexar_sandbox.parse_faults("401"))
    refused = await inspected(tmp_path, sandbox)
    assert (result.failed, refused.failed) == ({"client_refused"}, {"token_refused"})
    shown = repr((result, refused))
    assert "planted" not in shown
    assert "eyJ" not in shown  # a JWT begins so
    assert sandbox.default_application.client_secret not in shown
