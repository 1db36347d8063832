"""The size budget: files, functions and classes stay small enough to be read in one go.

A length is counted in lines from first to last, blank lines, comments and docstrings included.
"""

import ast
import statistics
from typing import Any

import pytest

FILE_MEDIAN, FILE_STOP = 200, 400
FUNCTION_MEDIAN, FUNCTION_STOP = 10, 60
CLASS_STOP = 200

EXCEPTED_FILES: dict[str, str] = {}
"""Files over the stop, with the reason. Only GraphQL schemas and argument tables may be."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _lines(node: Any) -> Any:
    return node.end_lineno - node.lineno + 1


def _named(modules: Any, kinds: Any) -> Any:
    """(path:line name, lines) of every function or class in the modules."""
    return [
        (f"{module.path}:{node.lineno} {node.name}", _lines(node))
        for module in modules
        for node in module.nodes
        if isinstance(node, kinds)
    ]


def test_no_file_exceeds_its_limit(modules: Any) -> None:
    long = {module.path: module.length for module in modules if module.length > FILE_STOP}
    assert set(long) == set(EXCEPTED_FILES), long


@pytest.mark.parametrize("kinds,stop", [(Function, FUNCTION_STOP), (ast.ClassDef, CLASS_STOP)])
def test_no_function_or_class_exceeds_its_limit(modules: Any, kinds: Any, stop: Any) -> None:
    code = [module for module in modules if module.top_folder != "tests" or kinds is Function]
    assert [(name, lines) for name, lines in _named(code, kinds) if lines > stop] == []


def test_half_of_the_files_are_short(service_modules: Any) -> None:
    lengths = {module.path: module.length for module in service_modules if not module.path.endswith("__init__.py")}
    assert statistics.median(lengths.values()) <= FILE_MEDIAN, sorted(lengths.items(), key=lambda item: -item[1])


def test_half_of_the_functions_are_short(service_modules: Any) -> None:
    functions = _named(service_modules, Function)
    longest = sorted(functions, key=lambda item: -item[1])[:20]
    assert statistics.median(lines for _, lines in functions) <= FUNCTION_MEDIAN, longest
