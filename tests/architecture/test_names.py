"""Names: a class name means one thing, and concepts have the names of docs/reference/glossary.md."""

import ast
from collections import defaultdict
from typing import Any

SERVICE = ("proxy",)


def _class_modules(modules: Any) -> dict[str, list[str]]:
    """Paths of the modules that define a public class, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module.path)
    return found
