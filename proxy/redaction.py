"""Redaction of API keys and other secrets: in pages, the store, the log, reports and recordings alike.

Hidden are known secrets wherever they occur, what follows `apikey` or is given as `token=`, and words that are API keys
by their digests; in request targets also credentials for prices of the caller's own. Texts are searched as they are,
and after percent-encoding and JSON escapes have been undone, also of what was encoded twice: every spelling is found. A
text that has a secret in an encoded spelling only is shown decoded.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from string import hexdigits

from proxy.v3 import parameters

HIDDEN = "…"
WHOLE_WORD = 8  # characters; a shorter secret is hidden as a word only, because it occurs in other words by chance
WORD_MIN = 4  # characters of a word that may be an API key; a shorter one is no secret
WORDS_MAX = 65_536  # characters of a text in which words are looked up; a request has fewer
LAYERS_MAX = 4  # encodings of encodings that are undone

_MARK = HIDDEN.encode()
_ESCAPE = re.compile(
    rb"%(?:25)*([0-9A-Fa-f]{2})"
    rb"|(?<!\\)\\+(?:u([Dd][89ABab][0-9A-Fa-f]{2})\\+u([Dd][C-Fc-f][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|([^\\u]))"
)
_OCTETS = {(high + low).encode(): bytes((int(high + low, 16),)) for high in hexdigits for low in hexdigits}
_SPACES = {b"b": b" ", b"f": b" ", b"n": b" ", b"r": b" ", b"t": b" "}  # JSON's escapes of control characters
_NAME = rb"api[-_]?key"
# `apikey=KEY`, also as `api_key: "KEY"`, `apikey[0]=KEY` and `/apikey/KEY`.
_SEPARATOR = rb"[\w\[\]-]{0,32}[\"'\s]{0,3}[=:/]{1,3}[\"'\s]{0,3}"
# GraphQL clients send keys as `token`; in a text that is an ordinary word, unless a parameter has this name.
_TOKEN = rb"(?<![A-Za-z0-9])token"
_TOKEN_PARAMETER = _TOKEN + rb"(?:\[[\w-]*\])?="
# Fields of SupApiCredentials (contract graphql.md §1.3), besides `apiKey`.
_CREDENTIALS = rb"(?:client[-_]?(?:id|secret)|username|password)"
_NAMED = re.compile(rb"%b|%b" % (_NAME, _TOKEN_PARAMETER), re.IGNORECASE)
_IN_TEXT = rb"(?P<name>%b%b|%b)" % (_NAME, _SEPARATOR, _TOKEN_PARAMETER)
_VALUE = re.compile(_IN_TEXT + rb"[^&\s\"'<>\\#)]+", re.IGNORECASE)
# Behind an escape that has been undone: a key may itself have had an encoded delimiter.
_LONG_VALUE = re.compile(_IN_TEXT + rb"(?!%b(?:[&\s\"'<>\\#)]|$)|&)[^\s\"]+" % _MARK, re.IGNORECASE)
# In a request target it is no word of a sentence: whatever follows is a key.
_IN_TARGET = re.compile(
    rb"(?:%b|%b|%b)%b(?P<value>[^&\s\"]*)(?P<long>[^\s\"]*)|%b\s*(?P<rest>[^&\s\"]*)"
    % (_NAME, _TOKEN, _CREDENTIALS, _SEPARATOR, _NAME),
    re.IGNORECASE,
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
        return self.hiding(self._known(text))._hide(_encoded(text)).decode("utf-8", "replace")

    def body(self, body: bytes) -> bytes:
        """Redact a body: JSON remains valid, with the same numbers. Only what was given as a secret is looked up: a
        body has too many words."""
        if body.lstrip()[:1] not in (b"{", b"["):
            return self._hide(body)
        if not self._may_hold_any(_layers(body)[-1]):
            return body
        return _STRING.sub(self._hidden_string, _FIELD.sub(rb"\1" + _MARK, body))

    def is_key(self, text: str) -> bool:
        """Return whether a text is an API key."""
        return self._is_key is not None and self._is_key(text)

    def including(self, target: str) -> "Redaction":
        """Return a redaction that also hides the API keys in a request target wherever they occur: those given as such,
        and those that are known."""
        return self.hiding(given(target) | self._known(target))

    def hiding(self, secrets: Collection[str]) -> "Redaction":
        """Return a redaction that hides these secrets, too."""
        if not secrets:
            return self
        more = Redaction(secrets, self._is_key)
        more._secrets |= self._secrets
        return more

    def _known(self, text: str) -> set[str]:
        """Return the values and words of a text that are API keys."""
        return set() if self._is_key is None else {each for each in set(_candidates(text)) if self._is_key(each)}

    def _hidden_string(self, string: re.Match[bytes]) -> bytes:
        text = string[1]
        # Most strings of a body have neither an escape nor a secret.
        if b"%" not in text and b"\\" not in text and not self._may_hold_any(text):
            return string[0]
        quoted = b'"%b"' % self._hide(text)
        try:
            json.loads(quoted)
        except ValueError:  # it is shown decoded
            return json.dumps(quoted[1:-1].decode("utf-8", "replace"), ensure_ascii=False).encode()
        return quoted

    def _may_hold_any(self, plain: bytes) -> bool:
        return _NAMED.search(plain) is not None or any(secret in plain for secret in self._secrets)

    def _hide(self, text: bytes) -> bytes:
        """Redact a text without looking up its words."""
        shown, plain = self._replaced(text, _VALUE), _layers(text)[-1]
        if _layers(shown)[-1] == self._replaced(plain, _VALUE):
            return shown
        return self._replaced(plain, _LONG_VALUE)

    def _replaced(self, text: bytes, named: re.Pattern[bytes]) -> bytes:
        """Hide what stands in a text as it is."""
        # The longest first, so that none is hidden only in part.
        for secret in sorted((secret for secret in self._secrets if secret in text), key=len, reverse=True):
            around = (b"", b"") if len(secret) >= WHOLE_WORD else (rb"(?<![A-Za-z0-9])", rb"(?![A-Za-z0-9])")
            text = re.sub(re.escape(secret).join(around), _MARK, text)
        return named.sub(rb"\g<name>" + _MARK, text)


def given(target: str) -> set[str]:
    """Return what a request target gives as an API key or another secret by its name, known or not."""
    found: set[str] = set()
    for depth, layer in enumerate(_layers(_encoded(target))):
        for match in _IN_TARGET.finditer(layer):
            value = _form(match["value"] or match["rest"] or b"")
            if depth and value not in found:  # behind an escape: a key may itself have an encoded delimiter
                found.add(value + _form(match["long"] or b""))
            # Also what is before a delimiter that is not the service's.
            found |= {value, re.split("[;,/]", value)[0]}
    return found - {""}


def _form(value: bytes) -> str:
    return parameters.decoded(value.decode("utf-8", "replace"))


def _layers(text: bytes) -> list[bytes]:
    """Return a text, and what it is with its escapes undone once and more often."""
    layers = [text]
    while len(layers) <= LAYERS_MAX and (decoded := _decoded(layers[-1])) != layers[-1]:
        layers.append(decoded)
    return layers


def _decoded(text: bytes) -> bytes:
    return _ESCAPE.sub(_character, text) if b"%" in text or b"\\" in text else text


def _character(escape: re.Match[bytes]) -> bytes:
    octet, high, low, code, character = escape.groups()
    if octet is not None:
        return _OCTETS[octet]
    if character is not None:
        return _SPACES.get(character, character)
    return bytes.fromhex((code or high + low).decode()).decode("utf-16-be", "replace").encode()


def _spellings(secret: str) -> set[bytes]:
    """Return a secret as it is in plain text, also of a form, which sends a space as `+`."""
    plain = _layers(_encoded(secret))[-1]
    return {plain, plain.replace(b" ", b"+")} - {b""}


def _candidates(text: str) -> Iterator[str]:
    """Yield what may be an API key: parameters and segments of the path, strings of JSON, and words; also of a form,
    which sends a space as `+`."""
    text = text[:WORDS_MAX]
    for spelling in {text, text.replace("+", " ")}:
        layers = _layers(_encoded(spelling))
        strings = chain(re.split(rb"[?&/=]", _encoded(spelling)), *map(_STRING.findall, layers))
        yield from (_layers(string)[-1].decode("utf-8", "replace") for string in strings)
        plain = layers[-1].decode("utf-8", "replace")
        words = chain(*(pattern.findall(plain) for pattern in _WORDS), (word.strip(_AROUND) for word in plain.split()))
        yield from (word for word in words if len(word) >= WORD_MIN)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
