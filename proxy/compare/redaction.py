"""Keys out of everything that a comparison writes: answers that are recorded, samples in reports, messages.

What is known to be a key becomes `…` wherever it stands, and so does whatever is given as an apikey. JSON stays JSON.
Used on whatever leaves a run; it does not decide what is written.
"""

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "…"
WHOLE_WORD = 8  # characters; a shorter key is hidden only where it stands by itself

_INDEX = r"(?:\[[^\]&=]*\]|%5B[^%&=]*%5D)?"  # apikey[], as some programs write it
_GIVEN = re.compile(rf"(apikey{_INDEX}(?:=|%3D|\\u003d))[^&\s\"'<>\\#)]+", re.IGNORECASE)
_FIELD = re.compile(r'("apikey"\s*:\s*")(?:[^"\\]|\\.)*', re.IGNORECASE)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BETWEEN_STRINGS = frozenset("0123456789+-.eE,:[]{} \t\r\n" + "true" + "false" + "null")


class Redaction:
    """Hides `secrets`. Hides itself, too: its repr shows none of them."""

    __slots__ = ("_spellings",)

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
        self._spellings = tuple(sorted(found, key=lambda each: (-len(each), each)))

    def __repr__(self) -> str:
        return f"Redaction({len(self._spellings)} hidden)"

    def text(self, text: str) -> str:
        """A text without keys."""
        there = self._there(text)
        hidden = _any_of(there).sub(HIDDEN, text) if there else text
        return _GIVEN.sub(rf"\1{HIDDEN}", hidden)

    def json(self, value: Any) -> Any:
        """A JSON value without keys, in names and in texts. Numbers are no keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self._field(name, below) for name, below in value.items()}
        return [self.json(each) for each in value] if isinstance(value, list | tuple) else value

    def body(self, body: bytes) -> bytes:
        """The body of an answer without keys; what was JSON is JSON, with the same numbers."""
        text = body.decode("utf-8", "surrogateescape")
        if text.lstrip()[:1] in ("{", "["):
            there = self._there(text)
            if there and all(map(_only_within_strings, there)):
                text = _any_of(there).sub(HIDDEN, text)
            elif there:
                text = _STRING.sub(lambda token: self.text(token[0]), text)
            if "apikey" in text.lower():
                text = _GIVEN.sub(rf"\1{HIDDEN}", _FIELD.sub(rf"\1{HIDDEN}", text))
        else:
            text = self.text(text)
        return text.encode("utf-8", "surrogateescape")

    def _field(self, name: str, value: Any) -> Any:
        return HIDDEN if name.lower() == "apikey" and isinstance(value, str) else self.json(value)

    def _there(self, text: str) -> list[str]:
        """The keys that stand in a text: of many keys few do, and looking for one at a time is quick."""
        return [each for each in self._spellings if each in text]


def _any_of(spellings: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_pattern, spellings)))


def _only_within_strings(spelling: str) -> bool:
    """Whether what stands in JSON like this can only be in one of its strings, so that numbers need no guarding."""
    return '"' not in spelling and not _BETWEEN_STRINGS.issuperset(spelling)


def _spellings(secret: str) -> set[str]:
    """A key as it is, in a URL, and in JSON."""
    escaped = json.dumps(secret)[1:-1]
    found = {secret, quote(secret, safe=""), quote_plus(secret), escaped, escaped.replace("/", "\\/")}
    return found | {re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), each) for each in found}


def _pattern(spelling: str) -> str:
    exact = re.escape(spelling)
    return exact if len(spelling) >= WHOLE_WORD else rf"(?<![A-Za-z0-9]){exact}(?![A-Za-z0-9])"
