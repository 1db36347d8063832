"""Fills columns of a table: lines become queries, and their results values of the columns.

A column is recognized by its heading, so that a second run updates the columns of the first. New columns stand right
of the data.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from proxy import errors
from proxy.tools.sheet.columns import csv_table, lines, offers_sheet, recognition, statuses, workbook_table
from proxy.tools.sheet.columns.kinds import KINDS, LinePart, number
from proxy.tools.sheet.columns.lines import Line
from proxy.tools.sheet.columns.results import ColumnResults, as_sku
from proxy.tools.sheet.columns.specs import NEEDED, PREFIX, STATUS, ColumnSet, ColumnSpec
from proxy.tools.sheet.columns.statuses import FOUND_AS_SKU, NOT_FETCHED, OUTCOMES, Status
from proxy.tools.sheet.columns.summary_sheet import ListTotals
from proxy.tools.sheet.fill import COMPLETE
from proxy.tools.sheet.package import workbook
from proxy.tools.sheet.package.cells import COLUMNS_MAX, CellValue
from proxy.tools.sheet.parts import Part, PartQuery, PartResult

WORKBOOKS = (".xlsx", ".xlsm")
OTHERS = (".xls", ".xlsb", ".ods", ".numbers")
Table = csv_table.CsvTable | workbook_table.WorkbookTable


@contextmanager
def opened(path: Path, sheet: str | None, reading: lines.TableReading) -> Iterator[Table]:
    """Open a file by what it is: a workbook, or else CSV. Raises SheetError."""
    suffix = path.suffix.lower()
    if suffix in WORKBOOKS:
        with workbook.open_package(path) as package:
            yield workbook_table.choose(package, sheet, reading)
    elif suffix in OTHERS:
        raise errors.SheetError(f"{path}: cannot be filled; save it as .xlsx or .csv")
    elif sheet is not None:
        raise errors.SheetError(f"{path}: has no sheets; --sheet is for workbooks")
    else:
        yield csv_table.CsvTable(path, reading.named)


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
        self._boards = reading.build.boards if reading.build else 1
        self._summed = next((spec for spec in columns.specs if spec.kind == "total"), None)
        self.totals: ListTotals | None = None
        self._results = ColumnResults()
        left_out = lines.LeftOut()
        self._header, read = lines.read(table.rows(), reading, table.place, left_out)
        self._places = self._own_places()
        self._new_headings: dict[int, CellValue] = {}
        self._kept: dict[int, tuple[str, list[str]]] = {}  # by row: status, and the columns without a value
        self.distributors = columns.distributors
        self.reasons: Counter[str] = Counter()
        self._lines: list[Line] = []
        for line, cells in read:
            self._lines.append(line)
            status = self._earlier_status(cells)
            if rerun_failures and status.startswith(COMPLETE):
                self._kept[line.row] = status, self._empty(dict(enumerate(cells)))
        self.problems = left_out.cells
        self.notes = [
            *offers_sheet.notes(len(self._lines) * len(self._currencies), columns.offers, table.offers_max),
            *columns.notes,
            *([] if reading.build is None else [reading.build.note]),
        ]
        self.recognized = recognition.recognize(table.sheet, self._header, left_out, self._places.values())
        # A new column would stay empty in the lines that are kept.
        missing = [self._heading(spec) for spec in columns.specs if spec not in self._places]
        if rerun_failures and missing:
            raise errors.SheetError(
                f"{table.place}: has no column {', '.join(map(repr, missing))}: --rerun-failures needs a file that was "
                "filled with these columns; without it they are added, and what the cache has costs nothing"
            )
        self._place_new_columns()

    def refuse_distributor(self, name: str, reason: str) -> None:
        """Refuse the run: columns would stay empty."""
        del name
        raise errors.ConfigError(f"{reason}; use a part of its name, or its seller id")

    @property
    def lines(self) -> int:
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
        self.reasons.clear()
        changes: dict[int, dict[int, CellValue]] = {self._header.row: self._new_headings}
        self.totals = None if self._summed is None else ListTotals(self._currency(self._summed), self._boards)
        for line in self._lines:
            status = self._status(line)
            values = changes[line.row] = self._values(line, status)
            status = status.without(self._kept[line.row][1] if line.row in self._kept else self._empty(values))
            values[self._places[STATUS]] = status.text
            counts[status.outcome] += 1
            self.reasons.update(status.reasons)
        looks = {place: spec.look(self._currency(spec)) for spec, place in self._places.items()}
        self._table.save(target, changes, self._offers(), None if self.totals is None else self.totals.rows(), looks)
        return counts

    def _heading(self, spec: ColumnSpec) -> str:
        return spec.heading(self._columns.currency)

    def _empty(self, cells: Mapping[int, CellValue]) -> list[str]:
        """Return the columns that have no value in a line."""
        empty = (spec for spec, place in self._places.items() if spec != STATUS and cells.get(place) in (None, ""))
        return [self._heading(spec).removeprefix(f"{PREFIX} ") for spec in empty]

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

    def _sources_of(self, line: Line) -> PartQuery:
        """Return the query for all manufacturers of a line's number."""
        return PartQuery(line.mpn, sku=line.sku, sources=True, similar=self._columns.needs_similar)

    def _distinct(self, chosen: Iterable[Line]) -> list[PartQuery]:
        own = list(chosen)
        queries = dict.fromkeys(query for line in own for query in self._queries(line))
        sources = dict.fromkeys(map(self._sources_of, own)) if self._columns.needs_sources else {}
        return [*queries, *sources]

    def _status(self, line: Line) -> Status:
        if line.row in self._kept:
            times = [self._fetched_before(query) for query in self._queries(line)]
            return statuses.kept_status(times, self._now, as_sku=self._kept[line.row][0].startswith(FOUND_AS_SKU))
        results = [self._results.get(query) for query in self._queries(line)]
        if None in results:
            return Status(NOT_FETCHED, NOT_FETCHED)
        own = (statuses.result_status(each, self._now) for each in results if each is not None)
        return max(own, key=lambda status: OUTCOMES.index(status.outcome))  # the gravest is last

    def _values(self, line: Line, status: Status) -> dict[int, CellValue]:
        """Return the cells of a line but for its status. Values of an earlier run stay where there are no new ones."""
        # Most columns are about the same best offer, which is chosen once.
        parts = {query.currency: self._part(query) for query in self._queries(line)}
        shared: dict[tuple[object, ...], LinePart] = {}
        cells: dict[int, CellValue] = {}
        if self.totals is not None and self._summed is not None:
            priced = self._line_part(line, self._summed, parts, shared)
            self.totals.add(None if priced is None else priced.best)
        if line.row in self._kept or status.outcome == NOT_FETCHED:
            return cells
        for spec, place in self._places.items():
            if spec == NEEDED:
                cells[place] = number(line.quantity)
            elif (of_sources := KINDS[spec.kind].of_sources) is not None:
                found = self._results.get(self._sources_of(line))
                own = next(iter(parts.values()))
                has_values = found is not None and found.result.error is None
                cells[place] = of_sources(own and own[0], found.result.sources) if found and has_values else None
            elif spec != STATUS:
                part = self._line_part(line, spec, parts, shared)
                cells[place] = None if part is None else KINDS[spec.kind].value(part)
        return cells

    def _line_part(
        self,
        line: Line,
        spec: ColumnSpec,
        parts: Mapping[str, tuple[Part, float] | None],
        shared: dict[tuple[object, ...], LinePart],
    ) -> LinePart | None:
        """Return the part of a line as a column uses it; None without a part, or where the quantity is unclear."""
        quantity, currency = self._quantity(line, spec), self._currency(spec)
        part = parts[currency]
        if part is None or quantity is None:
            return None
        key = quantity, currency, spec.distributor, spec.spec
        if key not in shared:
            rules = self._columns.rules
            shared[key] = LinePart(part[0], quantity, currency, rules, spec.distributor, part[1], spec.spec)
        return shared[key]

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

    def _offers(self) -> Iterator[Sequence[CellValue]] | None:
        """Return the rows of the sheet of offers: as many of each line as are wanted and fit."""
        wanted = self._columns.offers
        if wanted == 0:
            return None
        results = (self._results.get(query) for line in self._lines for query in self._queries(line))
        sizes = Counter(found.offers for found in results if found is not None)
        limit = offers_sheet.kept(sizes, wanted, self._table.offers_max)
        if left_out := offers_sheet.written(sizes, wanted) - offers_sheet.written(sizes, limit):
            self.reasons[f"offers left out: the sheet has room for the best {limit} of each line"] = left_out
        return self._offer_rows(limit)

    def _offer_rows(self, limit: int | None) -> Iterator[Sequence[CellValue]]:
        """Yield the rows: of lines that are kept what the cache has."""
        yield offers_sheet.HEADINGS
        for line in self._lines:
            for query in self._queries(line):
                if (found := self._results.get(query)) is not None:
                    result = found.result._replace(part=found.part)
                    yield from offers_sheet.rows(line, result, self._quantity(line), self._columns.rules, limit)
