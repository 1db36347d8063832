"""Tests of resumed runs after an interruption, an exhausted budget or a failure."""

import asyncio
import json
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support import commands
from support.comparison_server import serve
from together.terminal import terminals


async def test_failed_requests_are_repeated_by_the_same_command(
    run_command: Any, services: Any, make_request_file: Any, tmp_path: Path
) -> None:
    released = asyncio.Event()

    async def odd(request: Any) -> Any:
        q = request.query["q"]
        if q == "part-1" and not released.is_set():
            await released.wait()
        if q == "part-2" and not released.is_set():
            request.transport.abort()
        return await services.candidate.handle(request)

    async with serve(odd) as url:
        sides = services.with_candidate(url)
        command = ("compare", *sides, "--requests", make_request_file(6), "--yes")
        found = await run_command(*command, "--timeout", "1", "--json", "r.json")
        assert "progress is saved: run the same command again to resume" in found.err
        result = json.loads((tmp_path / "r.json").read_text())
        assert {each["reason"] for each in result["failures"]} == {
            "the candidate gives no complete response within 1 s",
            "the candidate closed the connection without a response",
        }
        assert result["cost"]["spent"] == 4 * 2 + 2 * 3  # what may have been paid is counted
        released.set()
        services.candidate.requests.clear()
        found = await run_command(*command, "--json", "r.json")
    assert found.code == 0, found
    assert set(services.candidate.requests) == {"part-1", "part-2"}
    result = json.loads((tmp_path / "r.json").read_text())
    assert sum(row["requests"] for row in result["rows"]) == 6
    assert result["failures"] == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
async def test_interrupted_run_resumes_without_repeating_requests(
    start: Any, run_command: Any, services: Any, make_request_file: Any, tmp_path: Path, how: Any
) -> None:
    reached, released = asyncio.Event(), asyncio.Event()

    async def holding(request: Any) -> Any:
        if len(services.candidate.requests) >= 15 and not released.is_set():
            reached.set()
            await released.wait()
        return await services.candidate.handle(request)

    async with serve(holding) as url:
        sides = services.with_candidate(url)
        command = ("compare", *sides, "--requests", make_request_file(40), "--yes")
        process = await start(*command)
        async with asyncio.timeout(commands.SECONDS):
            await reached.wait()
        process.send_signal(how)
        if how == signal.SIGKILL:
            await process.wait()
        else:
            await asyncio.sleep(0)
        released.set()
        first = await commands.wait(process)
        before = Counter(services.candidate.requests)
        found = await run_command(*command, "--json", "r.json")
    assert found.code == 0, found
    assert "resuming:" in found.err
    result = json.loads((tmp_path / "r.json").read_text())
    assert sum(row["requests"] for row in result["rows"]) == 40
    assert set(services.candidate.requests) == {f"part-{n}" for n in range(40)}
    if how == signal.SIGINT:
        assert first.code == 2, first
        assert "interrupted" in first.out + first.err
        assert max(Counter(services.candidate.requests).values()) == 1
        assert result["cost"]["spent"] == 80
    else:  # requests in flight are repeated, and count with their maximum cost
        assert len(before) < 40
        again = sum(Counter(services.candidate.requests).values()) - 40
        assert again <= 8
        assert result["cost"]["spent"] == 80
        assert any("parts more may have been spent: on requests that were cut off" in note for note in result["notes"])


async def test_run_stops_at_its_budget_and_resumes_with_another(
    run_command: Any, services: Any, make_request_file: Any, tmp_path: Path
) -> None:
    command = ("compare", *services.sides, "--requests", make_request_file(30))
    found = await run_command(*command, "--budget", "25", "--json", "r.json")
    assert found.code == 2, found
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["cost"] == {"spent": len(services.candidate.requests) * 2, "budget": 25, "per_month": None}
    assert 22 <= result["cost"]["spent"] <= 25
    assert "requests were left out: the budget does not cover" in found.err
    found = await run_command(*command, "--budget", "1000", "--json", "r.json")
    assert found.code == 0, found
    assert json.loads((tmp_path / "r.json").read_text())["cost"]["spent"] == 60
    assert Counter(services.candidate.requests) == Counter(f"part-{n}" for n in range(30))


async def test_non_interactive_run_needs_a_part_budget(run_command: Any, services: Any, make_request_file: Any) -> None:
    found = await run_command("compare", *services.sides, "--requests", make_request_file(5))
    assert found.code == 2
    assert "15 parts at most; no budget" in found.err
    assert "up to 15 parts may be spent" in found.err
    assert services.candidate.requests == []


@pytest.fixture
def run_on_terminal(start: Any) -> Iterator[Any]:
    with terminals(start) as run:
        yield run


async def test_terminal_asks_for_confirmation_before_parts_are_used(
    run_on_terminal: Any, services: Any, make_request_file: Any
) -> None:
    command = ("compare", *services.sides, "--requests", make_request_file(5))
    terminal = await run_on_terminal(*command)
    await terminal.until("Up to 15 parts may be spent. Continue?")
    terminal.type("n\n")
    assert (await commands.wait(terminal.process)).code == 2
    assert services.candidate.requests == []
    terminal = await run_on_terminal(*command)
    await terminal.until("Continue?")
    await terminal.interrupt()
    assert (await commands.wait(terminal.process)).code == 2
    assert services.candidate.requests == []
    terminal = await run_on_terminal(*command, "--budget", "4")
    await terminal.until("Up to 4 parts may be spent. Continue?")
    terminal.type("y\n")
    await terminal.until("2 parts")  # of the bar
    assert (await commands.wait(terminal.process)).code == 2
    assert len(services.candidate.requests) == 1


async def test_values_of_the_new_service_end_after_a_day(
    run_command: Any, services: Any, make_request_file: Any, tmp_path: Path
) -> None:
    fails = True

    async def other(request: Any) -> Any:
        if request.query["q"] == "part-1":
            return web.json_response({"hits": 7}) if not fails else web.Response(status=503)
        return web.json_response({"hits": 5})

    async with serve(other) as url:
        command = ("compare", *services.with_candidate(url), "--requests", make_request_file(2), "--yes")
        await run_command(*command, "--progress", "p.jsonl")
        saved = (tmp_path / "p.jsonl").read_text()
        aged = re.sub(r'"at":([\d.]+)', lambda found: f'"at":{float(found[1]) - 86_400}', saved)
        assert aged != saved
        (tmp_path / "p.jsonl").write_text(aged)
        fails = False
        await run_command(*command, "--progress", "p.jsonl", "--json", "r.json")
    groups = [each for each in json.loads((tmp_path / "r.json").read_text())["groups"] if each["path"] == "hits"]
    assert sum(group["requests"] for group in groups) == 2
    assert [sample["candidate"] for group in groups for sample in group["samples"]] == ["7"]
