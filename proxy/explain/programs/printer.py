"""Base of the printers of mapping functions, and how long source is broken into lines."""

import json
import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from proxy.explain.programs.expressions import (
    AnyNull,
    Call,
    Choice,
    Elements,
    Expression,
    Field,
    Function,
    Literal,
    OneElement,
    Setting,
    Variable,
)

WIDTH = 92  # of a text that is printed in one line; its indentation is not known yet
NARROW = 60  # of a literal object in one line


class Printer(ABC):
    """Prints expressions in one language. `text` gives several lines where one would be too long."""

    def text(self, expression: Expression) -> str:
        """Return the source of an expression."""
        match expression:
            case Literal(value=value):
                text = self.literal(value)
            case Variable(name=name):
                text = self.variable(name)
            case Setting(name=name):
                text = self.setting(name)
            case Field(of=of, name=name):
                text = self.field(self.text(of), name)
            case Call(function=name, arguments=arguments):
                text = self.call(name, [self.text(each) for each in arguments])
            case OneElement(element=element):
                text = bracketed("[", [self.text(element)], "]")
            case Elements():
                text = self.elements(expression)
            case Choice(test=AnyNull(values=(tested,)), value=default, otherwise=otherwise) if tested == otherwise:
                text = self.default(tested, default)
            case Choice(test=test, value=chosen, otherwise=otherwise):
                text = self.choice(self.text(test), self.text(chosen), self.text(otherwise))
            case _:
                text = self.special(expression)
        return text

    def value(self, expression: Expression) -> str:
        """Return the source of the value of a field, which needs no brackets around it."""
        text = self.text(expression)
        is_choice = isinstance(expression, Choice) and "\n" not in text
        return text[1:-1] if is_choice else text

    @abstractmethod
    def function(self, function: Function) -> str:
        """Return the source of a function."""

    @abstractmethod
    def literal(self, value: Any) -> str:
        """Return the source of a JSON value."""

    @abstractmethod
    def special(self, expression: Expression) -> str:
        """Return the source of a test, a cut or a list with a fallback: what each language says in its own way."""

    @abstractmethod
    def variable(self, name: str) -> str:
        """Return the source of a variable."""

    @abstractmethod
    def field(self, of: str, name: str) -> str:
        """Return the source of a field of a value."""

    @abstractmethod
    def call(self, name: str, arguments: list[str]) -> str:
        """Return the source of a call."""

    @abstractmethod
    def choice(self, test: str, value: str, otherwise: str) -> str:
        """Return the source of a conditional expression."""

    def default(self, value: Expression, default: Expression) -> str:
        """Return the source of a value, or of a default where it is null."""
        return self.choice(self.text(AnyNull((value,))), self.text(default), self.text(value))

    @abstractmethod
    def elements(self, elements: Elements) -> str:
        """Return the source of a list or dict that loops make."""

    def setting(self, name: str) -> str:
        """Return the source of `country` or `currency`."""
        return name.upper()


def bracketed(
    opening: str,
    items: Sequence[str],
    closing: str,
    *,
    separator: str = ",",
    trailing: str = ",",
    step: int = 4,
    pad: str = "",
) -> str:
    """Return items in brackets: in one line if they fit, else each in lines of its own."""
    flat = f"{opening}{pad}{f'{separator} '.join(items)}{pad}{closing}"
    if not items or (len(flat) <= WIDTH and "\n" not in flat):
        return flat
    # A single item that is itself in brackets begins and ends in the lines of the outer ones.
    if len(items) == 1 and len(items[0].partition("\n")[0]) + len(opening) <= WIDTH and "\n" in flat:
        return flat
    lines = f"{separator}\n".join(indented(item, step) for item in items)
    return f"{opening}\n{lines}{trailing}\n{closing}"


def record(fields: Sequence[str], *, step: int = 4, trailing: str = ",", pad: str = "") -> str:
    """Return the fields of an object, each in a line of its own unless they are few and short."""
    flat = f"{{{pad}{', '.join(fields)}{pad}}}"
    if len(flat) <= NARROW and "\n" not in flat:
        return flat
    return "{\n" + ",\n".join(indented(field, step) for field in fields) + trailing + "\n}"


def lines(clauses: Iterable[str], opening: str, closing: str, step: int = 4) -> str:
    """Return clauses in brackets, in one line if they fit, else one below the other."""
    listed = list(clauses)
    flat = f"{opening}{' '.join(listed)}{closing}"
    if len(flat) <= WIDTH and "\n" not in flat:
        return flat
    return f"{opening}\n" + "\n".join(indented(each, step) for each in listed) + f"\n{closing}"


def indented(text: str, step: int = 4) -> str:
    """Indent all lines."""
    return textwrap.indent(text, " " * step)


def quoted(value: Any) -> str:
    """Return a JSON scalar as source: the three languages write texts and numbers as JSON does."""
    text = json.dumps(value, ensure_ascii=False)
    # Half a surrogate pair cannot be written to a file; as an escape it can.
    return text if text.isprintable() else json.dumps(value)


def camel_case(name: str) -> str:
    """Convert an identifier such as `part_offer` to `partOffer`; a leading underscore stays."""
    return re.sub(r"(?<=[a-z0-9])_+([a-z0-9])", lambda letter: letter[1].upper(), name)
