"""Lines of access logs, JSON lines of servers and log shippers, URLs, and HAR: entries that are not yet v3 requests.

nginx escapes a quote in a request as \\x22, Apache as \\", others do not escape, and leave spaces, too: `"GET
/v3/parts/match?queries=[{"mpn":"X 1"}] HTTP/1.1"`. Fields of a JSON line (nginx with escape=json, Caddy, Traefik, load
balancers, ECS, recordings of v3bridge) have many names, which are compared without case and punctuation. A list of
URLs has `https://host/v3/…`, `/v3/…` or `GET /v3/… HTTP/1.1` in each line, optionally with a count (`uniq -c`). Reasons
quote nothing of a line, because lines hold API keys.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from io import BufferedReader
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

HAR_MAX = 1 << 30  # bytes
LOG_LINE = 1 << 18  # characters; servers reject shorter request lines already

NO_REQUEST = 'has no request, such as "GET /v3/… HTTP/1.1", and is no URL'
NO_JSON = "is no JSON, or is cut"
NO_TARGET = "has no field such as url, request, target or path"
NO_HAR_REQUEST = "has no request with a URL"


class Entry(NamedTuple):
    """Request in a source. `place` is a line's number or a description; `at` is in seconds since 1970.

    `key` is an apikey outside the target, `client` a name from a recording, which has no keys, `agent` the User-Agent.
    """

    place: int | str
    target: str
    method: str = "GET"
    at: float | None = None
    key: str | None = None
    client: str | None = None
    times: int = 1
    agent: str | None = None


class Unreadable(NamedTuple):
    """Entry that cannot be read, or is left out on purpose."""

    place: int | str
    reason: str


Item = Entry | Unreadable

COMMON = re.compile(r"\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?")
ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_EARLIEST, _LATEST = 1e8, 1e20  # smaller numbers are no timestamps, but for example dates without dashes
_UNITS = (1e17, 1e9), (1e14, 1e6), (1e11, 1e3)  # numbers above the first are in milliseconds or smaller units

REQUEST = re.compile(r'"([A-Z]{2,10}) (?=[/*]|\w+://|\S+:\d+ )')
_END = re.compile(r' HTTP/\d(?:\.\d)?"(?:\s|$)')
_END_WITHOUT_VERSION = re.compile(r'" (?:\d{3}|-)(?:\s|$)')  # HTTP/0.9; the status follows
_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*"')
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_CONTROLS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"v": b"\v", b"f": b"\f"}

_REQUEST_LINE = re.compile(r"([A-Z]{2,10}) (\S.*?)(?: HTTP/\d(?:\.\d)?)?")
ADDRESS = re.compile(r"(?:[A-Z]{2,10} )?(?:[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/]|/|[\w.-]+(?::\d+)?/)")
_COUNTED = re.compile(r"(\d{1,12})[ \t]+(?=\S)")
_AROUND = "\"'<>`, \t"

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
_INSIDE = {"request", "req", "http", "httprequest", "url", "headers"}
_DEPTH = 3


def read_line(number: int, line: str) -> Item:
    """Read a line of an access log, a JSON line or a URL."""
    if line.startswith("{"):
        return _json_entry(number, line)
    begin = REQUEST.search(line) if len(line) <= LOG_LINE else None
    end = begin and (_END.search(line, begin.end()) or _END_WITHOUT_VERSION.search(line, begin.end()))
    if begin and end:
        target, at = _unescaped(line[begin.end() : end.start()]), timestamp(line[: begin.start()])
        # The User-Agent is the first quoted text if nothing precedes it (load balancers), else that after the referrer.
        rest = line[end.end() :]
        texts = [found[1] for found in islice(_TEXT.finditer(rest), 2)]
        agent = texts[0] if rest.lstrip().startswith('"') and texts else "".join(texts[1:2])
        return Entry(number, target, begin[1], at, agent=_unescaped(agent) if agent not in ("", "-") else None)
    counted = _COUNTED.match(line)
    bare = line[counted.end() :] if counted else line
    bare = bare.strip(_AROUND) if bare[:1] in _AROUND else bare
    if not ADDRESS.match(bare):
        return Unreadable(number, NO_REQUEST)
    method, target = request_line(bare)
    return Entry(number, target, method, times=max(1, int(counted[1])) if counted else 1)


def request_line(text: str) -> tuple[str, str]:
    """Split `GET /v3/… HTTP/1.1`, `GET /v3/…` or `/v3/…` into method and target; spaces in the target are retained."""
    found = _REQUEST_LINE.fullmatch(text)
    return (found[1], found[2]) if found else ("GET", text)


def _unescaped(written: str) -> str:
    """Undo the escapes of a target. A target with a bare quote was not escaped."""
    if "\\" not in written or _QUOTE.search(written):
        return written
    data = _ESCAPE.sub(
        lambda found: bytes.fromhex(found[1].decode()) if found[1] else _CONTROLS.get(found[2], found[2]),
        written.encode("utf-8", "surrogateescape"),
    )
    return data.decode("utf-8", "surrogateescape")


def _json_entry(number: int, line: str) -> Item:
    try:
        fields = _gathered(json.loads(line))
    except (ValueError, RecursionError):
        return Unreadable(number, NO_JSON)
    texts = (fields.get(name) for name in TARGETS)
    lines = [request_line(text) for text in texts if isinstance(text, str) and ADDRESS.match(text)]
    if not lines:
        return Unreadable(number, NO_TARGET)
    # Among several fields with a target, the first with a query.
    method, target = next((each for each in lines if "?" in each[1]), lines[0])
    if "?" not in target:  # some logs store the query separately, as text or as an object
        queries = (value for name in QUERIES if (value := fields.get(name)))
        query = next(
            (each for each in queries if isinstance(each, dict) or (isinstance(each, str) and "=" in each)), ""
        )
        text = query.removeprefix("?") if isinstance(query, str) else urlencode(query, doseq=True, errors="replace")
        target = f"{target}?{text}" if query else target
    method = _first(fields, METHODS) or method
    at = next((at for name in TIMES if (at := timestamp(fields.get(name))) is not None), None)
    client, times = _first(fields, ("v3bridgeclient",)), fields.get("v3bridgetimes", 1)
    return Entry(
        number,
        target,
        method.upper(),
        at,
        _first(fields, ("apikey",)),
        client,
        times if type(times) is int and times > 0 else 1,
        _first(fields, AGENTS),
    )


def _gathered(value: dict[str, Any], prefix: str = "", depth: int = _DEPTH) -> dict[str, Any]:
    """Collect fields by name without case and punctuation; of a nested field its short name, too, unless taken."""
    fields: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    for key, content in value.items():
        name = "".join(filter(str.isalnum, key)).lower()
        first = content[0] if isinstance(content, list) and len(content) == 1 else content  # headers of Caddy
        for known in (prefix + name, name):
            fields.setdefault(known, first)
        if isinstance(content, dict) and name in _INSIDE and depth:
            inner = _gathered(content, prefix + name, depth - 1) | inner
    return inner | fields


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first non-empty text, with lone surrogates replaced by question marks."""
    text = next((value for name in names if isinstance(value := fields.get(name), str) and value), None)
    return None if text is None else text.encode("utf-8", "replace").decode()


class _HarRequest(msgspec.Struct):
    url: str
    method: str = "GET"
    headers: list[dict[str, Any]] = []


class _HarEntry(msgspec.Struct, rename={"at": "startedDateTime"}):
    request: _HarRequest
    at: str | None = None


class _HarLog(msgspec.Struct):
    entries: list[msgspec.Raw] = []


class _Har(msgspec.Struct):
    log: _HarLog


def read_har(stream: BufferedReader) -> Iterator[Item]:
    """Yield an entry for each HAR entry."""
    data = stream.read(HAR_MAX + 1).removeprefix(b"\xef\xbb\xbf")
    if len(data) > HAR_MAX:
        yield Unreadable(1, f"is larger than {HAR_MAX >> 20} MiB")
        return
    try:
        entries = msgspec.json.decode(data, type=_Har).log.entries
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        yield Unreadable(1, NO_JSON)
        return
    for number, raw in enumerate(entries, 1):
        place = f"entry {number}"
        try:
            entry = msgspec.json.decode(raw, type=_HarEntry)
        except (msgspec.DecodeError, UnicodeDecodeError):
            yield Unreadable(place, NO_HAR_REQUEST)
            continue
        headers = {str(each.get("name")).lower(): each.get("value") for each in entry.request.headers}
        agent = _first(headers, ("user-agent",))
        yield Entry(place, entry.request.url, entry.request.method.upper(), timestamp(entry.at), agent=agent)


def timestamp(value: Any) -> float | None:
    """Convert a number of seconds, milliseconds or smaller units since 1970, or the first timestamp in a text, in
    common log format or ISO 8601; without a zone it is UTC."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            common, iso = COMMON.search(value), ISO.search(value)
            with suppress(ValueError, OverflowError):  # invalid, such as the 31st of June
                if common:
                    text = common[0] if " " in common[0] else f"{common[0]} +0000"
                    return datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").timestamp()
                if iso:
                    moment = datetime.fromisoformat(iso[0].replace(",", "."))
                    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not _EARLIEST < value < _LATEST:
        return None
    return value / next((divisor for above, divisor in _UNITS if value > above), 1.0)
