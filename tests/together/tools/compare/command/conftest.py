"""Fixtures of comparisons: the command, two scripted services, and a file of requests."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support import commands
from support.comparison_server import ComparisonServer, serve


@pytest.fixture
async def start(tmp_path: Path) -> Any:
    """Starts the command in its own folder; remaining processes end with the test."""
    (tmp_path / "fast.yaml").write_text("baseline_rate: 0")
    started = []

    async def begin(*arguments: Any, terminal: Any = None, **changes: Any) -> Any:
        process = await commands.start(tmp_path, *arguments, terminal=terminal, **changes)
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.fixture
def run_command(start: Any) -> Any:
    async def of(*arguments: Any, **changes: Any) -> Any:
        return await commands.wait(await start(*arguments, **changes))

    return of


class _ServicePair:
    """Two services that answer alike; the candidate says that each response cost two parts. Either can be changed."""

    def __init__(self) -> None:
        self.baseline = ComparisonServer(lambda q: {"hits": len(q)})
        self.candidate = ComparisonServer(lambda q: {"hits": len(q)}, parts=2)
        self.baseline_url = self.candidate_url = ""

    @property
    def sides(self) -> Any:
        return self.with_candidate(self.candidate_url)

    def with_candidate(self, url: str) -> Any:
        """The options that name the baseline and another candidate."""
        return ("--baseline", self.baseline_url, "--candidate", url, "--rules", "fast.yaml")


@pytest.fixture
async def services() -> Any:
    made = _ServicePair()
    async with AsyncExitStack() as stack:
        made.baseline_url = await stack.enter_async_context(serve(made.baseline.handle))
        made.candidate_url = await stack.enter_async_context(serve(made.candidate.handle))
        yield made


@pytest.fixture
def make_request_file(tmp_path: Path) -> Any:
    """A file of searches, three parts each at worst."""

    def of(number: Any, key: str = "a-key-in-the-log") -> Any:
        lines = [f"/v3/parts/search?apikey={key}&q=part-{n}&limit=3" for n in range(number)]
        (tmp_path / "urls.txt").write_text("\n".join(lines) + "\n")
        return "urls.txt"

    return of
