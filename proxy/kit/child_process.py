"""Child processes that run a module of this package: their command line, their environment, and their start."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path


def command(module: str) -> tuple[str, ...]:
    """Return the command that runs a module. -P: a folder named proxy in the working directory is not imported."""
    return sys.executable, "-P", "-m", module


def environment() -> dict[str, str]:
    """Return the environment of this process, with this package on PYTHONPATH."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


async def start(command: Sequence[str]) -> asyncio.subprocess.Process:
    """Start a process with pipes as its input and output. Raises OSError."""
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    # A new session, so that Ctrl-C at a terminal reaches only this process.
    return await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=nowhere, env=environment(), start_new_session=True
    )
