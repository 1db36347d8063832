"""The documents as the tests see them: pages, their fenced blocks, their tables."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, a word after it, its text, and its line on the page."""

    language: str
    word: str
    text: str
    line: int


@dataclass(frozen=True)
class Page:
    """One document; `path` is relative to the top of the project."""

    path: str
    text: str

    def blocks(self, language: str | None = None, word: str | None = None) -> list[Block]:
        """The fenced blocks in order, of one language and word where given."""
        found = [self._block(match) for match in FENCE.finditer(self.text)]
        return [b for b in found if language in (None, b.language) and word in (None, b.word)]

    def _block(self, match: re.Match[str]) -> Block:
        language, _, word = match[2].partition(" ")
        return Block(language, word, textwrap.dedent(match[3]), self.text.count("\n", 0, match.start()) + 1)

    def table(self, first: str) -> list[list[str]]:
        """The rows, without the heads, of every table whose first column is headed so."""
        lines = iter(self.text.splitlines())
        rows: list[list[str]] = []
        for line in lines:
            if line.startswith(f"| {first} |"):
                next(lines)
                rows += _rows(lines)
        assert rows, f"{self.path} has no table that begins with {first!r}"
        return rows


def _rows(lines: Iterator[str]) -> Iterator[list[str]]:
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip().replace("\\|", "|") for cell in CELL.split(line)[1:-1]]


PAGES = {
    path.relative_to(ROOT).as_posix(): Page(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("contract/*.md"), *ROOT.glob("docs/**/*.md")])
}


@pytest.fixture(scope="session")
def pages() -> dict[str, Page]:
    """Every document by its path."""
    return PAGES
