"""Requests of curl commands, as people and browsers write them: -G with --data-urlencode, quotes, joined options."""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

# Options of curl that take a value; all others are flags (curl.se/docs/manpage.html).
_LONG = frozenset(
    """
    abstract-unix-socket aws-sigv4 cacert capath cert cert-type ciphers config connect-timeout connect-to cookie
    cookie-jar data data-ascii data-binary data-raw data-urlencode doh-url dump-header form header interface json
    keepalive-time key key-type limit-rate local-port max-filesize max-redirs max-time netrc-file noproxy output
    output-dir pass pinnedpubkey proxy proxy-header proxy-user range rate referer request request-target resolve retry
    retry-delay retry-max-time socks5 socks5-hostname speed-limit speed-time stderr time-cond tls-max trace
    trace-ascii unix-socket upload-file url url-query user user-agent variable write-out
    """.split()  # noqa: SIM905 - as curl's manual lists them
)
_SHORT = {
    "A": "user-agent",
    "b": "cookie",
    "c": "cookie-jar",
    "d": "data",
    "D": "dump-header",
    "e": "referer",
    "E": "cert",
    "F": "form",
    "H": "header",
    "K": "config",
    "m": "max-time",
    "o": "output",
    "r": "range",
    "T": "upload-file",
    "u": "user",
    "U": "proxy-user",
    "w": "write-out",
    "x": "proxy",
    "X": "request",
    "y": "speed-time",
    "Y": "speed-limit",
    "z": "time-cond",
}
_FLAGS = {"G": "get", "I": "head"}  # the short flags that matter here
_READS_FILE = "the curl command reads its data from a file: write the content into the command"
_NEXT_COMMAND = frozenset({"|", "||", "&&", "&", ";"})
_REDIRECTION = re.compile(r"\d?(?:>>?|<)(.*)", re.DOTALL)
_GLOB_ESCAPE = re.compile(r"\\([\[\]{}])")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'")
_ANSI_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ANSI_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}


class CurlRequest(NamedTuple):
    """Method and URL of a request."""

    method: str
    url: str


def is_curl(text: str) -> bool:
    return re.match(r"\s*(?:\$\s+)?curl(?:\.exe)?\s", text) is not None


def parse(text: str) -> list[CurlRequest]:
    """Return the requests of one curl command, one for each URL. Raises ValueError, which quotes nothing of it."""
    one_line = re.sub(r"\\\r?\n", " ", _unescaped(text.strip().removeprefix("$")))
    try:
        words = shlex.split(_ANSI.sub(_plain, one_line))
    except ValueError:
        raise ValueError("a quote of the curl command is not closed") from None
    command = _Command()
    command.read(words[1:])
    if not command.urls:
        raise ValueError("the curl command has no URL")
    return [CurlRequest(command.used_method(), command.with_query(url)) for url in command.urls]


class _Command:
    """Words of a command, read from left to right."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self._data: list[str] = []
        self._query: list[str] = []
        self._flags: set[str] = set()
        self._method: str | None = None

    def read(self, words: list[str]) -> None:
        """Read all words, up to the next command of a line."""
        left = iter(words)
        for word in left:
            if word in _NEXT_COMMAND:
                return
            redirection = _REDIRECTION.fullmatch(word)
            if redirection and not redirection[1]:
                next(left, None)  # the file
            if redirection:
                continue
            if word == "--" or not word.startswith("-") or word == "-":
                self.urls += [] if word == "--" else [word]
            elif word.startswith("--"):
                self._option(word[2:], None, left)
            else:
                self._joined(word[1:], left)

    def used_method(self) -> str:
        """Return the method that curl sends."""
        if self._method:
            return self._method.upper()
        if "head" in self._flags:
            return "HEAD"
        return "POST" if self._data and "get" not in self._flags else "GET"

    def with_query(self, url: str) -> str:
        """Return a URL with the data that curl appends to it. Without -g brackets and braces are escaped for curl."""
        if not self._flags & {"g", "globoff"}:
            url = _GLOB_ESCAPE.sub(r"\1", url)
        data = [*(self._data if "get" in self._flags else []), *self._query]
        if not data:
            return url
        return f"{url}{'&' if '?' in url else '?'}{'&'.join(data)}"

    def _joined(self, letters: str, left: Iterator[str]) -> None:
        """Read short options that may be joined, such as -sG and -XGET."""
        for number, letter in enumerate(letters):
            if letter in _SHORT:
                self._option(_SHORT[letter], letters[number + 1 :] or None, left)
                return
            self._flags.add(_FLAGS.get(letter, letter))

    def _option(self, name: str, value: str | None, left: Iterator[str]) -> None:
        if name not in _LONG and value is None:
            self._flags.add(name)
            return
        if value is None:
            value = next(left, None)
        if value is None:
            raise ValueError(f"--{name} of the curl command has no value")
        if name == "url":
            self.urls.append(value)
        elif name == "request":
            self._method = value
        elif name == "url-query":
            self._query.append(_urlencoded(value))
        elif name == "data-urlencode":
            self._data.append(_urlencoded(value))
        elif name in ("data", "data-ascii", "data-binary", "data-raw", "json"):
            self._data.append(_text(value, name))


def _urlencoded(value: str) -> str:
    """Return the data of --data-urlencode: `content`, `=content` or `name=content`; `+content` is encoded already."""
    if value.startswith("+"):
        return value[1:]
    name, equals, content = value.partition("=")
    if not equals and "@" in value:
        raise ValueError(_READS_FILE)
    if not equals:
        return quote_plus(value)
    return f"{name}={quote(content, safe='')}" if name else quote(content, safe="")


def _text(value: str, option: str) -> str:
    if value.startswith("@") and option != "data-raw":
        raise ValueError(_READS_FILE)
    return value


def _unescaped(text: str) -> str:
    """Return a command that a browser copied for the Windows command line without its escapes, which are `^`."""
    return re.sub(r"\^\r?\n", " ", re.sub(r"\^([^\r\n])", r"\1", text)) if '^"' in text else text


def _plain(match: re.Match[str]) -> str:
    """Return a $'…' text of the shell, as browsers copy it, in plain quotes."""
    return shlex.quote(_ANSI_ESCAPE.sub(_character, match[1]))


def _character(match: re.Match[str]) -> str:
    if match[1] or match[2]:
        return chr(int(match[1] or match[2], 16))
    return _ANSI_CONTROLS.get(match[3], match[3])
