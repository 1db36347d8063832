"""docs/reference/monitoring.md lists every event that the code logs, with its levels and fields.

Events are found in the syntax trees of all modules of the service: each call of a logger's method with a literal name.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from .conftest import Page

ROOT = Path(__file__).parents[3]
LEVELS = {"debug", "info", "warning", "error"}
LOGGERS = {"log", "_log", "logger", "get_logger"}  # names that hold a logger, and the function that makes one
ADDED = {"exc_info": {"error", "at"}}  # log.reduce_exception turns an exception into these fields


class Event(NamedTuple):
    """One call of a logger."""

    name: str
    level: str
    fields: frozenset[str]


def _receiver(node: ast.expr) -> str:
    """`log` of `log.info`, `_log` of `self._log.info`, `get_logger` of `structlog.get_logger().info`."""
    if isinstance(node, ast.Call):
        return _receiver(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _called(module: ast.Module, node: ast.expr) -> str:
    """The function whose result is passed as `**node`: called there, or assigned to that name before."""
    if isinstance(node, ast.Call):
        return _receiver(node.func)
    for each in ast.walk(module):
        if isinstance(each, ast.Assign) and ast.dump(each.targets[0]).replace("Store", "Load") == ast.dump(node):
            return _called(module, each.value)
    raise AssertionError(f"cannot tell which fields **{ast.unparse(node)} holds")


def _keys(module: ast.Module, function: str) -> Iterator[str]:
    """The literal keys of dictionaries that functions of this name make."""
    for each in ast.walk(module):
        if isinstance(each, ast.FunctionDef) and each.name == function:
            for node in ast.walk(each):
                keys = (
                    node.keys if isinstance(node, ast.Dict) else [node.slice] if isinstance(node, ast.Subscript) else []
                )
                yield from (key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


def _fields(module: ast.Module, call: ast.Call) -> Iterator[str]:
    for keyword in call.keywords:
        if keyword.arg is None:
            yield from _keys(module, _called(module, keyword.value))
        else:
            yield from ADDED.get(keyword.arg, {keyword.arg})


def _events(module: ast.Module) -> Iterator[Event]:
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(value=receiver, attr=level), args=[name]) if (
                level in LEVELS and _receiver(receiver) in LOGGERS
            ):
                assert isinstance(name, ast.Constant), f"a log event has a fixed name: {ast.unparse(node)}"
                yield Event(str(name.value), level, frozenset(_fields(module, node)))


@pytest.fixture(scope="module")
def logged_events() -> dict[str, tuple[set[str], set[str]]]:
    """Levels and fields of each event in the code of the service."""
    found: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for file in (ROOT / "proxy").rglob("*.py"):
        if "sandbox" not in file.relative_to(ROOT).parts:
            for event in _events(ast.parse(file.read_text())):
                found[event.name][0].add(event.level)
                found[event.name][1].update(event.fields)
    return dict(found)


def _code(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def test_page_lists_exactly_the_events_of_the_code(
    pages: dict[str, Page], logged_events: dict[str, tuple[set[str], set[str]]]
) -> None:
    rows = pages["docs/reference/monitoring.md"].table("event")
    listed = {row[0].strip("`"): (set(row[1].split(", ")), _code(row[2])) for row in rows}
    assert len(listed) == len(rows)
    assert listed == logged_events
