"""Tests of several workers that request tokens through a shared store: one token request."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from together.environment import ProxyEnvironment, StartEnvironment
from together.token_worker import worker

from proxy import config
from proxy.kit import clock
from proxy.stores import open as opening
from proxy.upstream.auth import identity

ROOT = Path(__file__).parents[2]


def credentials(environment: ProxyEnvironment) -> identity.Credentials:
    account = environment.sandbox.default_application
    return identity.Credentials("demo", account.client_id, config.Secret(account.client_secret))


@pytest.fixture(params=["sqlite", "redis"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "redis":
        return str(request.getfixturevalue("redis_server").url)
    return f"sqlite:{tmp_path / 'state.sqlite'}"


async def process(token_url: str, store_url: str, calls: int) -> asyncio.subprocess.Process:
    """A worker process that is ready to call."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "together.token_worker", token_url, store_url, str(calls),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
    )  # fmt: skip
    assert started.stdout is not None
    assert await started.stdout.readline() == b"ready\n"
    return started


async def test_1000_cold_requests_on_two_processes_make_one_token_request(
    start: StartEnvironment, store_url: str
) -> None:
    async with start(upstream_time=clock.SystemClock()) as environment:
        workers = [await process(environment.sandbox.token_url, store_url, 500) for _ in range(2)]
        account = environment.sandbox.default_application
        line = f"{account.client_id} {account.client_secret}\n".encode()
        async with asyncio.timeout(120):
            said = [out for out, _ in await asyncio.gather(*(each.communicate(line) for each in workers))]
        assert [each.returncode for each in workers] == [0, 0]
        assert said[0].startswith(b"1 ")
        assert said[0] == said[1]
        assert environment.sandbox.request_counts.tokens == 1


async def test_restart_requests_no_token(start: StartEnvironment, time: clock.ManualClock, store_url: str) -> None:
    async with start() as environment:
        found = set()
        for _ in range(3):
            store = await opening.open_store(config.StoreUrl(store_url), time)
            async with worker(environment.sandbox.token_url, store, time) as each:
                found.add(await each.get(credentials(environment)))
            await store.aclose()
        assert len(found) == 1
        assert environment.sandbox.request_counts.tokens == 1


async def test_store_keys_hold_no_secret_and_no_token(
    start: StartEnvironment, time: clock.ManualClock, tmp_path: Path
) -> None:
    """The token itself is kept, in a file that only its owner reads; the secret is not."""
    store_url = f"sqlite:{tmp_path / 'state.sqlite'}"
    async with start() as environment:
        store = await opening.open_store(config.StoreUrl(store_url), time)
        async with worker(environment.sandbox.token_url, store, time) as each:
            token = await each.get(credentials(environment))
        await store.aclose()
        written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert token.encode() in written
        assert environment.sandbox.default_application.client_secret.encode() not in written
        assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())
        assert not any(token in file.name for file in tmp_path.iterdir())
