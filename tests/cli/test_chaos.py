"""The short run of `python -m bench.chaos`: every promise holds, and one that is broken ends it with exit code 1."""

import asyncio
import importlib
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 170  # a slow machine's; usually it takes 30
QUICK = ("responses-without-end", "hostile-clients", "identity-away", "store-trouble")


def _run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bench.chaos", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)


def test_chaos_scenario_breaks_no_promise() -> None:
    done = _run("--minutes", "0.2", "--seed", "1", *QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 1" in done.stdout
    assert done.stdout.count(": holds") == len(QUICK)
    assert "every promise holds" in done.stdout


def test_unknown_scenario_is_refused() -> None:
    done = _run("no-such-scenario")
    assert done.returncode == 2
    assert "there is no no-such-scenario" in done.stderr


@pytest.fixture
def chaos(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return {name: importlib.import_module(f"bench.chaos.{name}") for name in ("stage", "scenarios")}


def test_store_that_stays_ready_on_a_full_disk_breaks_the_promise(
    chaos: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The checks do not pass by themselves: here the service seems always ready."""
    scenarios, stage = chaos["scenarios"], chaos["stage"]

    async def always(*_: Any) -> Any:
        return 200, b""

    monkeypatch.setattr(scenarios, "get", always)
    monkeypatch.setattr(scenarios, "WAIT_SECONDS", 0.2)
    told = {
        "client_id": "a",
        "client_secret": "b",
        "graphql_url": "http://127.0.0.1:9/",
        "token_url": "http://127.0.0.1:9/",
    }
    report = stage.Report()
    asyncio.run(scenarios.store_trouble(stage.Stage(tmp_path, told, 1.0, random.Random(1), report)))
    assert "/readyz is 200 on a full disk" in report.broken
    assert "responses are [200, 200] on a full disk" in report.broken
