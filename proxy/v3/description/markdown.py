"""Pages as Markdown, from templates: JSON schemas in a few words, tables and links."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2

from proxy.v3.description.response_schemas import Schema, ref

CODE_OR_TAG = re.compile(r"(`[^`]*`)|<")


def kind(schema: Schema) -> str:
    """Return a schema in a few words; objects on the page are links."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'], ensure_ascii=False)}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(choice) for choice in schema["anyOf"]))
    return _plain(schema)


def _plain(schema: Schema) -> str:
    match schema.get("type"):
        case "array":
            return f"list of {kind(schema['items'])}"
        case "object" if "additionalProperties" in schema:
            return f"object of {kind(schema['additionalProperties'])}"
        case list(names):
            return " or ".join(names)
        case None:
            return "any"
        case name:
            return "uid" if schema.get("pattern") == "^[0-9a-f]{16}$" else str(name)


class _Table(str):
    """Rows whose cells have been escaped."""

    __slots__ = ()


def render(template: str, **values: Any) -> str:
    """Return the page that a template of this folder makes of values, each of which is text of one line, or a table."""
    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701 - it is no HTML
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, _Table) else _cell(value),
    )
    filters = {"code": code, "joined": joined, "kind": kind, "reference": lambda name: kind(ref(name))}
    environment.filters |= filters
    return environment.get_template(template).render(table=table, **values).rstrip("\n") + "\n"


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return _Table("".join("| " + " | ".join(map(_cell, line)) + " |\n" for line in lines))


def code(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def joined(text: str) -> str:
    """Return `a, b, c` as `a, b and c`."""
    return " and ".join(text.rsplit(", ", 1))


def _cell(text: Any) -> str:
    """Return one line of text, with pipes and tags escaped."""
    line = str(text).replace("|", "\\|").replace("\n", " ")
    # A < outside of code would begin a tag; inside it is shown as it is.
    return CODE_OR_TAG.sub(lambda match: match[1] or "\\<", line)
