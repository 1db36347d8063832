"""Printer of the constants of a program, which breaks long lines."""

import json
import textwrap
from collections.abc import Iterable
from typing import Any, NamedTuple

WIDTH = 92  # of a text that is printed in one line; its indentation is not known yet


class Setting(NamedTuple):
    """Constant of the program among JSON values, such as `country`."""

    name: str


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
