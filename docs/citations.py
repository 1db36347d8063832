"""`python -m docs.citations PAGE …`: make each citation of the contract in these pages a link to its section.

A citation is the name of a page of contract/ with sections, such as "v3-rest.md §3.1, §3.2"; sections of workbook.md
have words for numbers, as in "workbook.md, Functions".
"""

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTION = r"§(\d+(?:\.\d+)*)"
CITATION = re.compile(rf"\b(graphql|v3-rest|v4)\.md\s+({SECTION}(?:(?:,| and| to) {SECTION})*)")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (\d+(?:\.\d+)*)\.? .*$", re.MULTILINE)


@cache
def sections(page: str) -> dict[str, str]:
    """Return the anchors of a page of the contract by section, as GitHub and the site make them of its headings."""
    text = (ROOT / f"contract/{page}.md").read_text(encoding="utf-8")
    return {found[1]: _anchor(found[0].lstrip("# ")) for found in HEADING.finditer(text)}


def cited(text: str) -> Iterator[tuple[str, str]]:
    """Generate pages and sections that a text cites."""
    for citation in CITATION.finditer(text):
        yield from ((citation[1], section) for section in re.findall(SECTION, citation[2]))


def linked(text: str, folder: Path) -> str:
    """Return the text of a page in a folder with a link for each cited section, except in code."""
    contract = os.path.relpath(ROOT / "contract", folder)

    def link(citation: re.Match[str]) -> str:
        page = citation[1]

        def target(section: re.Match[str]) -> str:
            return f"[{section[0]}]({contract}/{page}.md#{sections(page)[section[1]]})"

        return re.sub(SECTION, target, citation[2])

    return "".join(part if part.startswith("`") else CITATION.sub(link, part) for part in CODE.split(text))


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(linked(page.read_text(encoding="utf-8"), page.resolve().parent), encoding="utf-8")
