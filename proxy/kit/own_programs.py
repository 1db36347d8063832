"""Programs of this package that run beside the one that starts them: workers, and what a worker must not wait for."""

import os
import sys
from pathlib import Path


def command(module: str) -> tuple[str, ...]:
    """What starts a module. -P: a folder named proxy where it is started must not be taken for this package."""
    return sys.executable, "-P", "-m", module


def environment() -> dict[str, str]:
    """This process's own, in which a program finds the same package."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
