"""A public class name means one thing."""

import ast
from collections import defaultdict
from typing import Any

ALONE_MAX = 51  # resolvers, stores and report formats have one importer by design
COMMANDS = {"proxy.cli.main"}  # imports every command, each of which is a module by design
# Steps of one run or of one listener, each of which is too large for its only importer; and pages, which one list has.
PIPELINES = (
    "proxy.sheet.",
    "proxy.explain.",
    "proxy.doctor.",
    "proxy.conformance.",
    "proxy.alerts.",
    "proxy.web.admin.",
)


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
    service = [
        module for module in modules if module.top_folder == "proxy" and not module.path.startswith("proxy/sandbox/")
    ]
    assert {name: paths for name, paths in _classes(service).items() if len(paths) > 1} == {}


def test_a_class_name_is_defined_in_at_most_two_modules_of_the_repository(modules: Any) -> None:
    assert {name: paths for name, paths in _classes(modules).items() if len(paths) > 2} == {}


def test_modules_of_one_importer_are_few(service_modules: Any) -> None:
    """A small idea that one module needs belongs into that module."""
    names = {module.path.removesuffix(".py").replace("/", "."): module for module in service_modules}
    importers: dict[str, set[str]] = defaultdict(set)
    for importer, module in names.items():
        for node in module.nodes:
            for target in _imported(node):
                importers[target].add(importer)
    alone = sorted(
        name
        for name, module in names.items()
        if len(importers[name] - COMMANDS) == 1
        and not module.path.endswith("__init__.py")
        and not name.startswith(PIPELINES)
    )
    assert len(alone) <= ALONE_MAX, alone


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []
