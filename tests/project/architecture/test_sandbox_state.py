"""No module of the sandbox holds anything that changes: two sandboxes in one process would share it."""

import ast
from typing import Any

# What makes something that can be changed.
MAKERS = {"dict", "list", "set", "bytearray", "defaultdict", "Counter", "deque", "OrderedDict", "count", "cycle"}
MAKERS |= {"WeakKeyDictionary", "WeakValueDictionary", "ContextVar", "local", "Lock", "Random", "Event", "LRUCache"}
CHANGING = {"append", "add", "extend", "insert", "update", "setdefault", "pop", "popitem", "clear", "remove", "discard"}
LITERALS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
# Caches of pure functions whose results nobody changes: no sandbox can tell whether another one called them before.
PURE = {
    ("sandbox/nexar_sandbox/catalog/database.py", "number_spellings"),
    ("sandbox/nexar_sandbox/graphql/schema.py", "complete"),
    ("sandbox/nexar_sandbox/graphql/schema.py", "_valid"),
    # Its documents are pure functions of their text, the schema and the behaviors that are its key.
    ("sandbox/nexar_sandbox/graphql/schema.py", "_shared_documents"),
}


def _modules(service_modules: Any) -> Any:
    return [module for module in service_modules if module.path.startswith("sandbox/nexar_sandbox/")]


def _assigned(statement: Any) -> Any:
    """The names that a statement of a module or class binds, and to what."""
    if isinstance(statement, ast.Assign):
        return [(target.id, statement.value) for target in statement.targets if isinstance(target, ast.Name)]
    if isinstance(statement, ast.AnnAssign | ast.AugAssign) and isinstance(statement.target, ast.Name):
        return [(statement.target.id, statement.value)]
    return []


def _called(value: Any) -> Any:
    found = value.func if isinstance(value, ast.Call) else None
    return found.id if isinstance(found, ast.Name) else found.attr if isinstance(found, ast.Attribute) else ""


def _is_table(name: Any) -> Any:
    """Named like a constant: it may be a dict or list as long as nobody changes it."""
    return name.lstrip("_").isupper() or (name.startswith("__") and name.endswith("__"))


def _bodies(tree: Any) -> Any:
    """The statements that run at import."""
    yield from tree.body
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from (one for one in node.body if not (node.bases and _is_default(one)))


def _is_default(statement: Any) -> Any:
    """An empty list or dict in a class that is derived from one of msgspec: every object has its own."""
    value = statement.value if isinstance(statement, ast.AnnAssign) else None
    return isinstance(value, ast.List | ast.Dict) and not list(ast.iter_child_nodes(value))[1:]


def offences(path: Any, text: Any) -> Any:
    """What a module holds that can change, each in words."""
    tree = ast.parse(text, path)
    bound = [(name, value) for statement in _bodies(tree) for name, value in _assigned(statement)]
    tables = {name for name, value in bound if _is_table(name)}
    found = [f"{path}: {name}" for name, value in bound if isinstance(value, LITERALS) and not _is_table(name)]
    found += [f"{path}: {name}" for name, value in bound if _called(value) in MAKERS and not _is_table(name)]
    for node in ast.walk(tree):
        found += [f"{path}: global {name}" for name in getattr(node, "names", []) if isinstance(node, ast.Global)]
        found += _cached(path, node, tree)
        if _changes(node) in tables:
            found.append(f"{path}: {_changes(node)} is changed")
    return found


def _cached(path: Any, node: Any, tree: Any) -> Any:
    """Functions of the module whose answers are kept."""
    if not isinstance(node, ast.FunctionDef) or node not in [*_bodies(tree)] or (path, node.name) in PURE:
        return []
    names = [
        _called(one) if isinstance(one, ast.Call) else getattr(one, "id", getattr(one, "attr", ""))
        for one in node.decorator_list
    ]
    return [f"{path}: {node.name} is kept" for name in names if name in ("cache", "lru_cache", "cached")]


def _changes(node: Any) -> Any:
    """The name of the table that this changes."""
    changed = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
        changed = node.func.value
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        changed = node.value
    return changed.id if isinstance(changed, ast.Name) else None


def test_sandbox_modules_hold_no_state(service_modules: Any) -> None:
    found = [each for module in _modules(service_modules) for each in offences(module.path, module.text)]
    assert found == []


def test_module_state_is_detected() -> None:
    text = """
import functools, itertools
seen = []
numbers = itertools.count()
TABLE = {"a": 1}
_KNOWN = set()
class Thing:
    kept: dict[str, int] = {}
@functools.lru_cache(maxsize=None)
def looked_up(name):
    global last
    TABLE[name] = 1
    _KNOWN.add(name)
"""
    assert {each.partition(": ")[2] for each in offences("it.py", text)} == {
        "seen",
        "numbers",
        "kept",
        "looked_up is kept",
        "global last",
        "TABLE is changed",
        "_KNOWN is changed",
    }
