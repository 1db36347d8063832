"""Private and undocumented names of aiohttp that `proxy/upstream/connections.py` uses, in the installed aiohttp.

A release of aiohttp that drops or renames one fails here first, by name.
"""

import ast
import importlib.metadata
import inspect
import tomllib
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import client_proto, client_reqrep
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
MODULE = ROOT / "proxy" / "upstream" / "connections.py"

# Class or module, and the private attributes of its instances, or its own.
PRIVATE: dict[Any, set[str]] = {
    aiohttp.TCPConnector: {"_conns", "_wait_for_available_connection", "_create_connection"},
}
# Object, and its undocumented functions and attributes.
UNDOCUMENTED: list[tuple[Any, set[str]]] = [
    (client_proto.ResponseHandler, {"close"}),
    (client_reqrep, {"ConnectionKey"}),
]


def _names(owner: Any) -> set[str]:
    """Attributes of a class and its instances: those of its body, its slots, and those that its methods assign."""
    names = set(dir(owner))
    for each in inspect.getmro(owner) if inspect.isclass(owner) else ():
        names |= set(getattr(each, "__slots__", ())) | set(getattr(each, "__annotations__", {}))
        if each.__module__.startswith("aiohttp"):
            names |= {
                node.attr
                for node in ast.walk(ast.parse(inspect.getsource(inspect.getmodule(each))))  # type: ignore[arg-type]
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            }
    return names


@pytest.mark.parametrize("owner, used", [*PRIVATE.items(), *UNDOCUMENTED])
def test_installed_aiohttp_has_every_internal_name(owner: Any, used: set[str]) -> None:
    assert used - _names(owner) == set()


def test_every_private_attribute_that_the_module_uses_is_listed() -> None:
    used: set[str] = set()
    defined: set[str] = set()
    for node in ast.walk(ast.parse(MODULE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            own = isinstance(node.value, ast.Name) and node.value.id == "self" and isinstance(node.ctx, ast.Store)
            (defined if own else used).add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            defined.add(node.name)
    listed = set().union(*PRIVATE.values())
    assert used - defined <= listed
    assert listed <= used | defined


def test_project_bounds_the_version_of_aiohttp() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (bound,) = (need for need in map(Requirement, project["dependencies"]) if need.name == "aiohttp")
    assert any(each.operator == "<" for each in bound.specifier)
    assert bound.specifier.contains(importlib.metadata.version("aiohttp"))
