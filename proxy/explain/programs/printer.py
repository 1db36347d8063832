"""Printer of mapping functions in Python, and how long source is broken into lines."""

import json
import keyword
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from proxy.explain.programs.expressions import (
    Among,
    AnyNull,
    Call,
    Choice,
    Cut,
    Elements,
    Expression,
    Field,
    Filled,
    Function,
    IfEmpty,
    Literal,
    OneElement,
    Setting,
    Variable,
)

WIDTH = 92  # of a text that is printed in one line; its indentation is not known yet
NARROW = 60  # of a literal object in one line


class Printer:
    """Prints expressions as Python. GraphQL objects are dicts. Too long a line becomes several."""

    def text(self, expression: Expression) -> str:
        """Return the source of an expression."""
        match expression:
            case Literal(value=value):
                text = self.literal(value)
            case Variable(name=name):
                text = self._variable(name)
            case Setting(name=name):
                text = self._setting(name)
            case Field(of=of, name=name):
                text = self._field(self.text(of), name)
            case Call(function=name, arguments=arguments):
                text = self._call(name, [self.text(each) for each in arguments])
            case OneElement(element=element):
                text = bracketed("[", [self.text(element)], "]")
            case Elements():
                text = self._elements(expression)
            case Choice(test=AnyNull(values=(tested,)), value=default, otherwise=otherwise) if tested == otherwise:
                text = self._default(tested, default)
            case Choice(test=test, value=chosen, otherwise=otherwise):
                text = self._choice(self.text(test), self.text(chosen), self.text(otherwise))
            case _:
                text = self._special(expression)
        return text

    def value(self, expression: Expression) -> str:
        """Return the source of the value of a field, which needs no brackets around it."""
        text = self.text(expression)
        is_choice = isinstance(expression, Choice) and "\n" not in text
        return text[1:-1] if is_choice else text

    def function(self, function: Function) -> str:
        """Return the source of a function."""
        body = record([f"{quoted(name)}: {self.value(value)}" for name, value in function.body.fields])
        return (
            f"def {function.name}({', '.join(map(self._variable, function.parameters))}):\n{indented(f'return {body}')}"
        )

    def literal(self, value: Any) -> str:
        """Return the source of a JSON value."""
        match value:
            case None | bool():
                return str(value)
            case Setting(name=name):
                return self._setting(name)
            case dict():
                return bracketed("{", [f"{quoted(key)}: {self.literal(each)}" for key, each in value.items()], "}")
            case list() | tuple():
                return bracketed("[", [self.literal(each) for each in value], "]")
        return quoted(value)

    def _variable(self, name: str) -> str:
        return f"{name}_" if keyword.iskeyword(name) else name

    def _field(self, of: str, name: str) -> str:
        return f"{of}[{quoted(name)}]"

    def _call(self, name: str, arguments: list[str]) -> str:
        return bracketed(f"{name}(", arguments, ")")

    def _choice(self, test: str, value: str, otherwise: str) -> str:
        return lines([value, f"if {test}", f"else {otherwise}"], "(", ")")

    def _elements(self, elements: Elements) -> str:
        entry = self.text(elements.entry)
        if elements.key is not None:
            entry = f"{self.text(elements.key)}: {entry}"
        if elements.rank is not None:
            entry = bracketed("(", [self.text(elements.rank), entry], ")")
        clauses = [f"for {self._variable(each.variable)} in {self.text(each.values)}" for each in elements.loops]
        clauses += [f"if {self.text(each)}" for each in elements.tests]
        opening, closing = ("{", "}") if elements.key is not None else ("[", "]")
        if elements.rank is not None:
            opening, closing = "ranked(", ")"
        return lines([entry, *clauses], opening, closing)

    def _special(self, expression: Expression) -> str:
        match expression:
            case AnyNull(values=values):
                return " or ".join(f"{self.text(each)} is None" for each in values)
            case Filled(value=value):
                return self.text(value)
            case Among(value=value, texts=[text], negated=negated):
                return f"{self.text(value)} {'!=' if negated else '=='} {quoted(text)}"
            case Among(value=value, texts=texts, negated=negated):
                return f"{self.text(value)} {'not in' if negated else 'in'} {self.literal(texts)}"
            case IfEmpty(first=first, second=second):
                return f"{self.text(first)} or {self.text(second)}"
            case Cut(values=values, start=start, stop=stop):
                return f"{self.text(values)}[{_bound(start)}:{_bound(stop)}]"
        raise NotImplementedError(f"no Python for {expression}")

    def _default(self, value: Expression, default: Expression) -> str:
        return self._choice(self.text(AnyNull((value,))), self.text(default), self.text(value))

    def _setting(self, name: str) -> str:
        return name.upper()


def _bound(number: int | None) -> str:
    return "" if number is None else str(number)


def bracketed(opening: str, items: Sequence[str], closing: str) -> str:
    """Return items in brackets: in one line if they fit, else each in lines of its own."""
    flat = f"{opening}{', '.join(items)}{closing}"
    if not items or (len(flat) <= WIDTH and "\n" not in flat):
        return flat
    # A single item that is itself in brackets begins and ends in the lines of the outer ones.
    if len(items) == 1 and len(items[0].partition("\n")[0]) + len(opening) <= WIDTH and "\n" in flat:
        return flat
    return f"{opening}\n" + ",\n".join(map(indented, items)) + f",\n{closing}"


def record(fields: Sequence[str]) -> str:
    """Return the fields of an object, each in a line of its own unless they are few and short."""
    flat = f"{{{', '.join(fields)}}}"
    if len(flat) <= NARROW and "\n" not in flat:
        return flat
    return "{\n" + ",\n".join(map(indented, fields)) + ",\n}"


def lines(clauses: Iterable[str], opening: str, closing: str) -> str:
    """Return clauses in brackets, in one line if they fit, else one below the other."""
    listed = list(clauses)
    flat = f"{opening}{' '.join(listed)}{closing}"
    if len(flat) <= WIDTH and "\n" not in flat:
        return flat
    return f"{opening}\n" + "\n".join(map(indented, listed)) + f"\n{closing}"


def indented(text: str) -> str:
    """Indent all lines."""
    return textwrap.indent(text, "    ")


def quoted(value: Any) -> str:
    """Return a JSON scalar as source: Python writes texts and numbers as JSON does."""
    text = json.dumps(value, ensure_ascii=False)
    # Half a surrogate pair cannot be written to a file; as an escape it can.
    return text if text.isprintable() else json.dumps(value)
