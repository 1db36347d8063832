"""What `v3bridge doctor` says of this machine, and how it uses the store: tokens, rate limits and usage."""

import contextlib
import json
import shutil
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from proxy.upstream import identity
from proxy.upstream.stored_tokens import StoredToken

if TYPE_CHECKING:
    from support.redis_server import RedisServer

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
    url = config.StoreUrl(f"sqlite:{folder}/state.sqlite")
    store = await opening.open_store(url, time, worker="test", cache_bytes=2**20)
    try:
        yield store
    finally:
        await store.aclose()


def credentials(application: nexar_sandbox.SandboxApplication = nexar_sandbox.DEFAULT_APPLICATION) -> dict[str, str]:
    return {"client_id": application.client_id, "client_secret": application.client_secret}


async def inspected(folder: Path, sandbox: nexar_sandbox.Sandbox, **changes: Any) -> Inspected:
    """Run all checks; `application` are changes of the application."""
    upstream = {"graphql_url": sandbox.graphql_url, "token_url": sandbox.token_url}
    application = {**inspected_upstream.APPLICATION, **credentials(), **changes.pop("application", {})}
    chosen = changes.pop("applications", {"demo": application})
    return await inspected_upstream.inspect(folder, upstream, applications=chosen, **changes)


def stored_token(state: Store, sandbox: nexar_sandbox.Sandbox) -> StoredToken:
    account = sandbox.default_application
    credentials = identity.Credentials("demo", account.client_id, config.Secret(account.client_secret))
    return StoredToken(state, sandbox.token_url, credentials, TIME)


async def test_requested_token_is_stored_and_used_by_the_next_run(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path
) -> None:
    async with opened(tmp_path):
        pass
    runs = [await inspected(tmp_path, sandbox) for _ in range(2)]
    assert [run.failed for run in runs] == [[], []]
    assert sandbox.journal.totals.requests["token"] == 1


async def test_stored_token_that_is_refused_is_replaced(sandbox: nexar_sandbox.Sandbox, tmp_path: Path) -> None:
    async with opened(tmp_path) as state:
        await stored_token(state, sandbox).keep(identity.AccessToken("revoked", TIME.now() + 3600))
    assert (await inspected(tmp_path, sandbox)).failed == []
    assert sandbox.journal.totals.requests["token"] == 1


async def test_rate_limit_of_the_service_is_kept_without_a_request(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path
) -> None:
    time = clock.ManualClock(TIME.now() - 120)
    async with opened(tmp_path, time) as state:
        while not await stored_token(state, sandbox).take():
            time.advance(0.5)
    result = await inspected(tmp_path, sandbox)
    assert result.failed == ["token"]
    assert "too many tokens" in result["token"].text
    assert "token" not in sandbox.journal.totals.requests


async def test_each_application_is_checked_and_named(sandbox: nexar_sandbox.Sandbox, tmp_path: Path) -> None:
    wrong = {**credentials(OTHER), "client_secret": "another-secret-of-30-characters"}
    chosen = {
        name: {**inspected_upstream.APPLICATION, "apikeys": [name], **own}
        for name, own in (("good", credentials()), ("wrong", wrong), ("other", credentials(OTHER)))
    }
    result = await inspected(tmp_path, sandbox, applications=chosen)
    assert result.failed == ["token"]
    assert result["token"].text.startswith("wrong: the identity service refuses application wrong: invalid_client")
    assert [name in result["scope"].text for name in chosen] == [True, False, True]
    assert f"good (client id …{nexar_sandbox.DEFAULT_APPLICATION.client_id[-4:]})" in result["store"].text
    assert f"wrong and other (client id …{OTHER.client_id[-4:]})" in result["store"].text


@cases.parametrize("parts, used, outcome, words")
async def test_remaining_parts_are_those_of_the_store(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path, parts: Any, used: int, outcome: str, words: str
) -> None:
    async with opened(tmp_path) as state:
        await state.set_usage(Account(ACCOUNT, f"{datetime.now(UTC):%Y-%m}"), used)
    result = await inspected(tmp_path, sandbox, application={"parts": parts})
    assert (result["plan"].outcome, words in result["plan"].text) == (outcome, True), result["plan"]


async def test_quota_that_is_marked_exhausted_although_the_plan_has_parts_is_reopened_by_hand(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path
) -> None:
    refused = json.dumps(["You have exceeded your part limit of 500.", TIME.now() + 3600])
    async with opened(tmp_path) as state:
        await state.put_value(f"exhausted {ACCOUNT}", refused, 3600)
    result = await inspected(tmp_path, sandbox, application={"parts": 1000})
    assert result.failed == ["plan"]
    assert "v3bridge usage --set demo=PARTS" in result["plan"].advice


async def test_no_secret_is_in_a_result(sandbox: nexar_sandbox.Sandbox, tmp_path: Path) -> None:
    planted = {"client_secret": "planted-secret-of-30-characters", "apikeys": ["planted-key"]}
    result = await inspected(tmp_path, sandbox, application=planted)
    sandbox.faults.replace(nexar_sandbox.parse_faults("401"))
    refused = await inspected(tmp_path, sandbox)
    assert (result.failed, refused.failed) == (["token"], ["scope"])
    shown = repr((result, refused))
    assert "planted" not in shown
    assert "eyJ" not in shown  # a JWT begins so
    assert sandbox.default_application.client_secret not in shown


@pytest.mark.parametrize(
    "store, outcome, words",
    [
        ("memory:", "warning", "are lost when the service stops"),
        ("sqlite:other/state.sqlite", "failed", "mkdir -p"),
        ("sqlite:damaged.sqlite", "failed", "replace a damaged one by a backup"),
        ("sqlite:foreign.sqlite", "failed", "other tables than the store's"),
        ("sqlite:.", "failed", "unable to open database file"),
        ("redis://me:planted@127.0.0.1:9/0", "failed", "redis-cli -u ADDRESS ping"),
    ],
)
async def test_trouble_of_a_store_is_named_and_hides_nothing_else(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path, store: str, outcome: str, words: str
) -> None:
    (tmp_path / "damaged.sqlite").write_text("no database")
    with contextlib.closing(sqlite3.connect(tmp_path / "foreign.sqlite")) as foreign:
        foreign.execute("CREATE TABLE a (b)")
    result = await inspected(tmp_path, sandbox, store=store)
    assert result["store"].outcome == outcome
    assert words in f"{result['store'].text} {result['store'].advice}"
    assert set(result.failed) <= {"store"}
    assert "planted" not in repr(result)
    assert (tmp_path / "damaged.sqlite").read_text() == "no database"


async def test_redis_that_may_lose_usage_is_named(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path, redis_server: "RedisServer"
) -> None:
    import redis

    with redis.Redis.from_url(redis_server.url) as client:
        good = await inspected(tmp_path, sandbox, store=redis_server.url)
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            bad = await inspected(tmp_path, sandbox, store=redis_server.url)
        finally:
            client.config_set("maxmemory-policy", "noeviction")
            client.flushdb()
    assert ", writable, " in good["store"].text
    assert (good.failed, bad.failed) == ([], ["store"])
    assert "maxmemory-policy noeviction" in bad["store"].text


async def test_what_the_machine_lacks_is_named(
    sandbox: nexar_sandbox.Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.txt").write_text(f"{sandbox.default_application.client_secret}\n")
    (tmp_path / "secret.txt").chmod(0o644)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        result = await inspected(
            tmp_path, sandbox, application={"client_secret": "file:secret.txt"}, admin={"port": port}
        )
    assert result.failed == []
    assert result["configuration"].advice == f"chmod 600 {tmp_path}/secret.txt"
    assert f"127.0.0.1:{port} (admin)" in result["ports"].text
    assert [result[name].outcome for name in ("configuration", "ports", "disk")] == ["warning"] * 3
