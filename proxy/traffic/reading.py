"""v3 requests of a file: an access log, JSON lines, URLs, HAR, a parts list, or a recording.

The kind is recognized by the first lines, then by the file's name; each line of a log is read by its own form. Files
are streamed, except for HAR and parts lists. Messages show a file's name and positions in it, never its contents.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path

import msgspec

from proxy import errors
from proxy.traffic import bom_columns, files, logs, parts_list
from proxy.traffic.clients import Clients
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.v3 import endpoints, parameters

HEAD = 1 << 16  # bytes that are read to recognize the kind
OTHER_METHOD = "its method is not GET or HEAD"
UNKNOWN = (
    "it is neither an access log, JSON lines, HAR or URLs with requests of v3, nor a parts list as CSV with a heading "
    "such as mpn"
)
# JSONP parameters that differ in every request, and one that hides errors: responses are compared as JSON, by status.
VOLATILE_PARAMETERS = {"callback", "_", "suppress_status_codes"}
_HAR = re.compile(r'\s*\{\s*"log"\s*:\s*(?:\{|$)')

Reader = Callable[[BufferedReader], Iterator[logs.Item]]


class SkipCount(msgspec.Struct, frozen=True):
    """Number of entries that are no requests for one reason; `first` locates the first one, such as `access.log:17`."""

    times: int
    first: str


Skipped = dict[str, SkipCount]  # by reason


def read_requests(file: Path, clients: Clients, skipped: Skipped) -> Iterator[V3Request]:
    """Yield the v3 requests of a file in order, with client names in place of API keys, and count in `skipped` what is
    none. Raises SourceError for a file that cannot be opened, is of an unknown kind, or holds no request."""
    found, place = False, "the beginning"
    with files.open_file(file) as stream:
        reader = _reader(file, _head(stream))
    with files.open_file(file) as stream:
        try:
            for item in reader(stream):
                place = f"{file.name}:{item.place}"
                try:
                    request = _request(item, place, clients)
                except ValueError as error:
                    _skip(skipped, str(error), place)
                    continue
                found = True
                yield request
        except files.TruncatedFile as cut:
            _skip(skipped, str(cut), f"after {place}")
    if not found:
        reason, count = next(iter(skipped.items()), ("there is nothing in it", SkipCount(0, file.name)))
        raise errors.SourceError(f"{file}: no request of v3 in it: {count.first}: {reason}")


def _request(item: logs.Item, origin: str, clients: Clients) -> V3Request:
    """Parse an entry. Raises ValueError for one that is no v3 request."""
    if isinstance(item, logs.Unreadable):
        raise ValueError(item.reason)
    if item.method not in endpoints.READ_METHODS:
        raise ValueError(OTHER_METHOD)
    path, query, key = parse_target(item.target)
    agent = item.agent or ""
    client = item.client or clients.register(key or item.key, origin, agent)
    lasting = tuple(pair for pair in query if parameters.bare(pair[0]) not in VOLATILE_PARAMETERS)
    return V3Request(path, lasting, client, item.times, origin, item.at, agent)


def _skip(skipped: Skipped, reason: str, place: str) -> None:
    known = skipped.get(reason) or SkipCount(0, place)
    skipped[reason] = SkipCount(known.times + 1, known.first)


def _head(stream: BufferedReader) -> bytes:
    """Read the beginning of a file, up to a truncation."""
    head = b""
    try:
        while len(head) < HEAD and (more := stream.read1(HEAD - len(head))):
            head += more
    except files.TruncatedFile:
        pass  # counted when the file is read
    return head


def _reader(file: Path, head: bytes) -> Reader:
    """Recognize the kind of a file by its beginning. Raises SourceError for an unknown one."""
    text = bom_columns.decoded(head)
    lines = [line.strip() for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if not lines:
        raise errors.SourceError(f"{file}: there is nothing in it")
    if _HAR.match(text.lstrip("\ufeff")):
        return logs.read_har
    items = [logs.read_line(0, line) for line in lines]
    if any(isinstance(item, logs.Entry) and "/v3/" in item.target for item in items):
        return _read_lines
    if lines[0].startswith("{"):
        return _read_lines  # JSON lines, of which the first are of something else
    if file.suffix.lower() in (".csv", ".tsv") or _has_header(text):
        return parts_list.read
    raise errors.SourceError(f"{file}: {UNKNOWN}")


def _read_lines(stream: BufferedReader) -> Iterator[logs.Item]:
    return (logs.read_line(number, line) for number, line in files.read_lines(stream) if not line.startswith("#"))


def _has_header(text: str) -> bool:
    try:
        return any(map(bom_columns.columns, csv.reader(io.StringIO(text), delimiter=bom_columns.delimiter(text))))
    except csv.Error:
        return False
