"""The tables of docs/reference/configuration.md: `python -m docs.configuration`.

Writes the two tables of settings into the page; tests/project holds the page to them.
"""

from pathlib import Path

from proxy.config import reference

PAGE = Path(__file__).parent / "reference/configuration.md"
COMMON, OTHERS, END = "## Settings that people change\n", "## All other settings\n", "## Settings that need a restart\n"
HEAD = "\n| key | accepts | meaning |\n|---|---|---|\n"
ESCAPED = str.maketrans({"|": "\\|", "\n": " "})


def page() -> str:
    """Return the whole page."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, after = text.partition(COMMON)
    rows = reference.rows()
    first, rest = ([_row(row) for row in rows if row.is_common is common] for common in (True, False))
    tables = f"{COMMON}{HEAD}{''.join(first)}\n{OTHERS}{HEAD}{''.join(rest)}\n"
    return before + tables + END + after.partition(END)[2]


def _row(row: reference.ReferenceRow) -> str:
    defaults = {"required": "; required", "none": ""}
    accepts = row.accepts.translate(ESCAPED) + defaults.get(row.default, f"; default `{row.default}`")
    return f"| `{row.name}` | {accepts} | {row.meaning.translate(ESCAPED)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
