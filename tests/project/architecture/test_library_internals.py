"""Private attributes of libraries are used in one package only, `proxy/kit/aiohttp_internals`."""

import ast
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

INTERNALS = "proxy/kit/aiohttp_internals/"
NAMEDTUPLE = {"_asdict", "_fields", "_make", "_replace"}  # documented, in spite of their underscore


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMEDTUPLE


@cache
def _defined(node: ast.AST) -> frozenset[str]:
    """Private names that a class or module defines: functions, variables, and attributes that it assigns."""
    names: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(each.name)
        elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            names.add(each.attr)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            names.add(each.id)
    return frozenset(names)


def _inherited(node: ast.ClassDef, classes: dict[str, list[ast.ClassDef]]) -> frozenset[str]:
    """The same of a class with its base classes in this project."""
    names = set(_defined(node))
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        for each in classes.get(name, ()):
            names |= _defined(each) if each is node else _inherited(each, classes)
    return frozenset(names)


def _foreign(module: Any, classes: dict[str, list[ast.ClassDef]]) -> Iterator[str]:
    """Uses of private names that neither the class (of `self` and `super()`) nor the module defines."""
    tree = module.nodes[0]
    own = {id(node): _inherited(each, classes) for each in ast.walk(tree) if isinstance(each, ast.ClassDef)
           for node in ast.walk(each)}  # fmt: skip
    of_module = _defined(tree)
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("proxy"):
            yield from (f"{module.path}:{node.lineno} {alias.name}" for alias in node.names if _is_private(alias.name))
        if not isinstance(node, ast.Attribute) or not _is_private(node.attr) or isinstance(node.ctx, ast.Store):
            continue
        receiver = ast.unparse(node.value)
        known = own.get(id(node), of_module) if receiver in ("self", "cls", "super()") else of_module
        if node.attr not in known or (receiver == "super()" and not _has_base(node.attr, classes)):
            yield f"{module.path}:{node.lineno} {ast.unparse(node)}"


def _has_base(name: str, classes: dict[str, list[ast.ClassDef]]) -> bool:
    """Whether at least two classes of the project define a method: the one that calls super(), and its base."""
    return sum(name in _defined(each) for group in classes.values() for each in group) > 1


def test_only_one_package_uses_private_attributes_of_a_library(service_modules: Any) -> None:
    classes: dict[str, list[ast.ClassDef]] = {}
    for module in service_modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)
    foreign = [use for module in service_modules if not module.path.startswith(INTERNALS)
               for use in _foreign(module, classes)]  # fmt: skip
    assert foreign == []


def test_the_check_finds_private_attributes_of_base_classes_imports_and_values() -> None:
    source = """
from library import _private, Base

class Own(Base):
    def _own(self):
        return self._own() + self._of_base + super()._of_base()

def function(value):
    return value._of_value
"""
    module = SimpleNamespace(path="a.py", nodes=tuple(ast.walk(ast.parse(source))))
    classes = {node.name: [node] for node in module.nodes if isinstance(node, ast.ClassDef)}
    uses = [use.partition(" ")[2] for use in _foreign(module, classes)]
    assert sorted(uses) == ["_private", "self._of_base", "super()._of_base", "value._of_value"]
