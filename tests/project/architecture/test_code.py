"""What every module keeps to, as far as the linter does not hold it already."""

import ast
import builtins
import re
from pathlib import Path
from typing import Any

VAGUE_NAMES = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"}
ERROR_NAME = re.compile(r"\b[A-Z]\w*Error\b")


def test_every_module_has_a_docstring(modules: Any) -> None:
    bare = [module.path for module in modules if module.text.strip() and not ast.get_docstring(module.nodes[0])]
    empty = [module.path for module in modules if module.top_folder in ("proxy", "sandbox") and not module.text.strip()]
    assert bare + empty == []


def test_only_cli_prints(service_modules: Any) -> None:
    # Snippets are pieces of programs of their own.
    allowed = ("proxy/cli/", "proxy/explain/programs/snippets/")
    printing = [
        f"{module.path}:{node.lineno}"
        for module in service_modules
        if not module.path.startswith(allowed)
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_no_file_or_folder_has_a_meaningless_name(root: Path, kept_files: tuple[Path, ...]) -> None:
    vague = [
        str(path)
        for path in (file.relative_to(root) for file in kept_files)
        if VAGUE_NAMES & {part.split(".", 1)[0].lower() for part in path.parts}
    ]
    assert vague == []


def test_no_test_file_marks_itself_twice(modules: Any) -> None:
    """The second `pytestmark` would undo the first."""
    twice = [
        module.path
        for module in modules
        if sum(
            isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
            and any(isinstance(each, ast.Name) and each.id == "pytestmark" for each in ast.walk(node))
            for node in module.nodes[0].body
        )
        > 1
    ]
    assert twice == []


def test_docstrings_name_errors_that_exist(service_modules: Any) -> None:
    known = set(dir(builtins))
    for node in (node for module in service_modules for node in module.nodes):
        if isinstance(node, ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute):
            known.add(node.id if isinstance(node, ast.Name) else node.attr)
    unknown = [
        f"{module.path}: {name}"
        for module in service_modules
        for node in module.nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for name in ERROR_NAME.findall(ast.get_docstring(node) or "")
        if name not in known
    ]
    assert unknown == []
