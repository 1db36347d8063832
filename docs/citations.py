"""Citations of the contract, such as "graphql.md §3.1, §3.2", as links to its sections."""

import os
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTION = r"§(\d+(?:\.\d+)*)"
CITATION = re.compile(rf"\b(graphql|v3-rest|v4)\.md\s+({SECTION}(?:(?:,| and| to) {SECTION})*)")
HEADING = re.compile(r"^#+ (\d+(?:\.\d+)*)\.? .*$", re.MULTILINE)


@cache
def sections(page: str) -> dict[str, str]:
    """Return the anchors of a page of the contract by section, as GitHub and the site make them of its headings."""
    text = (ROOT / f"contract/{page}.md").read_text(encoding="utf-8")
    return {found[1]: _anchor(found[0].lstrip("# ")) for found in HEADING.finditer(text)}


def linked(text: str, folder: Path) -> str:
    """Return the text of a page in a folder with a link for each cited section."""
    contract = os.path.relpath(ROOT / "contract", folder)

    def link(citation: re.Match[str]) -> str:
        page = citation[1]

        def target(section: re.Match[str]) -> str:
            return f"[{section[0]}]({contract}/{page}.md#{sections(page)[section[1]]})"

        return re.sub(SECTION, target, citation[2])

    return CITATION.sub(link, text)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
