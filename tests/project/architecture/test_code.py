"""What every module keeps to, as far as the linter does not hold it already."""

import ast
import builtins
import re
from typing import Any

ERROR_NAME = re.compile(r"\b[A-Z]\w*Error\b")


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
