"""Redaction of API keys and other secrets: in pages, the store, the log, traces, reports and recordings alike.

Hidden are known secrets wherever they occur, what follows `apikey` or is given as `token=`, and words that are API keys
by their digests; in request targets also credentials for prices of the caller's own. Texts are compared after
percent-encoding and JSON escapes have been undone, so that every spelling is found, also one that was encoded twice.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from string import hexdigits
from typing import Any, NamedTuple

from proxy.v3 import parameters

HIDDEN = "…"
WHOLE_WORD = 8  # characters; a shorter secret is hidden as a word only, because it occurs in other words by chance
WORD_MIN = 4  # characters of a word that may be an API key; a shorter one is no secret
WORDS_MAX = 65_536  # characters of a text in which words are looked up; a request has fewer
LAYERS_MAX = 4  # encodings of encodings that are undone

_ESCAPE = re.compile(
    rb"%(?:25)*([0-9A-Fa-f]{2})"
    rb"|(?<!\\)\\+(?:u([Dd][89ABab][0-9A-Fa-f]{2})\\+u([Dd][C-Fc-f][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|([^\\u]))"
)
_OCTETS = {(high + low).encode(): bytes((int(high + low, 16),)) for high in hexdigits for low in hexdigits}
_SPACES = {b"b": b" ", b"f": b" ", b"n": b" ", b"r": b" ", b"t": b" "}  # JSON's escapes of control characters
_NAME = re.compile(rb"api[-_]?key", re.IGNORECASE)
# `apikey=KEY`, also as `api_key: "KEY"`, `apikey[0]=KEY` and `/apikey/KEY`.
_SEPARATOR = rb"[\w\[\]-]{0,32}[\"'\s]{0,3}[=:/]{1,3}[\"'\s]{0,3}"
_SEPARATED = _NAME.pattern + _SEPARATOR
# GraphQL clients send keys as `token`; in a text that is an ordinary word, unless a parameter has this name.
_TOKEN = rb"(?<![A-Za-z0-9])token"
_TOKEN_PARAMETER = _TOKEN + rb"(?:\[[\w-]*\])?="
# Fields of SupApiCredentials (contract graphql.md §1.3), besides `apiKey`.
_CREDENTIALS = rb"(?:client[-_]?(?:id|secret)|username|password)"
_NAMED = re.compile(rb"%b|%b" % (_NAME.pattern, _TOKEN_PARAMETER), re.IGNORECASE)


class _Named(NamedTuple):
    """What follows `apikey` or another such name, and a value up to a delimiter."""

    pattern: re.Pattern[bytes]
    value: re.Pattern[bytes]


_IN_TEXT = _Named(
    re.compile(rb"(?:%b|%b)(?P<value>[^&\s\"'<>\\#)]*)" % (_SEPARATED, _TOKEN_PARAMETER), re.IGNORECASE),
    re.compile(rb"[^&\s\"'<>\\#)]*"),
)
# In a request target it is no word of a sentence: whatever follows is a key.
_IN_TARGET = _Named(
    re.compile(
        rb"(?:%b|%b|%b)%b(?P<value>[^&\s\"]*)|%b\s*(?P<rest>[^&\s\"]*)"
        % (_NAME.pattern, _TOKEN, _CREDENTIALS, _SEPARATOR, _NAME.pattern),
        re.IGNORECASE,
    ),
    re.compile(rb"[^&\s\"]*"),
)
# Words at every granularity at which an API key may be one: a key may itself have punctuation.
_WORDS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\S+",
        r"(?<=[/\"])[^\s{}\[\],:/&?]+(?=[/\"?&]|$)",
        r"(?<=\[)[^\[\]]+(?=\])",
        r"(?<=[=:])[^\s&]+",
        r"[^\s\"'<>&;,(){}\[\]=:/?#@|]+",
        r"[\w-]+",
        r"[^\W_]+",
        r"[\w+/-]+={0,2}",  # Base64 (RFC 4648)
        r"(?<=/)[\w+/-]+={0,2}",
    )
)
_AROUND = "'\"`()<>[]{}.,;:!?"  # what a sentence puts around a word
_FIELD = re.compile(rb'("apikey"\s*:\s*")(?:[^"\\]|\\.)*', re.IGNORECASE)  # of a JSON object
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
# Of an absolute target (RFC 9112 §3.2.2); it may hold a name and a password.
_ORIGIN = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*")

IsKey = Callable[[str], bool]


class Redaction:
    """Redaction of `secrets`, of texts that `is_key`, and of what is named as a key. Its repr shows none of them."""

    __slots__ = ("_is_key", "_secrets")

    def __init__(self, secrets: Iterable[str] = (), is_key: IsKey | None = None) -> None:
        self._secrets = frozenset(plain for secret in secrets for plain in _spellings(secret))
        self._is_key = is_key

    def __repr__(self) -> str:
        return f"Redaction({len(self._secrets)} hidden)"

    def text(self, text: str) -> str:
        """Redact a text."""
        plain = _Plain(_encoded(text))
        return _decoded(self.hiding(self._known(text, plain))._hide(plain))

    def request(self, target: str, user_agent: str, length: int) -> tuple[str, str]:
        """Return the target and the User-Agent of a request for people: as sent, without API keys. Of the target path
        and query, cut at so many characters."""
        target = _ORIGIN.sub("", target)
        plain = _Plain(_encoded(target))
        given = _given(plain)
        redaction = self.hiding(given | self._known(target, plain))
        shown = _decoded(redaction._hide(plain, _IN_TARGET))
        return parameters.printable(shown)[:length], self.hiding(given).text(user_agent)

    def body(self, body: bytes) -> bytes:
        """Redact a body: JSON remains valid, with the same numbers. Only what was given as a secret is looked up: a
        body has too many words."""
        plain = _Plain(body)
        if body.lstrip()[:1] not in (b"{", b"["):
            return self._hide(plain)
        if not self._may_hold_any(plain.text):
            return body
        return _STRING.sub(self._hidden_string, _FIELD.sub(rb"\1" + HIDDEN.encode(), body))

    def _hidden_string(self, string: re.Match[bytes]) -> bytes:
        text = string[1]
        # Most strings of a body have neither an escape nor a secret.
        if b"%" not in text and b"\\" not in text and not self._may_hold_any(text):
            return string[0]
        return b'"%b"' % self._hide(_Plain(text))

    def _may_hold_any(self, plain: bytes) -> bool:
        return _NAMED.search(plain) is not None or any(secret in plain for secret in self._secrets)

    def keys(self, target: str) -> set[str]:
        """Return the API keys in a request target: those given as such, and those that are known."""
        plain = _Plain(_encoded(target))
        return _given(plain) | self._known(target, plain)

    def is_key(self, text: str) -> bool:
        """Return whether a text is an API key."""
        return self._is_key is not None and self._is_key(text)

    def including(self, target: str) -> "Redaction":
        """Return a redaction that also hides the API keys in a request target wherever they occur."""
        return self.hiding(self.keys(target))

    def _known(self, text: str, plain: "_Plain") -> set[str]:
        """Return the values and words of a text that are API keys."""
        is_key = self._is_key
        return set() if is_key is None else {each for each in set(_candidates(text, plain)) if is_key(each)}

    def _hide(self, plain: "_Plain", named: _Named = _IN_TEXT) -> bytes:
        """Redact a text without looking up its words."""
        spans = _named(plain, named)
        for secret in self._secrets:
            if secret in plain.text:
                spans += [(plain.place(m.start()), plain.place(m.end())) for m in _occurrences(secret, plain.text)]
        return _replaced(plain.source, spans) if spans else plain.source

    def hiding(self, secrets: Collection[str]) -> "Redaction":
        """Return a redaction that hides these secrets, too."""
        if not secrets:
            return self
        more = Redaction(secrets, self._is_key)
        more._secrets |= self._secrets
        return more


class _Layer(NamedTuple):
    """Places behind what one decoding has changed in a text, and the same places before it."""

    after: list[int]
    before: list[int]

    def place(self, position: int) -> int:
        at = bisect_right(self.after, position) - 1
        return self.before[at] + position - self.after[at]


class _Plain:
    """Text without escapes, in UTF-8, and the place of each of its characters in its source."""

    __slots__ = ("_layers", "source", "text")

    def __init__(self, text: bytes) -> None:
        self.source = text
        self._layers: list[_Layer] = []
        while len(self._layers) < LAYERS_MAX and (b"%" in text or b"\\" in text):
            decoded, layer = _unescaped(text)
            if decoded == text:
                break
            text = decoded
            self._layers.append(layer)
        self.text = text

    def place(self, position: int) -> int:
        """Return the place of a character, or of the end."""
        for layer in reversed(self._layers):
            position = layer.place(position)
        return position


def _unescaped(text: bytes) -> tuple[bytes, _Layer]:
    pieces: list[bytes] = []
    layer, length, end = _Layer([0], [0]), 0, 0
    for escape in _ESCAPE.finditer(text):
        octet, high, low, code, character = escape.groups()
        if octet is not None:
            decoded = _OCTETS[octet]
        elif character is not None:
            decoded = _SPACES.get(character, character)
        else:
            decoded = bytes.fromhex((code or high + low).decode()).decode("utf-16-be", "replace").encode()
        before = text[end : escape.start()]
        end = escape.end()
        length += len(before) + len(decoded)
        layer.after.append(length)
        layer.before.append(end)
        pieces += (before, decoded)
    return b"".join((*pieces, text[end:])), layer


def given(target: str) -> set[str]:
    """Return what a request target gives as an API key or another secret by its name, known or not."""
    return _given(_Plain(_encoded(target)))


def _given(plain: _Plain) -> set[str]:
    sent = {parameters.decoded(_decoded(plain.source[begin:end])) for begin, end in _named(plain, _IN_TARGET)}
    # Also what is before a delimiter that is not the service's.
    return {each for whole in sent for each in (whole, re.split("[;,/]", whole)[0]) if each}


def _named(plain: _Plain, named: _Named) -> list[tuple[int, int]]:
    """Return where values follow names. A value ends at a delimiter that is not encoded itself: a key may have one
    that is. One in the path of a target ends with it."""
    spans: list[tuple[int, int]] = []
    path_end = plain.source.find(b"?") if named is _IN_TARGET else -1
    for match in named.pattern.finditer(plain.text):
        begin, end = (plain.place(place) for place in match.span(match.lastgroup or 0))
        if spans and begin < spans[-1][1]:
            continue
        literal = named.value.match(plain.source, begin)
        end = max(end, literal.end() if literal else end)
        end = min(end, path_end) if begin < path_end else end
        if begin < end:
            spans.append((begin, end))
    return spans


def _occurrences(secret: bytes, text: bytes) -> Iterator[re.Match[bytes]]:
    exact = re.escape(secret)
    if len(secret) < WHOLE_WORD:
        exact = rb"(?<![A-Za-z0-9])%b(?![A-Za-z0-9])" % exact
    return re.finditer(exact, text)


def _replaced(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    pieces: list[bytes] = []
    end = 0
    for begin, until in sorted(spans):
        if begin >= end:
            pieces += (data[end:begin], HIDDEN.encode())
        end = max(end, until)
    return b"".join((*pieces, data[end:]))


def _spellings(secret: str) -> set[bytes]:
    """Return a secret as it is in plain text, also of a form, which sends a space as `+`."""
    plain = _Plain(_encoded(secret)).text
    return {plain, plain.replace(b" ", b"+")} - {b""}


def _candidates(text: str, plain: _Plain) -> Iterator[str]:
    """Yield what may be an API key: parameters, segments of the path, strings of JSON in them, and words."""
    text = text[:WORDS_MAX]
    for pair in re.split("[?&]", text):
        for piece in chain(pair.partition("=")[::2], pair.split("/")):
            value = parameters.decoded(piece)
            strings = _strings(value) if value[:1] in ("{", "[") else (value,)
            for string in strings:
                for spelling in (string, parameters.decoded(string)) if "%" in string else (string,):
                    yield spelling
                    for word in spelling.split():
                        yield from (word, word.strip(_AROUND))
    words = plain.text[:WORDS_MAX].decode("utf-8", "replace")
    stripped = (word.strip(_AROUND) for word in words.split())
    yield from (word for word in stripped if len(word) >= WORD_MIN)
    for pattern in _WORDS:
        yield from (word for word in pattern.findall(words) if len(word) >= WORD_MIN)


def _strings(text: str) -> Iterator[str]:
    """Yield the strings of a JSON value; nothing of a text that is none."""
    try:
        left: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left += (*value, *value.values())
        elif isinstance(value, list):
            left += value


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
