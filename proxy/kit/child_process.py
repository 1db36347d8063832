"""Child processes that run a module of this package: their command line and their environment."""

import os
import sys
from pathlib import Path


def command(module: str) -> tuple[str, ...]:
    """Return the command that runs a module. -P: a folder named proxy in the working directory is not imported."""
    return sys.executable, "-P", "-m", module


def environment() -> dict[str, str]:
    """Return the environment of this process, with this package on PYTHONPATH."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
