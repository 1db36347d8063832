"""v3 requests of a file: an access log, JSON lines, URLs, HAR, a parts list, or a recording; and their maximum cost.

The kind is recognized by the first lines, then by the file's name; each line of a log is read by its own form. Files
are streamed, except for HAR and parts lists. Messages show a file's name and positions in it, never its contents.

A parts list (BOM) becomes parts/match requests of up to 20 queries each, with the row's number as reference. A part
number is sent with its manufacturer where there is a column for that, a seller's number with the seller. The header is
searched for in the first rows, because exports begin with titles.
"""

import contextlib
import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from proxy import errors, model
from proxy.planning import match, queries
from proxy.redaction import Redaction
from proxy.traffic import bom_columns, files, logs
from proxy.traffic.logs import Entry, Item, Unreadable
from proxy.traffic.v3_request import Clients, V3Request, parse_target
from proxy.v3 import encoding, endpoints, requests
from proxy.v3.encoding import Parameters

HEAD = 1 << 16  # bytes that are read to recognize the kind
OTHER_METHOD = "its method is not GET"
UNKNOWN = (
    "it is neither an access log, JSON lines, HAR or URLs with requests of v3, nor a parts list as CSV with a heading "
    "such as mpn"
)
# JSONP parameters that differ in every request, and one that hides errors: responses are compared as JSON, by status.
VOLATILE_PARAMETERS = {"callback", "_", "suppress_status_codes"}
_HAR = re.compile(r'\s*\{\s*"log"\s*:\s*(?:\{|$)')
SIZE_MAX = 1 << 26  # bytes of a parts list: it is read whole, because its encoding is known only then
TARGET_MAX = 8000  # characters: v3 rejected longer ones (contract v3-rest.md §6)
NUMBER_MAX = 200  # characters of a cell with a part number
NAMES_SHOWN = 8  # of known headings of a kind, in a message
HEADER_MAX = 60  # characters of a column's name in a message
BESIDE = {"mpn": "brand", "sku": "seller"}
PATH = "/v3/parts/match?queries="

NO_NUMBER = "has no part number"
LONG = f"has a part number of more than {NUMBER_MAX} characters"
BROKEN = "has a line break in its part number: a quote may not be closed"
AGAIN = "requests the same part as an earlier row"
TOO_LARGE = f"is larger than a list of parts can be ({SIZE_MAX >> 20} MiB)"

TableRow = tuple[int, list[str]]
Reader = Callable[[BufferedReader], Iterator[Item]]


class SkipCount(msgspec.Struct):
    """Number of entries that are no requests for one reason; `first` locates the first one, such as `access.log:17`."""

    times: int
    first: str


Skipped = dict[str, SkipCount]  # by reason


def read_requests(file: Path, clients: Clients, skipped: Skipped) -> Iterator[V3Request]:
    """Yield the v3 requests of a file in order, with client names in place of API keys, and count in `skipped` what is
    none. Raises SourceError for a file that cannot be opened, is of an unknown kind, or holds no request."""
    found, place = False, "the beginning"
    with files.open_file(file) as stream:
        reader = _reader(file, stream)
    with files.open_file(file) as stream:
        try:
            for item in reader(stream):
                place = f"{file.name}:{item.place}"
                try:
                    request = _request(item, place, clients)
                except ValueError as error:
                    skipped.setdefault(str(error), SkipCount(0, place)).times += 1
                    continue
                found = True
                yield request
        except files.TruncatedFile as cut:
            skipped.setdefault(str(cut), SkipCount(0, f"after {place}")).times += 1
    if not found:
        why = next((f": {count.first}: {reason}" for reason, count in skipped.items()), "")
        raise errors.SourceError(f"{file}: no request of v3 in it{why}")


def _request(item: Item, origin: str, clients: Clients) -> V3Request:
    """Parse an entry. Raises ValueError for one that is no v3 request."""
    if isinstance(item, Unreadable):
        raise ValueError(item.reason)
    if item.method != "GET":
        raise ValueError(OTHER_METHOD)
    path, query, key = parse_target(item.target)
    agent = item.agent or ""
    client = item.client or clients.register(key or item.key, origin, agent)
    lasting = tuple(pair for pair in query if encoding.bare(pair[0]) not in VOLATILE_PARAMETERS)
    return V3Request(path, lasting, client, item.times, origin, item.at, agent)


def _reader(file: Path, stream: BufferedReader) -> Reader:
    """Recognize the kind of a file by its beginning. Raises SourceError for an unknown one."""
    head, why = b"", ""
    try:
        while len(head) < HEAD and (more := stream.read1(HEAD - len(head))):
            head += more
    except files.TruncatedFile as cut:  # counted when the file is read
        why = str(cut)
    text = head.decode(bom_columns.encoding(head), "replace")
    lines = [line.strip() for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if not lines:
        raise errors.SourceError(f"{file}: {why or 'there is nothing in it'}")
    if _HAR.match(text.lstrip("\ufeff")):
        return logs.read_har
    items = [logs.read_line(0, line) for line in lines]
    is_log = any(isinstance(item, Entry) and "/v3/" in item.target for item in items)
    if is_log or lines[0].startswith("{"):  # JSON lines, of which the first are of something else
        return lambda log: (logs.read_line(at, line) for at, line in files.read_lines(log) if not line.startswith("#"))
    with contextlib.suppress(csv.Error):
        rows = csv.reader(io.StringIO(text), delimiter=bom_columns.delimiter(text))
        if file.suffix.lower() in (".csv", ".tsv") or any(map(bom_columns.columns, rows)):
            return _read_list
    raise errors.SourceError(f"{file}: {why or UNKNOWN}")


class _Query(NamedTuple):
    row: int
    text: str


def _read_list(stream: BufferedReader) -> Iterator[Item]:
    """Yield parts/match requests for the rows of a table; blank rows are skipped."""
    data = stream.read(SIZE_MAX + 1)
    if len(data) > SIZE_MAX:
        yield Unreadable(1, TOO_LARGE)
        return
    broken: list[Unreadable] = []
    filled = _rows(data.decode(bom_columns.encoding(data), "replace"), broken)
    first = list(islice(filled, bom_columns.EXAMINED_ROWS))
    cells = [row for _, row in first]
    places = (bom_columns.columns(row) for row in cells[: bom_columns.HEADER_ROWS])
    headers = {index: found for index, found in enumerate(places) if found}
    if not headers:
        if not first:
            yield Unreadable(1, "has no rows")
            return
        number, row = max(
            first[: bom_columns.HEADER_ROWS], key=lambda each: sum(bool(cell.strip()) for cell in each[1])
        )
        # The missing one may be there under another name. A file that is no parts list may hold requests with API keys.
        there = ", ".join(repr(Redaction().text(cell.strip())[:HEADER_MAX]) for cell in row if cell.strip())
        known = ", ".join(name for key in bom_columns.NUMBERS for name in bom_columns.HEADINGS[key][:NAMES_SHOWN])
        missing = f"no column of part numbers, which are named like {known}, or in another language"
        yield Unreadable(number, f"{missing}; the columns are {there}")
        return
    header, _ = bom_columns.best_header(cells, headers)
    waiting: list[_Query] = []
    for entry in _queries(chain(first[header + 1 :], filled), headers[header]):
        if isinstance(entry, Unreadable):
            yield entry
            continue
        if len(waiting) == model.MATCH_QUERIES_MAX or len(_entry([*waiting, entry]).target) > TARGET_MAX:
            yield _entry(waiting)
            waiting = []
        waiting.append(entry)
    if waiting:
        yield _entry(waiting)
    yield from broken


def _rows(text: str, broken: list[Unreadable]) -> Iterator[TableRow]:
    """Yield the rows that are not blank, with the numbers of their first lines, up to one that is broken."""
    try:
        for number, row in bom_columns.rows(io.StringIO(text, newline=""), bom_columns.delimiter(text)):
            if any(map(str.strip, row)):
                yield number, row
    except bom_columns.BrokenRow as error:
        broken.append(Unreadable(error.row, str(error)))


def _queries(rows: Iterator[TableRow], places: dict[str, int]) -> Iterator[_Query | Unreadable]:
    earlier = set[tuple[str, ...]]()
    for number, row in rows:
        cells = {key: row[at].strip() for key, at in places.items() if at < len(row)}
        numbered = [key for key in bom_columns.NUMBERS if any(map(str.isalnum, cells.get(key, "")))]
        key = next((key for key in numbered if not bom_columns.is_one_of(bom_columns.PLACEHOLDERS, cells[key])), None)
        if key is None:
            yield Unreadable(number, NO_NUMBER)
            continue
        if "\n" in cells[key] or "\r" in cells[key] or len(cells[key]) > NUMBER_MAX:
            yield Unreadable(number, LONG if len(cells[key]) > NUMBER_MAX else BROKEN)
            continue
        query = {key: cells[key]}
        if (beside := cells.get(BESIDE[key], "")) and not bom_columns.is_one_of(bom_columns.PLACEHOLDERS, beside):
            query[BESIDE[key]] = beside
        if (numbers := tuple(query.values())) in earlier:
            yield Unreadable(number, AGAIN)
            continue
        earlier.add(numbers)
        yield _Query(number, json.dumps({**query, "reference": str(number)}, separators=(",", ":"), ensure_ascii=False))


def _entry(rows: list[_Query]) -> Entry:
    target = PATH + quote(f"[{','.join(each.text for each in rows)}]", safe="", errors="replace")
    return Entry("-".join(map(str, sorted({rows[0].row, rows[-1].row}))), target)


def worst_case_parts(request: V3Request) -> int:
    """Return the maximum cost of one response, in parts: what its plan could return from an empty store. A request that
    the service would reject costs nothing."""
    endpoint = endpoints.of(request.path)
    if endpoint is None or endpoint.object != "Part":
        return 0
    parameters = Parameters(request.target())
    try:
        if endpoint.action == "match":
            plans = match.plans(requests.parse_match(parameters).request, "supMultiMatch")
            return sum(plan.asked.end - plan.asked.start for plan in plans)
        if endpoint.action == "search":  # the page size; for a search by part number, the number of candidates
            start = parameters.whole("start", 0, model.SEARCH_START_MAX)
            limit = parameters.whole("limit", model.SEARCH_LIMIT_DEFAULT, model.SEARCH_LIMIT_MAX)
            count = len(set(parameters.texts(f"filter[fields][{match.MPN_FIELD}]")))
            if any(match.MPN_FIELD in text for text in parameters.texts("filter[queries]")):
                count += match.MPNS_MAX
            return max(limit, match.candidate_limit(count, start, limit) * count)
        uids = parameters.uids() if endpoint.action == "get_multi" else [request.path.rpartition("/")[2]]
    except errors.BadRequest:
        return 0
    return len(queries.valid_uids(uids))
