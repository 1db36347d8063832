"""A command on a pseudo-terminal."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import commands


class Terminal:
    """A command on a terminal: what it shows, and what is typed."""

    def __init__(self, process: Any, primary: int) -> None:
        self.process, self.primary, self.shown = process, primary, ""

    async def until(self, words: str) -> None:
        async with asyncio.timeout(commands.SECONDS):
            while words not in self.shown:
                loop, readable = asyncio.get_running_loop(), asyncio.Event()
                loop.add_reader(self.primary, readable.set)
                try:
                    await readable.wait()
                finally:
                    loop.remove_reader(self.primary)
                self.shown += os.read(self.primary, 4096).decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self.primary, text.encode())

    async def answer(self, question: str, text: str) -> None:
        """Answer a question once the command waits for it: a password that is typed before is discarded."""
        await self.until(question)
        await self._waiting()
        self.type(f"{text}\n")

    async def interrupt(self) -> None:
        """Press Ctrl+C once the command waits for input. Python does not notice a signal that arrives between its last
        check and the read; a second Ctrl+C would help, but people are not that fast."""
        await self._waiting()
        self.process.send_signal(signal.SIGINT)

    async def _waiting(self) -> None:
        async with asyncio.timeout(commands.SECONDS):
            stat = Path(f"/proc/{self.process.pid}/stat")
            while stat.read_text().rpartition(")")[2].split()[0] != "S":
                await asyncio.sleep(0.01)


@contextmanager
def terminals(start: Callable[..., Awaitable[Any]]) -> Iterator[Callable[..., Awaitable[Terminal]]]:
    """Yield the function that starts a command on a terminal of its own; `start` is that of commands."""
    opened: list[int] = []

    async def run(*arguments: Any) -> Terminal:
        primary, secondary = os.openpty()
        opened.append(primary)
        process = await start(*arguments, terminal=secondary, TERM="xterm")
        os.close(secondary)
        return Terminal(process, primary)

    try:
        yield run
    finally:
        for primary in opened:
            os.close(primary)
