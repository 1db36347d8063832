"""Mapping functions of a program: those that mapping/compiler.py writes for a projection, for dicts instead of records.

The rules are so translated in one place only: a program cannot understand a rule differently from the proxy.
"""

import ast
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any, NamedTuple

from proxy.mapping.compiler import CompiledObject
from proxy.mapping.source import CONTEXT
from proxy.model import MappingContext

REQUESTED_UID = "requested_uid"  # what a mapping knows of a request; a program has it as a parameter


class Function(NamedTuple):
    """Function of a program that returns one v3 object."""

    name: str
    parameters: tuple[str, ...]
    body: ast.Dict


def read(compiled: CompiledObject, context: MappingContext) -> tuple[Function, ...]:
    """Return the functions of a compiled mapping, callers first, with the slices and settings of a request's
    context."""
    translation = _Translation(compiled.map.__globals__, context)
    definitions = [node for node in ast.parse(compiled.source).body if isinstance(node, ast.FunctionDef)]
    # Callees are below their callers: read first, so that a caller knows whether they need the requested uid.
    *callees, entry = [translation.function(definition) for definition in reversed(definitions)]
    return (entry, *(callee for callee in reversed(callees) if callee.body.keys))


class _Translation(ast.NodeTransformer):
    """Translates the subset of Python that the compiler writes; `names` are the globals of its functions."""

    def __init__(self, names: Mapping[str, Any], context: MappingContext) -> None:
        self._names = names
        self._context = context
        self._bound: dict[str, ast.expr] = {}  # variables that stand for an expression
        self._need_uid: set[str] = set()  # functions that have the requested uid as a parameter
        self._empty: set[str] = set()  # functions that make objects without fields

    def function(self, node: ast.FunctionDef) -> Function:
        (returned,) = node.body
        assert isinstance(returned, ast.Return) and returned.value  # noqa: S101, PT018 - they return one object
        self._bound = {}
        body = self.visit(returned.value)
        if not body.keys:
            self._empty.add(node.name)
        parameters = [argument.arg for argument in node.args.args]
        if CONTEXT in parameters:
            parameters.remove(CONTEXT)
            # Of the context only the requested uid differs between the records of one program.
            if any(isinstance(inner, ast.Name) and inner.id == REQUESTED_UID for inner in ast.walk(body)):
                parameters.append(REQUESTED_UID)
                self._need_uid.add(node.name)
        return Function(node.name, tuple(parameters), body)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._bound.get(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if not isinstance(node.value, ast.Name) or node.value.id != CONTEXT:
            return ast.Subscript(self.visit(node.value), ast.Constant(node.attr))
        if node.attr != REQUESTED_UID:
            return ast.Name(node.attr.upper())  # a constant of the program
        return ast.Name(REQUESTED_UID) if self._context.requested_uid else ast.Constant(None)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        assert isinstance(node.slice, ast.Subscript)  # noqa: S101 - context.cuts[path]
        cut = self._context.cuts[self._constant(node.slice.slice)]
        ends = (None if end is None else ast.Constant(end) for end in (cut.start, cut.stop))
        return ast.Subscript(self.visit(node.value), ast.Slice(*ends))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)  # noqa: S101 - the compiler calls nothing else
        name, called = node.func.id, self._names.get(node.func.id)
        if isinstance(called, type):
            fields: tuple[str, ...] = called.__struct_fields__  # type: ignore[attr-defined]
            return ast.Dict([ast.Constant(field) for field in fields], [self.visit(value) for value in node.args])
        if name in self._empty:
            return ast.Dict([], [])
        arguments = [self.visit(each) for each in node.args if not isinstance(each, ast.Name) or each.id != CONTEXT]
        if name in self._need_uid:
            arguments.append(ast.Name(REQUESTED_UID))
        is_mapping = isinstance(called, FunctionType) and called.__globals__ is self._names
        # No uid was requested, so that no part can be another than the requested one.
        if not is_mapping and name == "redirected" and ast.unparse(arguments[-1]) == "None":
            return ast.List([])
        return ast.Call(node.func, arguments, [])

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.List([self.visit(element) for element in node.elts])

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        return ast.parse(repr(without_class(ast.literal_eval(node))), mode="eval").body

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        sort = node.generators[0].iter
        if isinstance(sort, ast.Call) and isinstance(sort.args[0], ast.ListComp):
            # [element for _, element in sorted([(rank, element) for …], key=rank)]
            pairs = sort.args[0]
            assert isinstance(pairs.elt, ast.Tuple)  # noqa: S101 - see above
            loops, tests, pair = self._comprehension(pairs.generators, pairs.elt.elts)
            return ast.Call(ast.Name("ranked"), [ast.GeneratorExp(ast.Tuple(pair), _tested(loops, tests))], [])
        loops, tests, (entry,) = self._comprehension(node.generators, [node.elt])
        if loops:
            return ast.ListComp(entry, _tested(loops, tests))
        # An entry that is there once, or not at all.
        listed: ast.expr = ast.List([entry])
        for test in reversed(tests):
            listed = ast.IfExp(test, listed, ast.List([]))
        return listed

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        loops, tests, (key, value) = self._comprehension(node.generators, [node.key, node.value])
        return ast.DictComp(key, value, _tested(loops, tests))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        (operator,), (compared,) = node.ops, node.comparators
        left = self.visit(node.left)
        if isinstance(operator, ast.Is):
            return ast.Compare(left, [operator], [compared])
        constant = self._constant(compared)
        texts = [constant] if isinstance(constant, str) else sorted(constant)
        if len(texts) == 1:
            operator = ast.NotEq() if isinstance(operator, ast.NotIn) else ast.Eq()
            return ast.Compare(left, [operator], [ast.Constant(texts[0])])
        return ast.Compare(left, [operator], [ast.List([ast.Constant(text) for text in texts])])

    def _comprehension(
        self, clauses: Iterable[ast.comprehension], entry: Iterable[ast.expr]
    ) -> tuple[list[ast.comprehension], list[ast.expr], list[ast.expr]]:
        """Translate the loops and the tests of a comprehension, and what it makes of each pass."""
        outside = dict(self._bound)
        loops: list[ast.comprehension] = []
        tests: list[ast.expr] = []
        for clause in clauses:
            assert isinstance(clause.target, ast.Name)  # noqa: S101 - the compiler unpacks nothing
            values = self.visit(clause.iter)
            if isinstance(values, ast.List) and len(values.elts) == 1:
                # `for name in (value,)` names a value; here the value itself takes the place of the name.
                self._bound[clause.target.id] = values.elts[0]
            else:
                self._bound.pop(clause.target.id, None)
                loops.append(ast.comprehension(clause.target, values, [], 0))
            tests += map(self.visit, clause.ifs)
        made = [self.visit(expression) for expression in entry]
        self._bound = outside
        return loops, tests, made

    def _constant(self, node: ast.expr) -> Any:
        return self._names[ast.unparse(node)]


def _tested(loops: list[ast.comprehension], tests: list[ast.expr]) -> list[ast.comprehension]:
    """Put all tests behind the last loop."""
    loops[-1].ifs = tests
    return loops


def without_class(value: Any) -> Any:
    """Return a JSON value without `__class__`, which tells a program nothing that it does not know."""
    if isinstance(value, dict):
        return {key: without_class(each) for key, each in value.items() if key != "__class__"}
    return [without_class(each) for each in value] if isinstance(value, list) else value
