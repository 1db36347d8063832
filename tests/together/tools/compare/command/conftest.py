"""Fixtures of comparisons: the command, two scripted services, and a file of requests."""

from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support import commands
from support.comparison_server import ComparisonServer
from support.served import serve


class ServicePair:
    """Two services that answer alike; the candidate says that each response cost two parts. Either can be changed. And
    a folder in which the command is run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.baseline = ComparisonServer(lambda q: {"hits": len(q)})
        self.candidate = ComparisonServer(lambda q: {"hits": len(q)}, parts=2)
        self.baseline_url = self.candidate_url = ""
        self._started: list[Process] = []

    @property
    def sides(self) -> tuple[str, ...]:
        return self.with_candidate(self.candidate_url)

    def with_candidate(self, url: str) -> tuple[str, ...]:
        """The options that name the baseline and another candidate."""
        return ("--baseline", self.baseline_url, "--candidate", url, "--rules", "fast.yaml")

    def request_file(self, number: int, key: str = "a-key-in-the-log") -> str:
        """Write a file of searches, three parts each at worst."""
        lines = [f"/v3/parts/search?apikey={key}&q=part-{n}&limit=3" for n in range(number)]
        (self.folder / "urls.txt").write_text("\n".join(lines) + "\n")
        return "urls.txt"

    def text(self, name: str) -> str:
        return (self.folder / name).read_text("utf-8")

    async def start(self, *arguments: Any, terminal: int | None = None, **changes: str) -> Process:
        """Start the command; it ends with the test."""
        process = await commands.start(self.folder, "compare", *arguments, terminal=terminal, **changes)
        self._started.append(process)
        return process

    async def compare(self, *arguments: Any, **changes: Any) -> commands.CommandResult:
        return await commands.wait(await self.start(*arguments, **changes))

    async def aclose(self) -> None:
        for process in self._started:
            if process.returncode is None:
                process.kill()
                await process.communicate()


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[ServicePair]:
    (tmp_path / "fast.yaml").write_text("baseline_rate: 0")
    made = ServicePair(tmp_path)
    async with AsyncExitStack() as stack:
        made.baseline_url = await stack.enter_async_context(serve(made.baseline.handle))
        made.candidate_url = await stack.enter_async_context(serve(made.candidate.handle))
        yield made
        await made.aclose()
