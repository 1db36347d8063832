"""Fills columns of a table: lines become queries, and their results values of the columns.

A column is recognised by its heading, so that a second run updates the columns of the first. New columns stand right
of the data.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from proxy import errors
from proxy.sheet import fill
from proxy.sheet.columns import lines, offers_sheet, recognition
from proxy.sheet.columns.kinds import KINDS, LinePart, at
from proxy.sheet.columns.lines import Line, TableRow
from proxy.sheet.columns.results import ColumnResult, ColumnResults, as_sku
from proxy.sheet.columns.specs import STATUS, ColumnSet, ColumnSpec
from proxy.sheet.fill import AMBIGUOUS, COMPLETE, FAILED, FOUND, NOT_FOUND, STALE
from proxy.sheet.package.cells import COLUMNS_MAX, CellValue
from proxy.sheet.parts import STALE_SECONDS, Part, PartQuery, PartResult

NOT_FETCHED = "not fetched"
FOUND_AS_SKU = f"{FOUND}: as distributor's number"
OUTCOMES = (*fill.OUTCOMES, NOT_FETCHED)


class Table(Protocol):
    """A file that is filled."""

    @property
    def place(self) -> str:
        """Name in messages: file and sheet."""

    @property
    def sheet(self) -> str | None:
        """Name of the sheet; None for a file without sheets."""

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows with their numbers, as texts."""

    def save(
        self,
        target: Path,
        changes: Mapping[int, Mapping[int, CellValue]],
        offers: Iterable[Sequence[CellValue]],
    ) -> None:
        """Write the table with changed cells, by row and column index, and all offers."""


class Status(NamedTuple):
    """Outcome of a line, and the text for its status column."""

    outcome: str
    text: str


class ColumnsJob:
    """The job of one table. `fetched_before` returns when an earlier run fetched a query; None if it is unknown."""

    unit = "line"

    def __init__(
        self,
        table: Table,
        columns: ColumnSet,
        *,
        reading: lines.TableReading = lines.AS_RECOGNIZED,
        now: float,
        rerun_failures: bool = False,
        fetched_before: Callable[[PartQuery], float | None] = lambda _: None,
    ) -> None:
        self._table = table
        self._columns = columns
        self._currencies, self._best_at = columns.currencies, columns.quantity
        self._now = now
        self._fetched_before = fetched_before
        self._results = ColumnResults()
        left_out = lines.LeftOut()
        self._header, read = lines.read(table.rows(), reading, table.place, left_out)
        self._places = self._own_places()
        self._new_headings: dict[int, CellValue] = {}
        self._kept: dict[int, str] = {}  # status by row
        self._lines: list[Line] = []
        for line, cells in read:
            self._lines.append(line)
            status = self._earlier_status(cells)
            if rerun_failures and status.startswith(COMPLETE):
                self._kept[line.row] = status
        self.problems = left_out.cells
        self.recognized = recognition.recognize(table.sheet, self._header, left_out, self._places.values())
        # A new column would stay empty in the lines that are kept.
        missing = [self._heading(spec) for spec in columns.specs if spec not in self._places]
        if rerun_failures and missing:
            raise errors.SheetError(
                f"{table.place}: has no column {', '.join(map(repr, missing))}: --rerun-failures needs a file that was "
                "filled with these columns; without it they are added, and what the cache has costs nothing"
            )
        self._place_new_columns()

    @property
    def lines(self) -> int:
        """Number of lines with a part number."""
        return len(self._lines)

    @property
    def queries(self) -> Sequence[PartQuery]:
        """Distinct queries of the lines that are not kept as they are."""
        return self._distinct(line for line in self._lines if line.row not in self._kept)

    @property
    def kept_queries(self) -> Sequence[PartQuery]:
        """Distinct queries of the lines that are kept as they are."""
        own = self._distinct(line for line in self._lines if line.row in self._kept)
        return [*own, *filter(None, map(as_sku, own))]

    @property
    def later_queries(self) -> int:
        """Queries at most for part numbers that may be distributors' numbers."""
        return sum(as_sku(query) is not None for query in self.queries)

    def add(self, result: PartResult) -> None:
        """Take one result."""
        self._results.add(result)

    async def proceed(self, *, stopped: bool) -> Sequence[PartQuery]:
        """Return the queries for distributors' numbers that are not found as part numbers."""
        return () if stopped else self._results.missing(self.queries)

    def write(self, target: Path) -> Mapping[str, int]:
        """Write the filled table and its offers."""
        counts = Counter(dict.fromkeys(OUTCOMES, 0))
        changes: dict[int, dict[int, CellValue]] = {self._header.row: self._new_headings}
        for line in self._lines:
            status = self._status(line)
            counts[status.outcome] += 1
            changes[line.row] = self._values(line, status)
        self._table.save(target, changes, self._offers())
        return counts

    def _heading(self, spec: ColumnSpec) -> str:
        return spec.heading(self._columns.currency)

    def _own_places(self) -> dict[ColumnSpec, int]:
        """Return the columns that an earlier run has written."""
        headings = [cell.strip() for cell in self._header.cells]
        own = {spec: self._heading(spec) for spec in self._columns.specs}
        return {spec: headings.index(heading) for spec, heading in own.items() if heading in headings}

    def _place_new_columns(self) -> None:
        """Place the others right of everything that stands in the header or in a line."""
        widths = [index + 1 for index, cell in enumerate(self._header.cells) if cell.strip()]
        free = max(*widths, *(line.width for line in self._lines), 0)
        for spec in self._columns.specs:
            if spec not in self._places:
                self._places[spec] = free
                self._new_headings[free] = self._heading(spec)
                free += 1
        if free > COLUMNS_MAX:
            raise errors.SheetError(f"{self._table.place}: has no room for columns right of its data")

    def _earlier_status(self, cells: Sequence[str]) -> str:
        place = self._places.get(STATUS, len(cells))
        return cells[place] if place < len(cells) else ""

    def _queries(self, line: Line) -> Iterator[PartQuery]:
        for currency in self._currencies:
            yield PartQuery(line.mpn, line.manufacturer, line.sku, currency)

    def _distinct(self, chosen: Iterable[Line]) -> list[PartQuery]:
        return list(dict.fromkeys(query for line in chosen for query in self._queries(line)))

    def _status(self, line: Line) -> Status:
        if line.row in self._kept:
            return self._kept_status(line)
        results = [self._results.get(query) for query in self._queries(line)]
        if None in results:
            return Status(NOT_FETCHED, NOT_FETCHED)
        return max((self._status_of(each) for each in results if each is not None), key=_gravity)

    def _kept_status(self, line: Line) -> Status:
        """Return the status of a line whose values stay: values of unknown age may be too old, too."""
        times = [self._fetched_before(query) for query in self._queries(line)]
        known = [time for time in times if time is not None]
        if len(known) < len(times):
            return Status(STALE, f"{STALE}: fetched at an unknown time")
        return self._found(min(known), as_sku=self._kept[line.row] == FOUND_AS_SKU)

    def _found(self, fetched: float, *, as_sku: bool) -> Status:
        fresh = self._now - fetched <= STALE_SECONDS
        text = FOUND_AS_SKU if as_sku else FOUND
        return Status(FOUND, text) if fresh else Status(STALE, f"{STALE}: fetched {at(fetched)}")

    def _status_of(self, found: ColumnResult) -> Status:
        result, part = found.result, found.part
        if result.error is not None:
            return Status(FAILED, f"{FAILED}: {result.error}")
        if part is None:
            return Status(NOT_FOUND, NOT_FOUND)
        if result.hits > 1 and not result.query.manufacturer:
            missing = "manufacturer" if result.query.mpn else "part number"
            text = f"{result.hits} parts match, these values are of {part.manufacturer}: state the {missing}"
            return Status(AMBIGUOUS, f"{AMBIGUOUS}: {text}")
        return self._found(result.fetched, as_sku=found.as_sku)

    def _values(self, line: Line, status: Status) -> dict[int, CellValue]:
        """Return the cells of a line. Values of an earlier run stay where the line is kept or was not fetched."""
        cells: dict[int, CellValue] = {self._places[STATUS]: status.text}
        if line.row in self._kept or status.outcome == NOT_FETCHED:
            return cells
        parts = {query.currency: self._part(query) for query in self._queries(line)}
        # Most columns are about the same best offer, which is chosen once.
        shared: dict[tuple[int | None, str, str | None], LinePart] = {}
        for spec, place in self._places.items():
            if spec == STATUS:
                continue
            key = quantity, currency, distributor = self._quantity(line, spec), self._currency(spec), spec.distributor
            part = parts[currency]
            if part is None or quantity is None:
                cells[place] = None
                continue
            if key not in shared:
                shared[key] = LinePart(part[0], quantity, currency, self._columns.rules, distributor, part[1])
            cells[place] = KINDS[spec.kind].value(shared[key])
        return cells

    def _quantity(self, line: Line, spec: ColumnSpec | None = None) -> int | None:
        """Return the quantity at which the best offer is chosen, for one column or for the sheet of offers; None if it
        is that of the line, which is unclear."""
        if spec is None:
            return self._best_at or line.quantity
        options = KINDS[spec.kind].options
        if "quantity" not in options:
            return 1
        return spec.quantity or ("currency" not in options and self._best_at) or line.quantity

    def _currency(self, spec: ColumnSpec) -> str:
        """Return the currency of a column; where prices do not matter, the first one that is fetched."""
        own = spec.currency or self._columns.currency
        return own if own in self._currencies else self._currencies[0]

    def _part(self, query: PartQuery) -> tuple[Part, float] | None:
        found = self._results.get(query)
        part = None if found is None else found.part
        return None if found is None or part is None else (part, found.result.fetched)

    def _offers(self) -> Iterator[Sequence[CellValue]]:
        """Yield the rows of the sheet of offers; those that were not fetched have none, and those that are kept what
        the cache has."""
        yield offers_sheet.HEADINGS
        for line in self._lines:
            for query in self._queries(line):
                if (found := self._results.get(query)) is not None:
                    result = found.result._replace(part=found.part)
                    yield from offers_sheet.rows(line, result, self._quantity(line), self._columns.rules)


def _gravity(status: Status) -> int:
    return OUTCOMES.index(status.outcome)
