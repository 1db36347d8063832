"""Renew the files that scripts of docs/ make of the code: `python -m docs`, or `python -m docs FILE …` for some.

The files are written once all are made: a failure changes none.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from docs import columns, command_line, first_minute, json_schema, man_page, nexar, settings, v3_surface

ROOT = Path(__file__).parents[1]
PAGES: dict[str, Callable[[], str]] = {
    "docs/commands.md": command_line.page,
    "docs/compare.schema.json": json_schema.page,
    "docs/v3bridge.1": lambda: man_page.page("v3bridge"),
    "sandbox/nexar-sandbox.1": lambda: man_page.page("nexar-sandbox"),
    "docs/v3-today.md": v3_surface.page,
    "docs/columns.md": columns.page,
    "docs/nexar.md": nexar.page,
    "docs/settings.md": settings.page,
    "docs/images/first-minute.svg": first_minute.page,
}


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in PAGES]
    if unknown:
        sys.exit(f"not made by a script: {', '.join(unknown)}; these are: {', '.join(PAGES)}")
    made = {name: PAGES[name]() for name in names or PAGES}
    for name, text in made.items():
        (ROOT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
