"""`v3bridge` as an asyncio subprocess, so that the test can serve its requests meanwhile."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any

from support import running_commands

SECONDS = 120  # that a command may take before its test fails; usually it takes two or three


class CommandResult:
    def __init__(self, code: int | None, out: bytes | None, err: bytes | None) -> None:
        self.code, self.out, self.err = code, (out or b"").decode(), (err or b"").decode()

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out}\n{self.err}"


def environment(folder: Path, **changes: str) -> dict[str, str]:
    """The test's environment without variables that color or widen output; state is kept in the folder."""
    own = {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(running_commands.ROOT)}
    return running_commands.environment() | own | changes


async def start(folder: Path, *arguments: Any, terminal: int | None = None, **changes: str) -> Process:
    """Start the command in a folder; standard input and error are the terminal, if one is given."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", *map(str, arguments)),
        cwd=folder,
        env=environment(folder, **changes),
        stdin=DEVNULL if terminal is None else terminal,
        stdout=PIPE,
        stderr=PIPE if terminal is None else terminal,
    )


async def wait(process: Process, seconds: float = SECONDS) -> CommandResult:
    async with asyncio.timeout(seconds):
        out, err = await process.communicate()
    return CommandResult(process.returncode, out, err)
