"""`v3bridge doctor` on sandboxes, at 0 parts: each fault and misconfiguration fails exactly the one right check; the
store and the machine are named where they are the trouble."""

import contextlib
import dataclasses
import json
import shutil
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support import cases
from together.inspected_upstream import Examined, own

import nexar_sandbox
from nexar_sandbox import faults
from proxy import config
from proxy.doctor import upstream as checks_of_upstream
from proxy.kit import clock
from proxy.store import open as opening
from proxy.store.protocol import Account
from proxy.store.store import Store
from proxy.upstream import classify
from proxy.upstream.tokens import RATE_LIMITS, CachedToken, Credentials

if TYPE_CHECKING:
    from support.redis_server import RedisServer

OWN = nexar_sandbox.SandboxApplication(
    "A plan",
    "8c0f6d3e-51f4-4a8e-9f0b-2f7d5f1d9a09",
    "11111111-1111-4111-8111-111111111119",
    "a-secret-of-24-characters",
)
TIME = clock.Clock()  # aiohttp makes the Date headers of the sandbox by the system's clock
ACCOUNT = config.digest(OWN.client_id).reveal()
StartUpstream = Callable[..., AbstractAsyncContextManager[Examined]]


@pytest.fixture
def start_upstream(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, tmp_path: Path
) -> StartUpstream:
    """Starts a sandbox; proves the costs at its end."""

    @asynccontextmanager
    async def started(*applications: nexar_sandbox.SandboxApplication, **chosen: Any) -> AsyncIterator[Any]:
        settings = nexar_sandbox.SandboxSettings(applications=applications or (OWN,), **chosen)
        async with nexar_sandbox.serve(settings, catalog=catalog, key=signing_key) as sandbox:
            yield Examined(tmp_path, sandbox)
            assert sandbox.journal.totals.parts == 0

    return started


@pytest.fixture
async def examined(start_upstream: StartUpstream) -> AsyncIterator[Examined]:
    async with start_upstream() as started:
        yield started


@asynccontextmanager
async def opened(folder: Path, time: clock.Clock = TIME) -> AsyncIterator[Store]:
    """The store of the configuration, as the service opens it."""
    url = config.StoreUrl(f"sqlite:{folder}/state.sqlite")
    store = await opening.open_store(url, time, worker="test", cache_bytes=2**20)
    try:
        yield store
    finally:
        await store.aclose()


@cases.parametrize("fault, failed")
async def test_fault_fails_exactly_its_check(start_upstream: StartUpstream, fault: str, failed: list[str]) -> None:
    async with start_upstream(faults=nexar_sandbox.parse_faults(fault)) as examined:
        result = await examined.inspect()
    assert result.failed == failed
    assert all(result[name].advice for name in failed)


def test_table_has_every_kind_of_fault() -> None:
    table = cases.of(__file__, "fault_fails_exactly_its_check")
    assert {fault.split()[0] for fault, _ in table} == set(faults.KINDS)


@cases.parametrize("name, case")
async def test_state_fails_exactly_its_check(start_upstream: StartUpstream, name: str, case: dict[str, Any]) -> None:
    plan: dict[str, Any] = {
        key: frozenset(value) if isinstance(value, list) else value for key, value in case.get("plan", {}).items()
    }
    async with start_upstream(dataclasses.replace(OWN, **plan)) as examined:
        examined.sandbox.part_usage.record(OWN.application_id, used := case.get("used", 0))
        places = {"url": examined.sandbox.url, "port": examined.sandbox.port}
        block = {key: text.format(**places) for key, text in case.get("upstream", {}).items()}
        result = await examined.inspect(application=case.get("application"), upstream=block, **case.get("blocks", {}))
        assert examined.sandbox.part_usage.used(OWN.application_id) == used
    assert (result.failed, result.warned) == (case["failed"], case.get("warned", [])), result
    assert case.get("words", "") in " ".join(f"{each.text} {each.advice}" for each in result.results.values())


async def test_healthy_upstream_passes_every_check_and_needs_one_token(examined: Examined) -> None:
    result = await examined.inspect()
    assert (result.failed, result.warned) == ([], [])
    assert "does not exist yet" in result["store"].text
    assert [file.name for file in examined.folder.iterdir()] == ["config.yaml"]
    assert examined.sandbox.journal.totals.requests["token"] == 1
    async with opened(examined.folder):
        pass
    assert [(await examined.inspect()).failed for _ in range(2)] == [[], []]
    assert examined.sandbox.journal.totals.requests["token"] == 2  # the store has it for the last run


async def test_results_in_another_order_are_found(examined: Examined, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_of_upstream, "REFERENCES", ["1", "2", "3", "4", "5"])  # as if they were sent so
    result = await examined.inspect()
    assert result.failed == ["order"]
    assert "would be mixed up" in result["order"].advice


async def test_stored_token_that_is_refused_is_replaced_and_the_limit_of_tokens_kept(
    examined: Examined,
) -> None:
    credentials = Credentials("demo", OWN.client_id, config.Secret(OWN.client_secret))
    async with opened(examined.folder) as state:
        revoked = classify.AccessToken("revoked", TIME.now() + 3600)
        await CachedToken(state, examined.sandbox.token_url, credentials, TIME).keep(revoked)
    assert (await examined.inspect()).failed == []
    assert examined.sandbox.journal.totals.requests["token"] == 1
    (examined.folder / "state.sqlite").unlink()
    time = clock.ManualClock(TIME.now() - 120)
    async with opened(examined.folder, time) as state:
        window = CachedToken(state, examined.sandbox.token_url, credentials, TIME).window
        while not await state.take(window, RATE_LIMITS):
            time.advance(0.5)
    result = await examined.inspect()
    assert result.failed == ["token"]
    assert "too many tokens" in result["token"].text
    assert examined.sandbox.journal.totals.requests["token"] == 1


async def test_each_application_is_checked_and_named(start_upstream: StartUpstream) -> None:
    first = nexar_sandbox.DEFAULT_APPLICATION
    wrong = {"client_secret": "another-secret-of-30-characters"}
    chosen = {"good": own(first), "wrong": own(OWN, **wrong), "other": own(OWN)}
    for name, application in chosen.items():
        application["apikeys"] = [name]
    async with start_upstream(first, OWN) as examined:
        result = await examined.inspect(applications=chosen)
    assert result.failed == ["token"]
    assert result["token"].text.startswith("wrong: the identity service refuses application wrong: invalid_client")
    assert [name in result["scope"].text for name in chosen] == [True, False, True]
    assert f"good (client id …{first.client_id[-4:]})" in result["store"].text
    assert f"wrong and other (client id …{OWN.client_id[-4:]})" in result["store"].text


@pytest.mark.parametrize(
    "parts, used, outcome, words",
    [
        (100, 0, "passed", "100 of 100 parts left until "),
        (100, 95, "warning", "5 of 100 parts left until "),
        (100, 100, "failed", "0 of 100 parts left until "),
        ("unlimited", 40, "passed", "40 parts used, no limit"),
        (None, 40, "passed", "100 of 100 parts left, and no reset"),
    ],
)
async def test_parts_left_are_of_the_store(examined: Examined, parts: Any, used: int, outcome: str, words: str) -> None:
    async with opened(examined.folder) as state:
        await state.set_usage(Account(ACCOUNT, f"{datetime.now(UTC):%Y-%m}"), used)
    result = await examined.inspect(application={"parts": parts} if parts else {"plan": "evaluation"})
    assert (result["plan"].outcome, words in result["plan"].text) == (outcome, True), result["plan"]


async def test_quota_marked_exhausted_although_the_plan_has_parts_is_reopened_by_hand(
    examined: Examined,
) -> None:
    refused = json.dumps(["You have exceeded your part limit of 500.", TIME.now() + 3600])
    async with opened(examined.folder) as state:
        await state.put_value(f"exhausted {ACCOUNT}", refused, 3600)
    result = await examined.inspect(application={"parts": 1000})
    assert result.failed == ["plan"]
    assert "v3bridge usage --set demo=PARTS" in result["plan"].advice


@pytest.mark.parametrize(
    "store, outcome, words",
    [
        ("memory:", "warning", "are lost when the service stops"),
        ("sqlite:other/state.sqlite", "failed", "mkdir -p"),
        ("sqlite:damaged.sqlite", "failed", "replace a damaged one by a backup"),
        ("sqlite:foreign.sqlite", "failed", "other tables than the store's"),
        ("sqlite:.", "failed", "is a folder or a device; name a file"),
        ("redis://me:planted@127.0.0.1:9/0", "failed", "redis://127.0.0.1:9/0 cannot be used: ConnectionError"),
    ],
)
async def test_trouble_of_a_store_hides_nothing_else(examined: Examined, store: str, outcome: str, words: str) -> None:
    (examined.folder / "damaged.sqlite").write_text("no database")
    with contextlib.closing(sqlite3.connect(examined.folder / "foreign.sqlite")) as foreign:
        foreign.execute("CREATE TABLE a (b)")
    result = await examined.inspect(store=store)
    assert result["store"].outcome == outcome
    assert words in f"{result['store'].text} {result['store'].advice}"
    assert set(result.failed) <= {"store"}
    assert "planted" not in repr(result)
    assert (examined.folder / "damaged.sqlite").read_text() == "no database"


async def test_redis_that_may_lose_usage_is_named(examined: Examined, redis_server: "RedisServer") -> None:
    import redis

    with redis.Redis.from_url(redis_server.url) as client:
        good = await examined.inspect(store=redis_server.url)
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            bad = await examined.inspect(store=redis_server.url)
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    assert ", writable, " in good["store"].text
    assert (good.failed, bad.failed) == ([], ["store"])
    assert "maxmemory-policy noeviction" in bad["store"].text


async def test_what_the_machine_lacks_is_named(examined: Examined, monkeypatch: pytest.MonkeyPatch) -> None:
    (examined.folder / "secret.txt").write_text(f"{OWN.client_secret}\n")
    (examined.folder / "secret.txt").chmod(0o644)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=10, used=9, free=1))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        secret = {"client_secret": "file:secret.txt"}
        result = await examined.inspect(application=secret, admin={"port": port})
    assert result.failed == []
    assert result["configuration"].advice == f"chmod 600 {examined.folder}/secret.txt"
    assert f"127.0.0.1:{port} (admin)" in result["ports"].text
    assert [result[name].outcome for name in ("configuration", "ports", "disk")] == ["warning"] * 3
