"""Tests of `python -m bench.chaos`: killed workers break no promise; a broken promise is reported."""

import asyncio
import importlib
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
TIMEOUT_SECONDS = 170  # for a slow machine; usually it takes 30


def _run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bench.chaos", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)


@pytest.mark.parametrize("store", ["sqlite", "redis"])
def test_killed_workers_exceed_no_limit_and_lose_no_usage(needs_program: Callable[[str], str], store: str) -> None:
    if store == "redis":
        needs_program("redis-server")
    done = _run("--minutes", "0.03", "--seed", "1", f"killed-workers-on-{store}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every promise holds" in done.stdout


def test_unknown_scenario_is_refused() -> None:
    done = _run("no-such-scenario")
    assert done.returncode == 2
    assert "unknown scenario no-such-scenario" in done.stderr


@pytest.fixture
def chaos(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return {name: importlib.import_module(f"bench.chaos.{name}") for name in ("context", "scenarios")}


def test_store_that_stays_ready_on_a_full_disk_breaks_the_promise(
    chaos: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A service that always reports 200 fails the checks."""
    scenarios, context = chaos["scenarios"], chaos["context"]

    async def always(*_: Any) -> Any:
        return 200, b""

    monkeypatch.setattr(scenarios, "get", always)
    monkeypatch.setattr(scenarios, "WAIT_SECONDS", 0.2)
    sandbox_output = {
        "client_id": "a",
        "client_secret": "b",
        "graphql_url": "http://127.0.0.1:9/",
        "token_url": "http://127.0.0.1:9/",
    }
    report = context.ScenarioReport()
    asyncio.run(
        scenarios.store_trouble(context.ScenarioContext(tmp_path, sandbox_output, 1.0, random.Random(1), report))
    )
    assert "/readyz is 200 on a full disk" in report.broken
    assert "responses are [200, 200] on a full disk" in report.broken
