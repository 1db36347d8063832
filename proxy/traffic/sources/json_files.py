"""JSON sources: lines written by log shippers and servers, recordings of v3bridge, and HAR.

Fields of a log line (nginx with escape=json, Caddy, Traefik, load balancers, ECS) have many names, which are compared
without case and punctuation; fields inside `request`, `http` and `url` are found, too. HAR is parsed incrementally:
responses are skipped, and of a truncated file everything before the truncation is used.
"""

import json
from collections.abc import Iterator
from io import BufferedReader
from typing import Any
from urllib.parse import urlencode

import msgspec

from proxy.traffic.sources import files, text_lines
from proxy.traffic.sources.entries import Item, RequestEntry, Unreadable, request_line
from proxy.traffic.v3_request import V3Request

TARGETS = (
    *("url", "requesturl", "urloriginal", "urlfull", "target", "requesttarget", "uri", "requesturi", "request"),
    *("requestline", "path", "requestpath", "urlpath", "rawpath"),
)
QUERIES = ("querystring", "args", "query", "urlquery", "rawquery", "rawquerystring", "requestquery", "params")
METHODS = ("method", "requestmethod", "httpmethod", "verb", "httprequestmethod")
TIMES = (
    *("timestamp", "time", "ts", "at", "datetime", "date", "timeiso8601", "timelocal", "msec", "starttime"),
    *("startutc", "starteddatetime", "requesttime", "created"),
)
AGENTS = ("useragent", "httpuseragent", "requestuseragent", "useragentoriginal", "agent")
_INSIDE = {"request", "req", "http", "httprequest", "url"}
_DEPTH = 3

NO_JSON = "is no JSON, or is cut"
NO_OBJECT = "is no JSON object"
NO_TARGET = "has no field such as url, request, target or path"


def read_json_lines(stream: BufferedReader) -> Iterator[Item]:
    for number, line in files.read_lines(stream, files.JSON_LINE):
        yield Unreadable(number, text_lines.LINE_TOO_LONG) if line is None else _line_entry(number, line)


def _line_entry(number: int, line: str) -> Item:
    try:
        value = parsed(line)
    except ValueError:
        return Unreadable(number, NO_JSON)
    if not isinstance(value, dict):
        return Unreadable(number, NO_OBJECT)
    fields = dict[str, Any]()
    _gather(value, "", fields, _DEPTH)
    request = _request_line_of(fields)
    if request is None:
        return Unreadable(number, NO_TARGET)
    method = _first(fields, METHODS) or request[0]
    at = next((at for name in TIMES if (at := text_lines.read_timestamp(fields.get(name))) is not None), None)
    target, key = _with_query(request[1], fields), _first(fields, ("apikey",))
    return RequestEntry(number, target, method.upper(), at, key, agent=_agent(fields))


def parsed(line: str) -> Any:
    """Parse any JSON, including lone surrogates and NaN. Raises ValueError."""
    try:
        try:
            return msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeEncodeError):  # lone surrogates, or NaN
            return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _gather(value: dict[str, Any], prefix: str, fields: dict[str, Any], depth: int) -> None:
    """Collect fields by name without case and punctuation; a nested field is also known by its short name, unless
    taken."""
    inner = []
    for key, content in value.items():
        name = "".join(filter(str.isalnum, key)).lower()
        if isinstance(content, dict) and name in _INSIDE and depth:
            inner.append((name, content))
        for known in (prefix + name, name):
            fields.setdefault(known, content)
    for name, content in inner:
        _gather(content, prefix + name, fields, depth - 1)


def _request_line_of(fields: dict[str, Any]) -> tuple[str, str] | None:
    """Return method and target; among several fields with a target, the first with a query."""
    texts = (fields.get(name) for name in TARGETS)
    lines = [request_line(text) for text in texts if isinstance(text, str) and text_lines.ADDRESS.match(text)]
    return next((each for each in lines if "?" in each[1]), lines[0] if lines else None)


def _with_query(target: str, fields: dict[str, Any]) -> str:
    """Append the query, which some logs store separately, as text or as an object."""
    if "?" in target:
        return target
    for name in QUERIES:
        value = fields.get(name)
        if isinstance(value, str) and "=" in value:
            return f"{target}?{value.removeprefix('?')}"
        if isinstance(value, dict) and value:
            return f"{target}?{urlencode(value, doseq=True, errors='replace')}"
    return target


def _agent(fields: dict[str, Any]) -> str | None:
    """Return the User-Agent, from a field of the line or from its headers."""
    headers = fields.get("headers")
    tally_text = dict(fields)
    if isinstance(headers, dict):
        first = {name: value[0] if isinstance(value, list) and value else value for name, value in headers.items()}
        _gather(first, "", tally_text, 0)
    return _first(tally_text, AGENTS)


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first non-empty text, with lone surrogates replaced by question marks."""
    text = next((value for name in names if isinstance(value := fields.get(name), str) and value), None)
    return None if text is None else text.encode("utf-8", "replace").decode()


RECORDING_HEADER = "v3bridge-recording"
RECORDING_VERSION = 1

NO_RECORDED_REQUEST = "is not a recorded request, or is cut"


class _RecordingLine(msgspec.Struct, rename={"version": RECORDING_HEADER, "request": "call"}):
    version: int | None = None
    request: V3Request | None = None
    # Tells lines without a request of the source from unreadable ones.
    lookup: msgspec.Raw = msgspec.Raw()


def read_recording(stream: BufferedReader) -> Iterator[Item]:
    decode = msgspec.json.Decoder(_RecordingLine).decode
    for number, line in files.read_lines(stream, files.JSON_LINE):
        try:
            found = decode(line or "")
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            yield Unreadable(number, text_lines.LINE_TOO_LONG if line is None else NO_RECORDED_REQUEST)
            continue
        if found.request is not None:
            yield _recorded_entry(number, found.request)
        elif found.version != RECORDING_VERSION and not bytes(found.lookup):
            yield Unreadable(
                number, NO_RECORDED_REQUEST if found.version is None else "is of another version of v3bridge"
            )


def _recorded_entry(number: int, request: V3Request) -> RequestEntry:
    return RequestEntry(number, request.url("/v3"), client=request.client, times=max(1, request.times))


_HAR_ENTRY = "log.entries.item"
_HAR_FIELDS = {
    f"{_HAR_ENTRY}.request.url": "url",
    f"{_HAR_ENTRY}.request.method": "method",
    f"{_HAR_ENTRY}.startedDateTime": "at",
}

NO_HAR_REQUEST = "has no request with a URL"


def read_har(stream: BufferedReader) -> Iterator[Item]:
    """Yield an entry for each HAR entry."""
    import ijson  # here, because all other formats are read without it

    number, fields = 0, dict[str, Any]()
    try:
        for prefix, event, value in ijson.parse(_Unmarked(stream)):
            if prefix in _HAR_FIELDS:
                fields[_HAR_FIELDS[prefix]] = value
            elif prefix == _HAR_ENTRY and event == "end_map":
                number += 1
                yield _har_entry(f"entry {number}", fields)
                fields = {}
    except ijson.IncompleteJSONError:
        yield Unreadable(f"entry {number + 1}", "the file is cut here, or is no JSON from here on")
    except (ijson.JSONError, UnicodeDecodeError):
        yield Unreadable(f"entry {number + 1}", "the file is no JSON from here on")


def _har_entry(place: str, fields: dict[str, Any]) -> Item:
    url, method = fields.get("url"), fields.get("method", "GET")
    if not isinstance(url, str) or not isinstance(method, str):
        return Unreadable(place, NO_HAR_REQUEST)
    return RequestEntry(place, url, method.upper(), text_lines.read_timestamp(fields.get("at")))


class _Unmarked:
    """Stream without the UTF-8 byte order mark that Windows programs write."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self._begun = False

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read1(size)  # `read` would discard the data before a truncation
        if size and not self._begun:
            self._begun = True
            return data.removeprefix(b"\xef\xbb\xbf")
        return data
