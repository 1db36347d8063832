"""Printer of the functions and constants of a program, which breaks long lines."""

import ast
import json
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from proxy.explain.programs.mapping_functions import Function

WIDTH = 92  # of a text that is printed in one line; its indentation is not known yet
NARROW = 60  # of a literal object in one line
_OPERATORS = {ast.Is: "is", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in"}


class Setting(NamedTuple):
    """Constant of the program among JSON values, such as `country`."""

    name: str


def source(node: ast.expr | None) -> str:
    """Return the source of an expression."""
    match node:
        case ast.Constant(value=value):
            text = literal(value)
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp(elt=pair, generators=loops)]):
            text = _lines([source(pair), *_clauses(loops)], f"{name}(", ")")
        case ast.Call(func=ast.Name(id=name), args=arguments):
            text = _bracketed(f"{name}(", map(source, arguments), ")")
        case ast.List(elts=elements):
            text = _bracketed("[", map(source, elements), "]")
        case ast.Tuple(elts=elements):
            text = _bracketed("(", map(source, elements), ")")
        case ast.Dict(keys=keys, values=values):
            pairs = (f"{source(key)}: {source(value)}" for key, value in zip(keys, values, strict=True))
            text = _bracketed("{", pairs, "}")
        case ast.ListComp(elt=entry, generators=loops):
            text = _lines([source(entry), *_clauses(loops)], "[", "]")
        case ast.DictComp(key=key, value=entry, generators=loops):
            text = _lines([f"{source(key)}: {source(entry)}", *_clauses(loops)], "{", "}")
        case _:
            text = _operation(node)
    return text


def _operation(node: ast.expr | None) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=of, slice=ast.Slice(lower=start, upper=stop)):
            return f"{_enclosed(of)}[{source(start) if start else ''}:{source(stop) if stop else ''}]"
        case ast.Subscript(value=of, slice=key):
            return f"{source(of)}[{source(key)}]"
        case ast.IfExp(test=test, body=value, orelse=otherwise):
            return _lines([source(value), f"if {source(test)}", f"else {source(otherwise)}"], "(", ")")
        case ast.BoolOp(op=ast.Or(), values=values):
            return " or ".join(map(source, values))
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return f"{source(left)} {_OPERATORS[type(operator)]} {source(right)}"
    raise NotImplementedError(f"mappings are not expected to have {node and ast.dump(node)}")


def function(printed: Function) -> str:
    """Return the source of a function: each field of the object in a line of its own, unless they are few and short."""
    # The value of a field needs no brackets around it.
    values = [text[1:-1] if text[0] == "(" and "\n" not in text else text for text in map(source, printed.body.values)]
    fields = [f"{source(key)}: {value}" for key, value in zip(printed.body.keys, values, strict=True)]
    body = f"{{{', '.join(fields)}}}"
    if len(body) > NARROW or "\n" in body:
        body = "{\n" + ",\n".join(map(indented, fields)) + ",\n}"
    return f"def {printed.name}({', '.join(printed.parameters)}):\n{indented(f'return {body}')}"


def literal(value: Any) -> str:
    match value:
        case None | bool():
            return str(value)
        case Setting(name=name):
            return name.upper()
        case dict():
            return _bracketed("{", (f"{quoted(key)}: {literal(each)}" for key, each in value.items()), "}")
        case list() | tuple():
            return _bracketed("[", map(literal, value), "]")
    return quoted(value)


def indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def quoted(value: Any) -> str:
    """Return a JSON scalar as source: Python writes texts and numbers as JSON does."""
    text = json.dumps(value, ensure_ascii=False)
    # Half a surrogate pair cannot be written to a file; as an escape it can.
    return text if text.isprintable() else json.dumps(value)


def _enclosed(node: ast.expr) -> str:
    return f"({source(node)})" if isinstance(node, ast.BoolOp) else source(node)


def _clauses(loops: Sequence[ast.comprehension]) -> list[str]:
    tests = [f"if {source(test)}" for test in loops[-1].ifs]
    return [f"for {source(loop.target)} in {source(loop.iter)}" for loop in loops] + tests


def _bracketed(opening: str, items: Iterable[str], closing: str) -> str:
    """Return items in brackets: in one line if they fit, else each in lines of its own."""
    items = list(items)
    flat = f"{opening}{', '.join(items)}{closing}"
    if not items or (len(flat) <= WIDTH and "\n" not in flat):
        return flat
    # A single item that is itself in brackets begins and ends in the lines of the outer ones.
    if len(items) == 1 and len(items[0].partition("\n")[0]) + len(opening) <= WIDTH and "\n" in flat:
        return flat
    return f"{opening}\n" + ",\n".join(map(indented, items)) + f",\n{closing}"


def _lines(clauses: Sequence[str], opening: str, closing: str) -> str:
    """Return clauses in brackets, in one line if they fit, else one below the other."""
    flat = f"{opening}{' '.join(clauses)}{closing}"
    if len(flat) <= WIDTH and "\n" not in flat:
        return flat
    return f"{opening}\n" + "\n".join(map(indented, clauses)) + f"\n{closing}"
