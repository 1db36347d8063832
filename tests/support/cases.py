"""Cases of parametrized tests that are plain data: a YAML file beside the test module has a list for each test."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

Test = TypeVar("Test", bound=Callable[..., Any])


def parametrize(names: str, *more: Any) -> Callable[[Test], Test]:
    """Run the decorated test with each of its cases, which are the values of these parameters, and with `more` that are
    no plain data.
    """

    def decorate(test: Test) -> Test:
        values = of(test.__globals__["__file__"], test.__name__.removeprefix("test_"))
        marked: Test = pytest.mark.parametrize(names, [*values, *more])(test)
        return marked

    return decorate


def of(module: str, name: str) -> list[Any]:
    """Return the cases of a test: of each, the values of its parameters in their order."""
    found: list[Any] = _read(Path(module).with_suffix(".yaml"))[name]
    return found


@cache
def _read(file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
