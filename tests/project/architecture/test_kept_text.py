"""What no file of the project may say: unfinished work, and places that exist on one machine only."""

import re
from typing import Any

import pytest

# Each pattern is written so that this file does not match it.
FORBIDDEN = {
    # Three X are unfinished work in a comment only: elsewhere they stand for an unknown currency or part number.
    "unfinished work": re.compile(r"\b(?:TO[D]O|FIX[M]E)\b|(?:#|//|<!--)[^\n]*\bX[X]X\b"),
    "a path of one machine": re.compile(
        r"""(?:^|[\s"'`(=:])/(?:work|root|home|Users|opt|mnt)/|\bC:\\Users\b""", re.MULTILINE
    ),
    "an address of a package registry": re.compile(
        r"pypi\.org|pythonhosted\.org|registry\.npmjs|npmjs\.com|deb\.debian|index[-]url|find[-]links|\bfile:///"
    ),
}

# Recorded data and part numbers may hold any letters; who writes code or prose may not.
WRITTEN = (".py", ".md", ".toml", ".yaml", ".graphql", ".txt", ".html", "Makefile", ".ci/run", ".ci/programs", ".log")


def _hits(texts: Any, pattern: Any) -> Any:
    return [
        f"{path}:{text.count(chr(10), 0, hit.start()) + 1} {hit.group().strip()}"
        for path, text in texts.items()
        if path.endswith(WRITTEN)
        for hit in pattern.finditer(text)
    ]


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_no_file_holds_forbidden_text(kind: Any, kept_texts: dict[str, str]) -> None:
    assert _hits(kept_texts, FORBIDDEN[kind]) == []


@pytest.mark.parametrize(
    "kind,line",
    [
        ("unfinished work", "# TO" + "DO: later"),
        ("unfinished work", "y = 2  # XX" + "X wrong"),
        ("a path of one machine", "open('/ro" + "ot/.config')"),
        ("an address of a package registry", "https://py" + "pi.org/simple"),
    ],
)
def test_forbidden_text_is_found(kind: str, line: str) -> None:
    assert _hits({"proxy/a.py": f"x = 1\n{line}\n"}, FORBIDDEN[kind])[0].startswith("proxy/a.py:2 ")
