"""Text sources: access logs with the request line in quotes (nginx, Apache, ELB, ALB, HAProxy, …), and lists of URLs.

nginx escapes a quote in a request as \\x22, Apache as \\", others do not escape, and leave spaces, too: `"GET
/v3/parts/match?queries=[{"mpn":"X 1"}] HTTP/1.1"`. A list has `https://host/v3/…`, `/v3/…` or `GET /v3/… HTTP/1.1` in
each line, optionally with a count as `sort | uniq -c` writes it; # begins a comment.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from io import BufferedReader
from itertools import islice
from typing import Any

from proxy.traffic.sources import files
from proxy.traffic.sources.entries import Item, RequestEntry, Unreadable, request_line

# Timestamps in the formats of logs, converted to seconds since 1970.
COMMON = re.compile(r"(\d{1,2})/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d)(?: ([+-])(\d\d)(\d\d))?")
ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")

_NAMES = "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_EARLIEST, _LATEST = 1e8, 1e20  # smaller numbers are no timestamps, but for example dates without dashes
_UNITS = (1e17, 1e9), (1e14, 1e6), (1e11, 1e3)  # numbers above the first are in milliseconds or smaller units


def find_timestamp(text: str) -> float | None:
    """Find the first timestamp in a line, in common log format or ISO 8601; without a zone it is UTC."""
    try:
        if match := COMMON.search(text):
            return _common(match)
        if match := ISO.search(text):
            return _iso(match[0])
    except (ValueError, OverflowError):  # invalid, such as the 31st of June
        return None
    return None


def read_timestamp(value: Any) -> float | None:
    """Convert a JSON value: a formatted timestamp, or a number of seconds, milliseconds or smaller units since 1970."""
    if isinstance(value, str):
        try:
            return _number(float(value))
        except ValueError:
            return find_timestamp(value)
    return _number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _common(match: re.Match[str]) -> float | None:
    day, month, year, hour, minute, second, sign, hours, minutes = match.groups()
    if month not in _MONTHS:
        return None
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    zone = timezone(-offset if sign == "-" else offset)
    return datetime(int(year), _MONTHS[month], int(day), int(hour), int(minute), int(second), tzinfo=zone).timestamp()


def _iso(text: str) -> float:
    moment = datetime.fromisoformat(text.replace(",", "."))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(value: int | float) -> float | None:
    if not _EARLIEST < value < _LATEST:
        return None
    unit = next((divisor for above, divisor in _UNITS if value > above), 1.0)
    return value / unit


REQUEST = re.compile(r'"([A-Z]{2,10}) (?=[/*]|\w+://|\S+:\d+ )')
_END = re.compile(r' HTTP/\d(?:\.\d)?"(?:\s|$)')
_END_OF_BASELINE = re.compile(r'" (?:\d{3}|-)(?:\s|$)')  # HTTP/0.9 requests have no version; the status follows
_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*"')
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_CONTROLS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"v": b"\v", b"f": b"\f"}

NO_REQUEST = 'holds no request in quotes, such as "GET /v3/… HTTP/1.1"'
LINE_TOO_LONG = "is longer than any request line"


def read_access_log(stream: BufferedReader) -> Iterator[Item]:
    for number, line in files.read_lines(stream):
        yield Unreadable(number, LINE_TOO_LONG) if line is None else _log_entry(number, line)


def _log_entry(number: int, line: str) -> Item:
    begin = REQUEST.search(line)
    end = begin and (_END.search(line, begin.end()) or _END_OF_BASELINE.search(line, begin.end()))
    if not begin or not end:
        return Unreadable(number, NO_REQUEST)
    target = _unescaped(line[begin.end() : end.start()])
    return RequestEntry(
        number, target, begin[1], find_timestamp(line[: begin.start()]), agent=_agent(line[end.end() :])
    )


def _agent(rest: str) -> str | None:
    """Return the User-Agent in the part of a line after the request: the first quoted text if nothing precedes it (load
    balancers), else the second, after the referrer (nginx, Apache)."""
    texts = [found[1] for found in islice(_TEXT.finditer(rest), 2)]
    agent = texts[0] if rest.lstrip().startswith('"') and texts else "".join(texts[1:2])
    return _unescaped(agent) if agent not in ("", "-") else None


def _unescaped(written: str) -> str:
    """Undo the escapes of a target. A target with a bare quote was not escaped."""
    if "\\" not in written or _QUOTE.search(written):
        return written
    return _ESCAPE.sub(_byte, written.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _byte(match: re.Match[bytes]) -> bytes:
    return bytes.fromhex(match[1].decode()) if match[1] else _CONTROLS.get(match[2], match[2])


ADDRESS = re.compile(r"(?:[A-Z]{2,10} )?(?:[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/]|/|[\w.-]+(?::\d+)?/)")
_COUNTED = re.compile(r"(\d{1,12})[ \t]+(?=\S)")
_AROUND = "\"'<>`, \t"

NO_URL = "is no URL"


def read_urls(stream: BufferedReader) -> Iterator[Item]:
    for number, line in files.read_lines(stream):
        if line is None:
            yield Unreadable(number, LINE_TOO_LONG)
        elif not line.startswith("#"):
            yield _url_entry(number, line)


def _url_entry(number: int, line: str) -> Item:
    bare, times = without_count(line)
    if not ADDRESS.match(bare):
        return Unreadable(number, NO_URL)
    method, target = request_line(bare)
    return RequestEntry(number, target, method, times=times)


def without_count(line: str) -> tuple[str, int]:
    """Return a line's URL, without surrounding quotes and the like, and its count."""
    counted = _COUNTED.match(line)
    bare = line[counted.end() :] if counted else line
    return bare.strip(_AROUND) if bare[:1] in _AROUND else bare, max(1, int(counted[1])) if counted else 1
