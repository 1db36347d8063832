"""Cases of parametrized tests that are plain data: a YAML file beside the test module has a list for each test."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml


def of(module: str, name: str) -> list[Any]:
    """Return the cases of a test: of each, the values of its parameters in their order."""
    found: list[Any] = _read(Path(module).with_suffix(".yaml"))[name]
    return found


@cache
def _read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))
