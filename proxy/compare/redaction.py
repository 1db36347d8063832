"""Redaction of everything that a comparison writes: recorded responses, samples in reports, messages.

A known key becomes `…` wherever it occurs, and so does any value of an apikey parameter. JSON stays JSON. Values are
truncated, too: a field of a catalog may have ten megabytes, or contain lone surrogates.
"""

import json
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from proxy.compare.judging.findings import Comparison, Difference, Finding
from proxy.compare.requests import V3Request

HIDDEN = "…"
# characters; a shorter key is hidden only as a separate word, because it may occur in other words by chance
WHOLE_WORD = 8

_INDEX = r"(?:\[[^\]&=]*\]|%5B[^%&=]*%5D)?"  # apikey[], as some clients write it
_GIVEN = re.compile(rf"(apikey{_INDEX}(?:=|%3D|\\u003d))[^&\s\"'<>\\#)]+", re.IGNORECASE)
_FIELD = re.compile(r'("apikey"\s*:\s*")(?:[^"\\]|\\.)*', re.IGNORECASE)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BETWEEN_STRINGS = frozenset("0123456789+-.eE,:[]{} \t\r\n" + "true" + "false" + "null")


class Redaction:
    """Redaction of `secrets`. Its repr shows none of them."""

    __slots__ = ("_spellings",)

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
        self._spellings = tuple(sorted(spellings, key=lambda each: (-len(each), each)))

    def __repr__(self) -> str:
        return f"Redaction({len(self._spellings)} hidden)"

    def text(self, text: str) -> str:
        """Redact a text."""
        there = self._there(text)
        hidden = _any_of(there).sub(HIDDEN, text) if there else text
        return _GIVEN.sub(rf"\1{HIDDEN}", hidden)

    def json(self, value: Any) -> Any:
        """Redact the names and texts of a JSON value. Numbers are not keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self._field(name, below) for name, below in value.items()}
        return [self.json(each) for each in value] if isinstance(value, list | tuple) else value

    def body(self, body: bytes) -> bytes:
        """Redact a response body; JSON remains valid, with the same numbers."""
        text = body.decode("utf-8", "surrogateescape")
        if text.lstrip()[:1] in ("{", "["):
            there = self._there(text)
            # The usual case, in one substitution: a substitution in each string takes longer.
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
        """Return the spellings that occur in a text. Few do, and substring searches are faster than one large
        pattern.
        """
        return [each for each in self._spellings if each in text]


def _any_of(spellings: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_pattern, spellings)))


def _only_within_strings(spelling: str) -> bool:
    """Return true if a spelling can occur in JSON only within a string, so that substituting it cannot damage a
    number.
    """
    return '"' not in spelling and not _BETWEEN_STRINGS.issuperset(spelling)


def _spellings(secret: str) -> set[str]:
    """Return the spellings of a key: plain, percent-encoded, and escaped in JSON."""
    escaped = json.dumps(secret)[1:-1]
    found = {secret, quote(secret, safe=""), quote_plus(secret), escaped, escaped.replace("/", "\\/")}
    return found | {re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), each) for each in found}


def _pattern(spelling: str) -> str:
    exact = re.escape(spelling)
    # A short key would be found within ordinary words and numbers.
    return exact if len(spelling) >= WHOLE_WORD else rf"(?<![A-Za-z0-9]){exact}(?![A-Za-z0-9])"


TEXT_MAX, PATH_MAX, ENTRIES_MAX, DEPTH_MAX = 500, 300, 20, 6
CUT = "…"


class Trimming:
    """Truncation of values for display. `redact` removes keys from a text."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    def difference(self, difference: Difference) -> Difference:
        """Redact and truncate a difference."""
        return msgspec.structs.replace(
            difference,
            path=self.text(difference.path, PATH_MAX),
            place=self.text(difference.place, PATH_MAX),
            baseline=self.value(difference.baseline),
            candidate=self.value(difference.candidate),
            message=self.text(difference.message, PATH_MAX),
        )

    def value(self, value: Any, depth: int = 0) -> Any:
        """Truncate the texts, lists and objects of a JSON value."""
        if isinstance(value, str):
            return self.text(value, TEXT_MAX)
        if isinstance(value, list | dict) and value and depth >= DEPTH_MAX:
            return CUT
        if isinstance(value, list):
            kept = [self.value(each, depth + 1) for each in value[:ENTRIES_MAX]]
            return [*kept, CUT] if len(value) > ENTRIES_MAX else kept
        if isinstance(value, dict):
            return self._object(value, depth)
        return value

    def text(self, text: str, longest: int) -> str:
        """Redact a text, replace lone surrogates, and truncate it. In this order: a truncated key would not be
        recognised.
        """
        whole = self._redact(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return whole if len(whole) <= longest else whole[: longest - 1] + CUT

    def _object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        first = list(value.items())[:ENTRIES_MAX]
        kept = {self.text(name, PATH_MAX): self.value(each, depth + 1) for name, each in first}
        return {**kept, CUT: CUT} if len(value) > ENTRIES_MAX else kept


_LARGE = 1 << 63


def redact_comparison(comparison: Comparison, redaction: Redaction) -> Comparison:
    """Redact the request of a comparison, and make its values serialisable."""
    return msgspec.structs.replace(
        comparison,
        request=redact_request(comparison.request, redaction),
        findings=tuple(map(_finding, comparison.findings)),
        moved=tuple(map(_finding, comparison.moved)),
        unknown_uids=tuple(map(_finding, comparison.unknown_uids)),
    )


def redact_request(request: V3Request, redaction: Redaction) -> V3Request:
    """Redact a request: clients may put a key into a parameter of another name."""
    query = tuple((redaction.text(name), redaction.text(value)) for name, value in request.query)
    return msgspec.structs.replace(request, path=redaction.text(request.path), query=query)


def _finding(finding: Finding) -> Finding:
    found = finding.difference
    made = msgspec.structs.replace(found, baseline=_writable(found.baseline), candidate=_writable(found.candidate))
    return Finding(made, finding.cause)


def _writable(value: Any) -> Any:
    """Convert integers beyond 64 bits, which the JSON encoder rejects, to Decimal."""
    if isinstance(value, dict):
        return {name: _writable(below) for name, below in value.items()}
    if isinstance(value, list):
        return [_writable(each) for each in value]
    return Decimal(value) if type(value) is int and abs(value) >= _LARGE else value
