"""Tests of a store that cannot be written: readiness names it, limits are kept, journaled usage is not lost.

A real process with a store file, in front of a sandbox that counts usage itself.
"""

import asyncio
import resource
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yarl
from together.crashes.program import ledger, serving, worker_of
from together.environment import target

import nexar_sandbox

SECONDS = 30
REFRESH_SECONDS = 1.0  # between two heartbeats of a worker
NO_SPACE = (1, resource.RLIM_INFINITY)  # bytes of a file: every write fails as on a full disk


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/state.sqlite"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


async def ask(session: aiohttp.ClientSession, url: str, application: str, mpn: str) -> tuple[int, Any]:
    """Status and body of a match by one key."""
    address = yarl.URL(url + target({"mpn": mpn}, key=f"KEY-{application}"), encoded=True)
    async with session.get(address) as response:
        return response.status, await response.json()


async def ready(session: aiohttp.ClientSession, url: str) -> tuple[int, dict[str, str]]:
    """Status of `/readyz`, and its reasons by check."""
    async with session.get(f"{url}/readyz") as response:
        body = await response.json()
        return response.status, {each["check"]: each["reason"] for each in body.get("reasons", [])}


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let a folder be a read-only mount meanwhile. Skips the test where this user may not mount."""
    if shutil.which("mount") is None or _mount("--bind", folder, folder):
        pytest.skip("mounting is not permitted")
    try:
        if _mount("-o", "remount,ro,bind", folder):
            pytest.skip("mounting read-only is not permitted")
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Let a folder be on a full disk meanwhile, with its files. Skips the test where this user may not mount."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    if shutil.which("mount") is None or _mount("-t", "tmpfs", "-o", "size=1m", "none", folder):
        pytest.skip("mounting is not permitted")
    try:
        shutil.copytree(copy, folder, dirs_exist_ok=True)
        with suppress(OSError), (folder / "rest").open("wb", buffering=0) as rest:
            while rest.write(bytes(4096)):
                pass
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _mount(*arguments: str | Path) -> int:
    return subprocess.run(["mount", *arguments], check=False, capture_output=True).returncode


async def settled(store: str) -> None:
    """Wait until the store has the usage that is noted in the journal."""
    async with asyncio.timeout(SECONDS):
        while not (await ledger(store))["unlimited"].used:
            await asyncio.sleep(0.05)


async def stop(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    assert await asyncio.to_thread(process.wait, SECONDS) == 0


async def test_full_disk_fails_readiness_is_logged_once_and_loses_no_usage(
    sandbox: nexar_sandbox.Sandbox,
    configured: Path,
    store: str,
    session: aiohttp.ClientSession,
) -> None:
    with serving(configured, stderr=subprocess.PIPE) as (process, url):
        assert [(await ask(session, url, name, "SN74S74N"))[0] for name in ("limited", "unlimited")] == [200, 200]
        assert await ready(session, url) == (200, {})
        await settled(store)
        usual = resource.prlimit(worker_of(process), resource.RLIMIT_FSIZE, NO_SPACE)
        status, reasons = await ready(session, url)
        assert (status, list(reasons)) == (503, ["store"])
        assert reasons["store"].startswith("the store (SQLite) cannot be used: ")
        # Each heartbeat fails and each reading succeeds, which proves nothing. No usage waits to be written yet.
        await asyncio.sleep(3 * REFRESH_SECONDS)
        assert (await ask(session, url, "unlimited", "1N4007"))[0] == 200
        status, body = await ask(session, url, "limited", "1N4007")
        assert (status, body["message"]) == (503, reasons["store"])
        resource.prlimit(worker_of(process), resource.RLIMIT_FSIZE, usual)
        async with asyncio.timeout(SECONDS):
            while (await ready(session, url))[0] != 200:
                await asyncio.sleep(0.1)
        assert (await ask(session, url, "limited", "1N4007"))[0] == 200
        await stop(process)
        assert process.stderr is not None
        assert process.stderr.read().count("store became unavailable") == 1
    for name, state in (await ledger(store)).items():
        assert (state.used, state.uncertain, state.reserved) == (sandbox.part_usage.used(name), 0, 0)


async def test_deleted_store_is_detected_and_journal_is_booked_into_the_new_one(
    sandbox: nexar_sandbox.Sandbox,
    configured: Path,
    store: str,
    session: aiohttp.ClientSession,
) -> None:
    with serving(configured) as (process, url):
        assert (await ask(session, url, "unlimited", "SN74S74N"))[0] == 200
        await settled(store)
        before = sandbox.part_usage.used("unlimited")
        for file in Path(store.removeprefix("sqlite:")).parent.glob("state.sqlite*"):
            if file.suffix not in (".journal", ".intents"):
                file.unlink()
        status, reasons = await ready(session, url)
        assert (status, list(reasons)) == (503, ["store"])
        assert "was deleted or replaced; restart" in reasons["store"]
        assert (await ask(session, url, "limited", "1N4007"))[0] == 503
        assert (await ask(session, url, "unlimited", "1N4007"))[0] == 200
        await stop(process)
    with serving(configured) as (process, url):
        assert await ready(session, url) == (200, {})
        await stop(process)
    state = (await ledger(store))["unlimited"]
    assert (state.used, state.uncertain) == (sandbox.part_usage.used("unlimited") - before, 0)


async def test_read_only_mount_is_named_by_readiness_and_logged_once(
    configured: Path, store: str, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    configured.write_text(configured.read_text().replace(store, f"sqlite:{folder}/state.sqlite"))
    with serving(configured, stderr=subprocess.PIPE) as (process, url):
        assert await ready(session, url) == (200, {})
        with read_only(folder):
            async with asyncio.timeout(SECONDS):
                while (await ready(session, url))[0] == 200:
                    await asyncio.sleep(0.1)
            for mpn in ("SN74S74N", "1N4007", "NE555P"):
                await ask(session, url, "limited", mpn)
                assert (await ask(session, url, "unlimited", mpn))[0] == 200
            await asyncio.sleep(3 * REFRESH_SECONDS)
            status, reasons = await ready(session, url)
        assert (status, list(reasons)) == (503, ["store"])
        assert f"{folder} is read-only; make it writable" in reasons["store"]
        async with asyncio.timeout(SECONDS):
            while (await ready(session, url))[0] != 200:
                await asyncio.sleep(0.1)
        await stop(process)
        assert process.stderr is not None
        assert process.stderr.read().count("journal write failed") == 1
