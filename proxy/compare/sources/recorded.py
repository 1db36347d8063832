"""Recordings of our own: a header, then one object a line, whose `call` is what was asked. Answers are passed over."""

from collections.abc import Iterator
from io import BufferedReader

import msgspec

from proxy.compare.calls import Call
from proxy.compare.sources import access_log, lines
from proxy.compare.sources.entries import Entry, Item, Unreadable

HEADER = "v3bridge-recording"
VERSION = 1

NONE = "is no recorded call, or is cut"


class _Line(msgspec.Struct, rename={"version": HEADER}):
    version: int | None = None
    call: Call | None = None
    document: msgspec.Raw = msgspec.Raw()  # these two are what calls have in common
    shared: msgspec.Raw = msgspec.Raw()


def read(stream: BufferedReader) -> Iterator[Item]:
    """A request for each recorded call, of the client that asked."""
    decode = msgspec.json.Decoder(_Line).decode
    for number, line in lines.of(stream, lines.JSON_LINE):
        try:
            found = decode(line or "")
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            yield Unreadable(number, access_log.LONG if line is None else NONE)
            continue
        if found.call is not None:
            yield _entry(number, found.call)
        elif found.version != VERSION and not bytes(found.document) and not bytes(found.shared):
            yield Unreadable(number, NONE if found.version is None else "is of another version of v3bridge")


def _entry(number: int, call: Call) -> Entry:
    return Entry(number, "/v3" + call.target(), client=call.client, times=max(1, call.times))
