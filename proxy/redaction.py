"""Redaction of API keys and other secrets: in pages, the store, the log, reports and recordings alike.

Hidden are known secrets, what is named as a key or token, and words that are API keys by their digests. Texts are
searched as they are, and with percent-encoding and JSON escapes undone, also twice; one with a secret in such a
spelling only is shown decoded.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable
from itertools import chain

from proxy.v3 import encoding

HIDDEN = "…"
WHOLE_WORD = 8  # characters; a shorter secret is hidden as a word only, because it occurs in other words by chance
WORD_MIN = 4  # characters of a word that may be an API key; a shorter one is no secret
WORDS_MAX = 65_536  # characters of a text in which words are looked up; a request has fewer
LAYERS_MAX = 4  # encodings of encodings that are undone

# Escapes of JSON, also of JSON within JSON.
_ESCAPE = re.compile(
    r"(?<!\\)\\+(?:u([Dd][89ABab][0-9A-Fa-f]{2})\\+u([Dd][C-Fc-f][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|([^\\u]))"
)
_NAME = r"api[-_]?key"
# `apikey=KEY`, also as `api_key: "KEY"`, `apikey[0]=KEY` and `/apikey/KEY`.
_SEPARATOR = r"[\w\[\]-]{0,32}[\"'\s]{0,3}[=:/]{1,3}[\"'\s]{0,3}"
# GraphQL clients send keys as `token`; in a text that is an ordinary word, unless a parameter has this name.
_TOKEN = r"(?<![A-Za-z0-9])token"  # noqa: S105 - a name
_TOKEN_PARAMETER = rf"{_TOKEN}(?:\[[\w-]*\])?="
# Fields of SupApiCredentials (contract graphql.md §1.3), besides `apiKey`.
_CREDENTIALS = r"(?:client[-_]?(?:id|secret)|username|password)"
_IN_TEXT = rf"(?P<name>{_NAME}{_SEPARATOR}|{_TOKEN_PARAMETER})"
_VALUE = re.compile(_IN_TEXT + r"[^&\s\"'<>\\#)]+", re.IGNORECASE | re.ASCII)
# Behind an escape that has been undone: a key may itself have had an encoded delimiter.
_LONG_VALUE = re.compile(_IN_TEXT + rf"(?!{HIDDEN}(?:[&\s\"'<>\\#)]|$)|&)[^\s\"]+", re.IGNORECASE | re.ASCII)
# In a request target it is no word of a sentence: whatever follows is a key.
_IN_TARGET = re.compile(
    rf"(?:{_NAME}|{_TOKEN}|{_CREDENTIALS}){_SEPARATOR}(?P<value>[^&\s\"]*)(?P<long>[^\s\"]*)"
    rf"|{_NAME}\s*(?P<rest>[^&\s\"]*)",
    re.IGNORECASE | re.ASCII,
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
_FIELD = re.compile(r'("apikey"\s*:\s*")(?:[^"\\]|\\.)*', re.IGNORECASE | re.ASCII)  # of a JSON object
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)

IsKey = Callable[[str], bool]
_NONE: IsKey = frozenset[str]().__contains__  # where there are no API keys


class Redaction:
    """Redaction of `secrets`, of texts that `is_key`, and of what is named as a key."""

    def __init__(self, secrets: Iterable[str] = (), is_key: IsKey | None = None) -> None:
        plain = {_layers(secret)[-1] for secret in secrets}
        # A form sends a space as `+`.
        self._secrets = frozenset(plain | {each.replace(" ", "+") for each in plain}) - {""}
        self.is_key = is_key or _NONE

    def text(self, text: str) -> str:
        text = _unicode(text)
        return self.hiding(self._known(text))._hide(text)

    def body(self, body: bytes) -> bytes:
        """Redact a body, whose JSON remains valid. Only given secrets are looked up: it has too many words."""
        text = body.decode("utf-8", "surrogateescape")
        plain = _layers(text)[-1]
        if text.lstrip()[:1] not in ("{", "["):
            text = self._hide(text)
        elif _VALUE.search(plain) or any(secret in plain for secret in self._secrets):
            text = _STRING.sub(self._hidden_string, _FIELD.sub(rf"\1{HIDDEN}", text))
        return text.encode("utf-8", "surrogateescape")

    def including(self, target: str) -> "Redaction":
        """Return a redaction that also hides the API keys that a request target gives or has, wherever they occur."""
        return self.hiding(given(target) | self._known(_unicode(target)))

    def hiding(self, secrets: Collection[str]) -> "Redaction":
        """Return a redaction that hides these secrets, too."""
        if not secrets:
            return self
        more = Redaction(secrets, self.is_key)
        more._secrets |= self._secrets
        return more

    def _known(self, text: str) -> set[str]:
        """Return the API keys of a text: parameters, segments of a path, strings of JSON, words; also of a form."""
        if self.is_key is _NONE:
            return set()
        text, found = text[:WORDS_MAX], set[str]()
        for spelling in {text, text.replace("+", " ")}:
            layers = _layers(spelling)
            values = chain(re.split("[?&/=]", spelling), *map(_STRING.findall, layers))
            found.update(_layers(each)[-1] for each in values)
            plain = layers[-1]
            words = chain(*(each.findall(plain) for each in _WORDS), (word.strip(_AROUND) for word in plain.split()))
            found.update(word for word in words if len(word) >= WORD_MIN)
        return {each for each in found if self.is_key(each)}

    def _hidden_string(self, string: re.Match[str]) -> str:
        hidden = self._hide(string[1])
        if hidden == string[1]:
            return string[0]
        try:
            json.loads(f'"{hidden}"')
        except ValueError:  # it is shown decoded
            return json.dumps(hidden, ensure_ascii=False)
        return f'"{hidden}"'

    def _hide(self, text: str) -> str:
        """Redact a text without looking up its words."""
        shown, plain = self._replaced(text, _VALUE), _layers(text)[-1]
        if _layers(shown)[-1] == self._replaced(plain, _VALUE):
            return shown
        return self._replaced(plain, _LONG_VALUE)

    def _replaced(self, text: str, named: re.Pattern[str]) -> str:
        # The longest first, so that none is hidden only in part.
        for secret in sorted((secret for secret in self._secrets if secret in text), key=len, reverse=True):
            around = ("", "") if len(secret) >= WHOLE_WORD else ("(?<![A-Za-z0-9])", "(?![A-Za-z0-9])")
            text = re.sub(re.escape(secret).join(around), HIDDEN, text)
        return named.sub(rf"\g<name>{HIDDEN}", text)


def given(target: str) -> set[str]:
    """Return what a request target gives as an API key or another secret by its name, known or not."""
    found: set[str] = set()
    for depth, layer in enumerate(_layers(_unicode(target))):
        for match in _IN_TARGET.finditer(layer):
            value = encoding.decoded(match["value"] or match["rest"] or "")
            if depth and value not in found:  # behind an escape: a key may itself have an encoded delimiter
                found.add(value + encoding.decoded(match["long"] or ""))
            # Also what is before a delimiter that is not the service's.
            found |= {value, re.split("[;,/]", value)[0]}
    return found - {""}


def _unicode(text: str) -> str:
    """Return a text without the surrogates that stand for bytes which are no UTF-8."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _layers(text: str) -> list[str]:
    """Return a text, and what it is with its escapes undone once and more often."""
    layers = [text]
    while len(layers) <= LAYERS_MAX and ("%" in layers[-1] or "\\" in layers[-1]):
        layers.append(_ESCAPE.sub(_character, encoding.decoded(layers[-1].replace("+", "%2B"))))
    return layers


def _character(escape: re.Match[str]) -> str:
    high, low, code, character = escape.groups()
    if character is not None:
        return " " if character in "bfnrt" else character
    return bytes.fromhex(code or high + low).decode("utf-16-be", "replace")
