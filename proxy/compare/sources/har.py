"""HAR, as browsers and debugging proxies save it.

Read entry by entry: answers in it are passed over, and of a file that is cut everything before the cut is there.
"""

from collections.abc import Iterator
from io import BufferedReader
from typing import Any

import ijson

from proxy.compare.sources import moments
from proxy.compare.sources.entries import Entry, Item, Unreadable

_ENTRY = "log.entries.item"
_FIELDS = {f"{_ENTRY}.request.url": "url", f"{_ENTRY}.request.method": "method", f"{_ENTRY}.startedDateTime": "at"}

NONE = "has no request with a URL"


def read(stream: BufferedReader) -> Iterator[Item]:
    """A request for each entry."""
    number, fields = 0, dict[str, Any]()
    try:
        for prefix, event, value in ijson.parse(_Unmarked(stream)):
            if prefix in _FIELDS:
                fields[_FIELDS[prefix]] = value
            elif prefix == _ENTRY and event == "end_map":
                number += 1
                yield _entry(f"entry {number}", fields)
                fields = {}
    except ijson.IncompleteJSONError:
        yield Unreadable(f"entry {number + 1}", "the file is cut here, or is no JSON from here on")
    except (ijson.JSONError, UnicodeDecodeError):
        yield Unreadable(f"entry {number + 1}", "the file is no JSON from here on")


def _entry(place: str, fields: dict[str, Any]) -> Item:
    url, method = fields.get("url"), fields.get("method", "GET")
    if not isinstance(url, str) or not isinstance(method, str):
        return Unreadable(place, NONE)
    return Entry(place, url, method.upper(), moments.of(fields.get("at")))


class _Unmarked:
    """The stream without the mark that Windows programs put before UTF-8."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self._begun = False

    def read(self, size: int = -1) -> bytes:
        """What comes next."""
        data = self._stream.read1(size)  # read would lose what comes just before a cut
        if size and not self._begun:
            self._begun = True
            return data.removeprefix(b"\xef\xbb\xbf")
        return data
