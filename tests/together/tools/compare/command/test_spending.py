"""Tests of what a run may spend: budget, confirmation, and none without either."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import commands
from together.terminal import terminals


async def test_run_stops_at_its_budget(run_command: Any, services: Any, make_request_file: Any, tmp_path: Path) -> None:
    command = ("compare", *services.sides, "--requests", make_request_file(30))
    found = await run_command(*command, "--budget", "25", "--json", "r.json")
    assert found.code == 2, found
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["spent"] == len(services.candidate.requests) * 2
    assert 22 <= result["spent"] <= result["budget"] == 25
    assert "requests were left out: the budget does not cover" in found.out


async def test_non_interactive_run_needs_a_part_budget(run_command: Any, services: Any, make_request_file: Any) -> None:
    found = await run_command("compare", *services.sides, "--requests", make_request_file(5))
    assert found.code == 3
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
    assert (await commands.wait(terminal.process)).code == 3
    assert services.candidate.requests == []
    terminal = await run_on_terminal(*command)
    await terminal.until("Continue?")
    await terminal.interrupt()
    assert (await commands.wait(terminal.process)).code == 3
    assert services.candidate.requests == []
    terminal = await run_on_terminal(*command, "--budget", "4")
    await terminal.until("Up to 4 parts may be spent. Continue?")
    terminal.type("y\n")
    assert (await commands.wait(terminal.process)).code == 2
    assert len(services.candidate.requests) == 1
