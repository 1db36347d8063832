"""Markdown fragments: JSON schemas in a few words, tables and links."""

import json
import re
from collections.abc import Iterable
from typing import Any

from proxy.v3.description.response_schemas import Schema

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


def table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    """Return a Markdown table with a blank line after it."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(_cell(text) for text in line) + " |\n" for line in lines) + "\n"


def code(texts: Iterable[str]) -> str:
    """Return names as code, comma-separated."""
    return ", ".join(f"`{text}`" for text in texts)


def joined(text: str) -> str:
    """Return `a, b, c` as `a, b and c`."""
    return " and ".join(text.rsplit(", ", 1))


def anchor(title: str) -> str:
    """Return a link to a heading of the page."""
    name = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{name})"


def _cell(text: Any) -> str:
    """Return one line of text, with pipes and tags escaped."""
    line = str(text).replace("|", "\\|").replace("\n", " ")
    # A < outside of code would begin a tag; inside it is shown as it is.
    return CODE_OR_TAG.sub(lambda match: match[1] or "\\<", line)
