"""The table of deviations in docs/reference/sandbox.md: `python -m docs.sandbox_deviations`.

Writes the end of the page, made of their declarations; tests/project holds the page to it.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import orjson

import nexar_sandbox

PAGE = Path(__file__).parent / "reference/sandbox.md"
HEAD = """| deviation | behavior | meaning |
|---|---|---|
"""
ESCAPED = str.maketrans({"|": "\\|", "\n": " "})


def page() -> str:
    """Return the whole page, which ends with the table."""
    return PAGE.read_text(encoding="utf-8").partition(HEAD)[0] + HEAD + "".join(_rows())


def _rows() -> Iterator[str]:
    hints = get_type_hints(nexar_sandbox.Behavior, include_extras=True)
    defaults = dataclasses.asdict(nexar_sandbox.Behavior())
    for name, changes in nexar_sandbox.DEVIATIONS.items():
        for field, value in changes.items():
            (meaning,) = hints[field].__metadata__
            if (defaults[field], value) != (True, False):
                meaning += f" ({_value(defaults[field])} → {_value(value)})"
            cells = (f"`{name}`", f"`{field}`", meaning)
            yield f"| {' | '.join(cell.translate(ESCAPED) for cell in cells)} |\n"


def _value(value: Any) -> str:
    text = orjson.dumps(value, default=list).decode()
    return f"`` {text} ``" if "`" in text else f"`{text}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
