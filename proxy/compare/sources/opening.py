"""Which kind of file is this? By its first bytes and lines, then by its name; whoever knows better says so."""

import csv
import io
import json
import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

from proxy import errors
from proxy.compare.clients import Clients
from proxy.compare.sources import access_log, bom, delimited, har, json_lines, packing, recorded, urls, workbook
from proxy.compare.sources.entries import Reader
from proxy.compare.sources.source import Source

HEAD = 1 << 16  # bytes by which a file is known


class Kind(NamedTuple):
    """How a kind of file is read, and what it is in words."""

    read: Reader
    meaning: str


KINDS = {
    "log": Kind(access_log.read, "access logs of nginx, Apache, ELB, ALB and others with the request in quotes"),
    "json": Kind(json_lines.read, "JSON lines with a field such as url, request or path"),
    "har": Kind(har.read, "HAR, as browsers save it"),
    "urls": Kind(urls.read, "URLs or request targets, one a line"),
    "csv": Kind(delimited.read, "parts as CSV, with a header"),
    "xlsx": Kind(workbook.read, "parts as a workbook, with a header"),
    "recording": Kind(recorded.read, "recordings of v3bridge"),
}
TABLES = {"csv": delimited.read, "xlsx": workbook.read}  # kinds with columns
_PACKED = re.compile(r"\.(?:gz|bz2|xz|zst)$")
_SUFFIXES = {
    ".har": "har",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "xlsx"),
}
_ARCHIVE = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")  # ZIP, and OLE of the older .xls
_HAR = re.compile(r'\s*\{\s*"log"\s*:\s*(?:\{|$)')


def open_source(path: Path, clients: Clients, *, kind: str | None = None, named: bom.Names = bom.NONE) -> Source:
    """The requests of a file; `named` are the columns of a list of parts by v3's keys. Raises SourceError for a file
    that is not there, for one of no known kind, and for columns of what has none."""
    if kind is not None and kind not in KINDS:
        raise errors.SourceError(f"{kind[:40]!r} is no kind of file; there are {', '.join(KINDS)}")
    with packing.opened(path) as stream:
        found = kind or _kind(path, _head(stream), named)
    if not named:
        return Source(path, found, KINDS[found].read, clients)
    if found not in TABLES:
        raise errors.SourceError(f"{path}: has no columns to be named with --column, read as {found}")
    return Source(path, found, partial(TABLES[found], named=named), clients)


def _head(stream: io.BufferedReader) -> bytes:
    """The beginning, as far as it can be read."""
    head = b""
    try:
        while len(head) < HEAD and (more := stream.read1(HEAD - len(head))):
            head += more
    except packing.Cut:
        pass  # is counted when it is read
    return head


def _kind(path: Path, head: bytes, named: bom.Names) -> str:
    suffix = Path(_PACKED.sub("", path.name.lower())).suffix
    if head.startswith(_ARCHIVE):
        return "xlsx"
    text = delimited.decoded(head)
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
    """The kind of most of the first lines that are of any; a HAR and a recording are known by how they begin."""
    if _HAR.match(text):
        return "har"
    lines = [line.strip() for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if recorded.HEADER in lines[0][:100]:
        return "recording"
    kinds = [kind for line in lines if (kind := _kind_of(line)) and (kind, named) != ("urls", "csv")]
    if kinds:
        return max(("log", "json", "urls"), key=kinds.count)
    return named or ("json" if lines[0].startswith("{") else "csv" if _has_header(text) else None)


def _has_header(text: str) -> bool:
    try:
        return any(map(bom.columns, csv.reader(io.StringIO(text), delimiter=delimited.delimiter(text))))
    except csv.Error:
        return False


def _kind_of(line: str) -> str | None:
    if line.startswith("{"):
        return "json" if _is_json(line) else None
    if access_log.REQUEST.search(line):
        return "log"
    return "urls" if "/v3/" in line and urls.ADDRESS.match(urls.without_count(line)[0]) else None


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
