"""Definitions in snippets/: those that a program uses, with all that they use themselves.

A definition is a block of lines between blank lines; a comment above belongs to it.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent / "snippets"
TRANSFORMS = "transforms.py"
DEFINITION = re.compile(r"^def (\w+)", re.MULTILINE)
_CALL = re.compile(r"(?<![\w.])(\w+)\(")
_CONSTANTS = re.compile(r"\b[A-Z][A-Z_]+\b")


@lru_cache
def known() -> dict[str, str]:
    """Return all definitions, in the order of the files."""
    blocks: dict[str, str] = {}
    for name in ("requests.py", TRANSFORMS):
        for block in re.split(r"\n\n+", (FOLDER / name).read_text(encoding="utf-8").strip()):
            if head := DEFINITION.search(block):
                blocks[head[1]] = block
    return blocks


@lru_cache
def transforms() -> frozenset[str]:
    return frozenset(DEFINITION.findall((FOLDER / TRANSFORMS).read_text(encoding="utf-8")))


def used(texts: Iterable[str], chosen: Callable[[str], str] = str) -> dict[str, str]:
    """Return the definitions that some texts use, callees first. `chosen` maps a name to that of the definition which
    is used for it."""
    blocks: dict[str, str] = {}

    def visit(text: str) -> None:
        for name in dict.fromkeys(_CALL.findall(text)):
            definition = chosen(name)
            if definition in known() and name not in blocks:
                block = re.sub(rf"\b{definition}\b", name, known()[definition])
                blocks[name] = ""  # its place is behind what it calls; a definition may name itself
                visit(block)
                del blocks[name]
                blocks[name] = block

    for text in texts:
        visit(text)
    return blocks


def constants(text: str) -> set[str]:
    return set(_CONSTANTS.findall(text))
