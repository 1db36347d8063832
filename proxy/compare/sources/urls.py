"""Lists of URLs or of request targets, one a line: `https://host/v3/…`, `/v3/…`, `GET /v3/… HTTP/1.1`.

Also as `sort | uniq -c` leaves them, with a count before each. Lines that begin with # are comments.
"""

import re
from collections.abc import Iterator
from io import BufferedReader

from proxy.compare.sources import access_log, lines
from proxy.compare.sources.entries import Entry, Item, Unreadable, request_line

ADDRESS = re.compile(r"(?:[A-Z]{2,10} )?(?:[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/]|/|[\w.-]+(?::\d+)?/)")
_COUNTED = re.compile(r"(\d{1,12})[ \t]+(?=\S)")
_AROUND = "\"'<>`, \t"

NONE = "is no URL"


def read(stream: BufferedReader) -> Iterator[Item]:
    """A request for each line that is no comment."""
    for number, line in lines.of(stream):
        if line is None:
            yield Unreadable(number, access_log.LONG)
        elif not line.startswith("#"):
            yield _entry(number, line)


def _entry(number: int, line: str) -> Item:
    bare, times = without_count(line)
    if not ADDRESS.match(bare):
        return Unreadable(number, NONE)
    method, target = request_line(bare)
    return Entry(number, target, method, times=times)


def without_count(line: str) -> tuple[str, int]:
    """A line's address, without what people put around it, and its count."""
    counted = _COUNTED.match(line)
    bare = line[counted.end() :] if counted else line
    return bare.strip(_AROUND) if bare[:1] in _AROUND else bare, max(1, int(counted[1])) if counted else 1
