"""Pages as Markdown, from templates: tables and links."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2

CODE_OR_TAG = re.compile(r"(`[^`]*`)|<")


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
    environment.filters |= {"code": code, "joined": joined, "reference": reference}
    return environment.get_template(template).render(table=table, **values).rstrip("\n") + "\n"


def reference(name: str) -> str:
    """Return a link to an object on the page."""
    return f"[{name}](#{name.lower()})"


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
