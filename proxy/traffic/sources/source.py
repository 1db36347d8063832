"""Source of requests: detects the format of a file and reads it into requests. Unreadable entries are counted, not
fatal.

The format is detected by the first bytes and lines, then by the file's name; `--kind` overrides both.
"""

import csv
import io
import json
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from proxy import errors
from proxy.traffic import bom_columns
from proxy.traffic.sources import bom, files, json_files, text_lines
from proxy.traffic.sources.clients import Clients
from proxy.traffic.sources.entries import Item, Reader, RequestEntry, Unreadable
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.v3 import endpoints, parameters

OTHER_METHOD = "its method is not GET or HEAD"

# JSONP parameters that differ in every request, and one that hides errors: responses are compared as JSON, by status.
VOLATILE_PARAMETERS = {"callback", "_", "suppress_status_codes"}


class SkipCount(msgspec.Struct, frozen=True):
    """Number of skipped entries for one reason; `first` locates the first one, such as `access.log:17`."""

    reason: str
    times: int
    first: str


class RequestSource:
    """Requests of a file, which is read anew for each iteration; the statistics are of the last one.

    `junk` counts unreadable entries; `skipped` counts requests that are not GET requests of v3. `seconds` is the time
    between the first and the last timestamp, None with fewer than two.
    """

    def __init__(self, path: Path, kind: str, reader: Reader, clients: Clients) -> None:
        self.name = path.name
        self.kind = kind
        self._path = path
        self._reader = reader
        self._clients = clients
        self._begin()

    @property
    def junk(self) -> tuple[SkipCount, ...]:
        """Unreadable entries by reason, the most frequent first."""
        return _sorted(self._junk)

    @property
    def skipped(self) -> tuple[SkipCount, ...]:
        """Skipped requests by reason, the most frequent first."""
        return _sorted(self._skipped)

    @property
    def seconds(self) -> float | None:
        """Time from the earliest to the latest timestamp, in seconds."""
        return self._last - self._first if self._last > self._first else None

    def requests(self) -> Iterator[V3Request]:
        """Yield every request, in order. Raises SourceError for a file that cannot be opened or holds no request."""
        self._begin()
        found = False
        with files.open_file(self._path) as stream, closing(self._read(self._reader(stream))) as read:
            for request in read:
                found = True
                yield request
        if not found:
            raise errors.SourceError(self._nothing())

    def _begin(self) -> None:
        self._junk: dict[str, SkipCount] = {}
        self._skipped: dict[str, SkipCount] = {}
        self._first, self._last = float("inf"), float("-inf")

    def _read(self, items: Iterator[Item]) -> Generator[V3Request, None, None]:
        place: int | str = "the beginning"
        try:
            for item in items:
                place = item.place
                request = self._request(item)
                if request is not None:
                    yield request
        except files.TruncatedFile as cut:
            self._note(self._junk, f"after {place}", str(cut))

    def _request(self, item: Item) -> V3Request | None:
        if not isinstance(item, RequestEntry):
            self._note(self._junk if isinstance(item, Unreadable) else self._skipped, item.place, item.reason)
            return None
        if item.at is not None:
            self._first, self._last = min(self._first, item.at), max(self._last, item.at)
        if item.method not in endpoints.READ_METHODS:
            self._note(self._skipped, item.place, OTHER_METHOD)
            return None
        try:
            path, query, key = parse_target(item.target)
        except ValueError as error:
            self._note(self._skipped, item.place, str(error))
            return None
        origin = self._origin(item.place)
        client = item.client or self._clients.register(key or item.key, origin, item.agent)
        lasting = tuple(pair for pair in query if parameters.bare(pair[0]) not in VOLATILE_PARAMETERS)
        return V3Request(path, lasting, client, item.times, origin)

    def _note(self, counts: dict[str, SkipCount], place: int | str, reason: str) -> None:
        known = counts.get(reason) or SkipCount(reason, 0, self._origin(place))
        counts[reason] = msgspec.structs.replace(known, times=known.times + 1)

    def _origin(self, place: int | str) -> str:
        return f"{self.name}:{place}"

    def _nothing(self) -> str:
        """Describe why the file holds no request."""
        counts = [*self._junk.values(), *self._skipped.values()]
        if not counts:
            return f"{self._path}: there is nothing in it"
        first, total = counts[0], sum(count.times for count in counts)
        more = f" ({total - 1} more could not be read either)" if total > 1 else ""
        return f"{self._path}: no request of v3 in it, read as {self.kind}: {first.first}: {first.reason}{more}"


def _sorted(counts: dict[str, SkipCount]) -> tuple[SkipCount, ...]:
    return tuple(sorted(counts.values(), key=lambda count: -count.times))


HEAD = 1 << 16  # bytes that are read to detect the format


class FileKind(NamedTuple):
    """Format of a source: its reader, and a description."""

    read: Reader
    meaning: str


KINDS = {
    "log": FileKind(
        text_lines.read_access_log, "access logs of nginx, Apache, ELB, ALB and others with the request in quotes"
    ),
    "json": FileKind(json_files.read_json_lines, "JSON lines with a field such as url, request or path"),
    "har": FileKind(json_files.read_har, "HAR, as browsers save it"),
    "urls": FileKind(text_lines.read_urls, "URLs or request targets, one a line"),
    "csv": FileKind(bom.read_csv, "parts as CSV, with a header"),
    "xlsx": FileKind(bom.read_workbook, "parts as a workbook, with a header"),
    "recording": FileKind(json_files.read_recording, "recordings of v3bridge"),
}
TABLES = {"csv": bom.read_csv, "xlsx": bom.read_workbook}  # formats with columns
_PACKED = re.compile(r"\.(?:gz|bz2|xz|zst)$")
_SUFFIXES = {
    ".har": "har",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "xlsx"),
}
_ARCHIVE = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")  # ZIP (.xlsx), and OLE of the older .xls
_HAR = re.compile(r'\s*\{\s*"log"\s*:\s*(?:\{|$)')


def open_source(
    path: Path,
    clients: Clients,
    *,
    kind: str | None = None,
    named: bom_columns.Names = bom_columns.NONE,
) -> RequestSource:
    """Open a source; `named` are the columns of a parts list by v3's keys.

    Raises SourceError for a missing file, an unknown format, and columns of a format that has none.
    """
    if kind is not None and kind not in KINDS:
        raise errors.SourceError(f"{kind[:40]!r} is not a kind of file; there are {', '.join(KINDS)}")
    with files.open_file(path) as stream:
        found = kind or _kind(path, _head(stream), named)
    if not named:
        return RequestSource(path, found, KINDS[found].read, clients)
    if found not in TABLES:
        raise errors.SourceError(f"{path}: has no columns to be named with --column, read as {found}")
    return RequestSource(path, found, partial(TABLES[found], named=named), clients)


def _head(stream: io.BufferedReader) -> bytes:
    """Read the beginning of a file, up to a truncation."""
    head = b""
    try:
        while len(head) < HEAD and (more := stream.read1(HEAD - len(head))):
            head += more
    except files.TruncatedFile:
        pass  # counted when the file is read
    return head


def _kind(path: Path, head: bytes, named: bom_columns.Names) -> str:
    suffix = Path(_PACKED.sub("", path.name.lower())).suffix
    if head.startswith(_ARCHIVE):
        return "xlsx"
    text = bom_columns.decoded(head)
    if not text.strip():
        raise errors.SourceError(f"{path}: there is nothing in it")
    found = _by_content(text, _SUFFIXES.get(suffix)) or ("csv" if named else None)
    if found is None and "\0" in text:
        raise errors.SourceError(f"{path}: is neither text nor a workbook")
    if found is None:
        kinds = "; ".join(f"{name}: {kind.meaning}" for name, kind in KINDS.items())
        raise errors.SourceError(f"{path}: it is not clear what kind of file this is. Say which it is: {kinds}")
    return found


def _by_content(text: str, named: str | None) -> str | None:
    """Detect the format by majority of the first lines; HAR files and recordings have unique beginnings."""
    if _HAR.match(text):
        return "har"
    lines = [line.strip() for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if json_files.RECORDING_HEADER in lines[0][:100]:
        return "recording"
    kinds = [kind for line in lines if (kind := _kind_of(line)) and (kind, named) != ("urls", "csv")]
    if kinds:
        return max(("log", "json", "urls"), key=kinds.count)
    return named or ("json" if lines[0].startswith("{") else "csv" if _has_header(text) else None)


def _has_header(text: str) -> bool:
    try:
        return any(map(bom_columns.columns, csv.reader(io.StringIO(text), delimiter=bom_columns.delimiter(text))))
    except csv.Error:
        return False


def _kind_of(line: str) -> str | None:
    if line.startswith("{"):
        return "json" if _is_json(line) else None
    if text_lines.REQUEST.search(line):
        return "log"
    if "/v3/" not in line:
        return None
    return "urls" if text_lines.ADDRESS.match(text_lines.without_count(line)[0]) else None


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
