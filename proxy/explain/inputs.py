"""Input of an explanation: a URL, a path, a request line, a curl command, a HAR entry, or a file of requests.

Error messages quote nothing of an input: it may hold API keys.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proxy import errors
from proxy.explain import curl
from proxy.traffic.sources import entries
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.v3.parsing import path_suggestions

TEXT_BYTES_MAX = 1_048_576  # a saved command or HAR entry is smaller
HAR_BYTES_MAX = 1_073_741_824  # a HAR file is read as a whole
_VARIABLE = re.compile(r"\$\{?\w+\}?")  # a shell variable instead of a key, as in documentation
_HAR_START = re.compile(r'\s*\{\s*"log"\s*:')
_HOST = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#]*")
_NO_REQUEST = (
    "the input is neither a request nor a file: give a URL, a path such as /v3/parts/match?queries=…, a curl command, "
    "a HAR entry, or a file of requests"
)


class InputRequest(NamedTuple):
    """One request of an input. `path` is that of a request that is not v3's; then there is no `request`."""

    method: str
    request: V3Request | None
    apikey: str | None = None
    path: str = ""

    def __repr__(self) -> str:
        return f"InputRequest({self.method}, key hidden)"


def is_file(text: str) -> bool:
    """Return whether an input names a file: none of the other forms can be the name of an existing one."""
    try:
        return "\n" not in text and len(text) < 4096 and Path(text).is_file()
    except (OSError, ValueError):
        return False


def text_of_file(path: Path) -> str | None:
    """Return the content of a small file, which may be a saved curl command or HAR entry; None for a larger file."""
    with path.open("rb") as stream:
        content = stream.read(TEXT_BYTES_MAX + 1)
    return content.decode("utf-8", "surrogateescape") if len(content) <= TEXT_BYTES_MAX else None


def read_text(text: str, origin: str = "") -> list[InputRequest]:
    """Read the requests of an input that is no file. Raises SourceError."""
    stripped = text.strip().removeprefix("\ufeff")
    if not stripped:
        raise errors.SourceError("there is nothing to explain")
    try:
        if curl.is_curl(stripped):
            return [_request(each.method, each.url, origin) for each in curl.parse(stripped)]
        if stripped.startswith(("{", "[")):
            return list(_har_requests(stripped.encode("utf-8", "surrogateescape"), origin))
    except ValueError as error:
        raise errors.SourceError(str(error)) from None
    if "\n" in stripped:
        raise errors.SourceError("the input has several lines, but is neither a curl command nor a HAR entry")
    # The shell removes quotes, but not those in a file or a pipe.
    method, target = entries.request_line(stripped.strip("\"'<>"))
    return [_request(method, target, origin)]


def read_har(path: Path) -> list[InputRequest] | None:
    """Read a HAR file; None for a file that is none. Unlike the reader of comparisons it needs no further package."""
    with path.open("rb") as stream:
        if not _HAR_START.match(stream.read(256).decode("utf-8", "replace").removeprefix("\ufeff")):
            return None
        stream.seek(0)
        content = stream.read(HAR_BYTES_MAX).removeprefix(b"\xef\xbb\xbf")
    try:
        return list(_har_requests(content, path.name))
    except ValueError as error:
        raise errors.SourceError(f"{path}: {error}") from None


class _HarRequest(msgspec.Struct):
    url: str
    method: str = "GET"


class _HarEntry(msgspec.Struct):
    request: _HarRequest


class _HarLog(msgspec.Struct):
    entries: list[_HarEntry]


class _Har(msgspec.Struct):
    """HAR file, entry, or the request of an entry: one of the fields is there. Others are skipped, not decoded."""

    log: _HarLog | None = None
    request: _HarRequest | None = None
    url: str | None = None
    method: str = "GET"


def _har_requests(content: bytes, origin: str) -> Iterator[InputRequest]:
    """Yield the requests of a HAR file, of an entry, or of several. Raises ValueError."""
    try:
        decoded: Any = msgspec.json.decode(content, type=_Har | list[_Har])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("the JSON is no HAR entry with a request and its url, or is cut") from None
    read = [each for har in (decoded if isinstance(decoded, list) else [decoded]) for each in _requests_of(har)]
    if not read:
        raise ValueError("the JSON is no HAR entry: it has no request with a url")
    for number, each in enumerate(read, 1):
        yield _request(each.method.upper(), each.url, f"{origin}:entry {number}" if origin else "")


def _requests_of(har: _Har) -> list[_HarRequest]:
    if har.log is not None:
        return [entry.request for entry in har.log.entries]
    if har.request is not None:
        return [har.request]
    return [] if har.url is None else [_HarRequest(har.url, har.method)]


def _request(method: str, target: str, origin: str) -> InputRequest:
    """Return a request; of a path that v3 never had, its path. Raises SourceError for a text that is no address."""
    try:
        path, query, apikey = parse_target(target)
    except ValueError:
        path = _path(target)
        return InputRequest(method, None, path=path)
    if apikey is not None and _VARIABLE.fullmatch(apikey):
        apikey = None
    return InputRequest(method, V3Request(path, query, origin=origin), apikey)


def _path(target: str) -> str:
    """Return the path of an address, for a suggestion. Raises SourceError for a text that may as well be the name of a
    file that is not there."""
    address, question_mark, _ = target.partition("?")
    path = _HOST.sub("", address)
    is_url = path != address or bool(question_mark)
    if not path.startswith("/") or not (is_url or path_suggestions.message(path) != path_suggestions.NO_PATH):
        raise errors.SourceError(_NO_REQUEST)
    return path
