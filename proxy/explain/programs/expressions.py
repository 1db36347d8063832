"""Mapping functions as an expression tree, which printer.py prints.

The tree is read from the source that mapping/compiler.py writes for a projection. The rules are so translated in one
place only: a program cannot understand a rule differently from the proxy.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, NamedTuple

from proxy.mapping.compiler import CompiledObject
from proxy.mapping.source import CONTEXT
from proxy.model import MappingContext

REQUESTED_UID = "requested_uid"  # what a mapping knows of a request; a program has it as a parameter


@dataclass(frozen=True, slots=True)
class Literal:
    """Constant, as JSON has it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Variable:
    """Parameter of the function, or variable of a loop."""

    name: str


@dataclass(frozen=True, slots=True)
class Setting:
    """Constant of the program: `country` or `currency`."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """Field of a GraphQL object."""

    of: "Expression"
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a mapping function or, `is_transform`, of a transform."""

    function: str
    arguments: tuple["Expression", ...]
    is_transform: bool


@dataclass(frozen=True, slots=True)
class Record:
    """v3 object: its fields in their order."""

    fields: tuple[tuple[str, "Expression"], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """`value` where the test holds, else `otherwise`."""

    test: "Expression"
    value: "Expression"
    otherwise: "Expression"


@dataclass(frozen=True, slots=True)
class AnyNull:
    """Whether one of these values is null; they are read in this order, as later ones are below earlier ones."""

    values: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Filled:
    """Whether a value is neither null, nor false, nor an empty text."""

    value: "Expression"


@dataclass(frozen=True, slots=True)
class Among:
    """Whether a value is one of some texts, or `negated` none of them."""

    value: "Expression"
    texts: tuple[str, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """One `for` of a comprehension."""

    variable: str
    values: "Expression"


@dataclass(frozen=True, slots=True)
class Elements:
    """List of an entry for each pass of the nested loops that all tests hold for. With `rank`, sorted by it; with
    `key`, a dict."""

    loops: tuple[Loop, ...]
    tests: tuple["Expression", ...]
    entry: "Expression"
    rank: "Expression | None" = None
    key: "Expression | None" = None


@dataclass(frozen=True, slots=True)
class OneElement:
    """List of a single element."""

    element: "Expression"


@dataclass(frozen=True, slots=True)
class IfEmpty:
    """A list, or another one where it is empty."""

    first: "Expression"
    second: "Expression"


@dataclass(frozen=True, slots=True)
class Cut:
    """Elements of a list from `start` to before `stop`; negative numbers count from its end."""

    values: "Expression"
    start: int | None
    stop: int | None


Expression = (
    Literal
    | Variable
    | Setting
    | Field
    | Call
    | Record
    | Choice
    | AnyNull
    | Filled
    | Among
    | Elements
    | OneElement
    | IfEmpty
    | Cut
)


class Function(NamedTuple):
    """Function of a program that makes one v3 object."""

    name: str
    parameters: tuple[str, ...]
    body: Record


class MappingProgram(NamedTuple):
    """Functions of one mapping, callers first, and the names of the transforms that they use."""

    functions: tuple[Function, ...]
    transforms: tuple[str, ...]

    @property
    def entry(self) -> Function:
        """Function that maps one record."""
        return self.functions[0]


def read(compiled: CompiledObject, context: MappingContext) -> MappingProgram:
    """Return the functions of a compiled mapping, with the slices and settings of a request's context."""
    module = ast.parse(compiled.source)
    reader = _Reader(compiled.map.__globals__, context)
    # Callees are below their callers: read first, so that a caller knows whether they need the requested uid.
    definitions = [each for each in reversed(module.body) if isinstance(each, ast.FunctionDef)]
    functions = [reader.function(each) for each in definitions]
    *callees, entry = functions
    shown = [each for each in callees if each.body.fields]
    return MappingProgram((entry, *reversed(shown)), tuple(sorted(set(reader.transforms))))


class _Reader:
    """Reads the subset of Python that the compiler writes; `names` are the globals of its functions."""

    def __init__(self, names: Mapping[str, Any], context: MappingContext) -> None:
        self._names = names
        self._context = context
        self._bound: dict[str, Expression] = {}  # variables that stand for an expression
        self._need_uid: set[str] = set()  # functions that have the requested uid as a parameter
        self._empty: set[str] = set()  # functions that make objects without fields
        self.transforms: list[str] = []

    def function(self, node: ast.FunctionDef) -> Function:
        (returned,) = node.body
        assert isinstance(returned, ast.Return)  # noqa: S101 - all functions of a mapping return one object
        parameters = [each.arg for each in node.args.args]
        self._bound = {}
        body = self._read(returned.value)
        assert isinstance(body, Record)  # noqa: S101 - see above
        if not body.fields:
            self._empty.add(node.name)
        if CONTEXT in parameters:
            parameters.remove(CONTEXT)
            # Of the context only the requested uid differs between the records of one program.
            if any(each == Variable(REQUESTED_UID) for each in walk(body)):
                parameters.append(REQUESTED_UID)
                self._need_uid.add(node.name)
        return Function(node.name, tuple(parameters), body)

    def _read(self, node: ast.expr | None) -> Expression:
        expression: Expression
        match node:
            case ast.Constant(value=value):
                expression = Literal(value)
            case ast.List() | ast.Dict():
                expression = self._literal_or_list(node)
            case ast.Tuple(elts=elements):
                expression = OneElement(self._read(elements[0])) if elements else Literal([])
            case ast.Name(id=name):
                expression = self._bound.get(name) or Variable(name)
            case ast.Attribute(value=ast.Name(id="context"), attr=name):
                expression = self._setting(name)
            case ast.Attribute(value=value, attr=name):
                expression = Field(self._read(value), name)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                expression = self._call(name, arguments)
            case ast.Subscript(value=value, slice=ast.Subscript(slice=path)):
                cut = self._context.cuts[self._constant(path)]
                expression = Cut(self._read(value), cut.start, cut.stop)
            case _:
                expression = self._combined(node)
        return expression

    def _combined(self, node: ast.expr | None) -> Expression:
        match node:
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return Choice(self._test(test), self._read(body), self._read(otherwise))
            case ast.BoolOp(op=ast.Or(), values=[first, second]):
                return IfEmpty(self._read(first), self._read(second))
            case ast.ListComp(elt=ast.Name(id="element"), generators=[ast.comprehension(iter=ast.Call(args=[pairs]))]):
                return self._elements(pairs)
            case ast.ListComp() | ast.DictComp():
                return self._elements(node)
        raise NotImplementedError(f"mappings are not expected to have {node and ast.unparse(node)}")

    def _literal_or_list(self, node: ast.List | ast.Dict) -> Expression:
        if isinstance(node, ast.List) and node.elts and not isinstance(node.elts[0], ast.Constant):
            return OneElement(self._read(node.elts[0]))
        return Literal(without_class(ast.literal_eval(node)))

    def _setting(self, name: str) -> Expression:
        if name != REQUESTED_UID:
            return Setting(name)
        return Variable(name) if self._context.requested_uid else Literal(None)

    def _call(self, name: str, nodes: list[ast.expr]) -> Expression:
        called = self._names.get(name)
        if isinstance(called, type):
            fields: tuple[str, ...] = called.__struct_fields__  # type: ignore[attr-defined]
            return Record(tuple(zip(fields, map(self._read, nodes), strict=True)))
        if name in self._empty:
            return Literal({})
        if isinstance(called, FunctionType) and called.__globals__ is self._names:
            passed = [node for node in nodes if ast.unparse(node) != CONTEXT]
            uid = (Variable(REQUESTED_UID),) if name in self._need_uid else ()
            return Call(name, (*map(self._read, passed), *uid), is_transform=False)
        arguments = tuple(map(self._read, nodes))
        # No uid was requested, so that no part can be another than the requested one.
        if name == "redirected" and arguments[-1] == Literal(None):
            return Literal([])
        self.transforms.append(name)
        return Call(name, arguments, is_transform=True)

    def _elements(self, node: ast.expr) -> Expression:
        assert isinstance(node, ast.ListComp | ast.DictComp)  # noqa: S101 - what _combined passes
        outside = dict(self._bound)
        loops: list[Loop] = []
        tests: list[Expression] = []
        for clause in node.generators:
            assert isinstance(clause.target, ast.Name)  # noqa: S101 - the compiler unpacks nothing
            values = self._read(clause.iter)
            if isinstance(values, OneElement):
                # `for name in (value,)` names a value; here the value itself takes the place of the name.
                self._bound[clause.target.id] = values.element
            else:
                self._bound.pop(clause.target.id, None)
                loops.append(Loop(clause.target.id, values))
            tests += map(self._test, clause.ifs)
        elements = Elements(tuple(loops), tuple(tests), Literal(None))
        if isinstance(node, ast.DictComp):
            elements = replace(elements, key=self._read(node.key), entry=self._read(node.value))
        elif isinstance(node.elt, ast.Tuple):
            rank, entry = node.elt.elts
            elements = replace(elements, rank=self._read(rank), entry=self._read(entry))
        else:
            elements = replace(elements, entry=self._read(node.elt))
        self._bound = outside
        return elements if loops else _without_loops(elements)

    def _test(self, node: ast.expr) -> Expression:
        match node:
            case ast.BoolOp(op=ast.Or(), values=values):
                return AnyNull(tuple(each for value in values for each in self._nulls(value)))
            case ast.Compare(ops=[ast.Is()]):
                return AnyNull(tuple(self._nulls(node)))
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[text]):
                return Among(self._read(left), (self._constant(text),), negated=False)
            case ast.Compare(left=left, ops=[operator], comparators=[keys]):
                texts = tuple(sorted(self._constant(keys)))
                return Among(self._read(left), texts, negated=isinstance(operator, ast.NotIn))
        value = self._read(node)
        return value if isinstance(value, Call) else Filled(value)

    def _nulls(self, node: ast.expr) -> Iterator[Expression]:
        assert isinstance(node, ast.Compare)  # noqa: S101 - guards compare with None
        yield self._read(node.left)

    def _constant(self, node: ast.expr) -> Any:
        return self._names[ast.unparse(node)]


def _without_loops(elements: Elements) -> Expression:
    """Return the list of an entry that is there once, or not at all."""
    listed: Expression = OneElement(elements.entry)
    for test in reversed(elements.tests):
        listed = Choice(test, listed, Literal([]))
    return listed


def without_class(value: Any) -> Any:
    """Return a JSON value without `__class__`, which tells a program nothing that it does not know."""
    if isinstance(value, dict):
        return {key: without_class(each) for key, each in value.items() if key != "__class__"}
    return [without_class(each) for each in value] if isinstance(value, list) else value


def walk(expression: Any) -> Iterator[Any]:
    """Yield an expression and all that it consists of."""
    yield expression
    if isinstance(expression, tuple):
        for each in expression:
            yield from walk(each)
    elif hasattr(expression, "__dataclass_fields__"):
        for name in expression.__dataclass_fields__:
            yield from walk(getattr(expression, name))
