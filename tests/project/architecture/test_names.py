"""A public class name means one thing."""

import ast
from collections import defaultdict
from typing import Any


def _classes(modules: Any) -> dict[str, list[str]]:
    """Paths of the modules that define a public class, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in ast.parse(module.text, module.path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module.path)
    return found


def test_a_class_name_of_the_service_is_defined_in_one_module(modules: Any) -> None:
    """The sandbox is a product of its own."""
    service = [module for module in modules if module.top_folder == "proxy"]
    assert {name: paths for name, paths in _classes(service).items() if len(paths) > 1} == {}


def test_a_class_name_is_defined_in_at_most_two_modules_of_the_repository(modules: Any) -> None:
    assert {name: paths for name, paths in _classes(modules).items() if len(paths) > 2} == {}
