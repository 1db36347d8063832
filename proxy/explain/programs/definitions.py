"""Definitions in snippets/: those that a program uses, with all that they use themselves.

A definition is a block of lines between blank lines; a comment above belongs to it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent / "snippets"
DEFINITIONS = {
    "py": re.compile(r"^def (\w+)", re.MULTILINE),
    "js": re.compile(r"^(?:async )?function (\w+)", re.MULTILINE),
    "jq": re.compile(r"^def (\w+)", re.MULTILINE),
    "sh": re.compile(r"^(\w+)\(\) \{", re.MULTILINE),
}
# What can be the name of a definition. jq and the shell call functions without brackets, so that there any word can
# be one, except fields and variables; their comments are left out.
_CALLS = {
    "py": re.compile(r"(?<![\w.])(\w+)\("),
    "js": re.compile(r"(?<![\w.])(\w+)\("),
    "jq": re.compile(r"""(?<![\w.$"])([A-Za-z_]\w*)(?![\w"]|\s*:(?!:))"""),
    "sh": re.compile(r"(?<![\w$\"-])([a-z]\w*)"),
}
_COMMENTS = re.compile(r"^\s*#.*$", re.MULTILINE)
_CONSTANTS = re.compile(r"\b[A-Z][A-Z_]+\b")


@lru_cache
def of_language(language: str) -> dict[str, str]:
    """Return the definitions of a language, in the order of the files."""
    blocks: dict[str, str] = {}
    for file in (FOLDER / f"{name}.{language}" for name in ("requests", "transforms")):
        if file.exists():
            blocks |= _definitions(file.read_text(encoding="utf-8"), language)
    return blocks


def _definitions(text: str, language: str) -> Iterator[tuple[str, str]]:
    for block in re.split(r"\n\n+", text.strip()):
        if head := DEFINITIONS[language].search(block):
            yield head[1], block


def used(language: str, texts: Iterable[str], chosen: Callable[[str], str] = str) -> dict[str, str]:
    """Return the definitions that some texts use, callees first. `chosen` maps a name to that of the definition which
    is used for it."""
    known = of_language(language)
    blocks: dict[str, str] = {}

    def visit(text: str) -> None:
        for name in names(language, text):
            definition = chosen(name)
            if definition in known and name not in blocks:
                block = re.sub(rf"\b{definition}\b", name, known[definition])
                blocks[name] = ""  # its place is behind what it calls; a definition may name itself
                visit(block)
                del blocks[name]
                blocks[name] = block

    for text in texts:
        visit(text)
    return blocks


def names(language: str, text: str) -> list[str]:
    """Return the words of a text that can be names of definitions, without repetition."""
    if language in ("jq", "sh"):
        text = _COMMENTS.sub("", text)
    return list(dict.fromkeys(_CALLS[language].findall(text)))


def constants(text: str) -> set[str]:
    """Return the names in capitals in a text."""
    return set(_CONSTANTS.findall(text))
