"""Changes cells in the source text of a worksheet: what is not changed is copied byte for byte.

The sheet streams through: memory holds one chunk, or one changed cell.
"""

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from proxy.tools.sheet.package import layout, markup, reading, strings, xml_events
from proxy.tools.sheet.package.cells import Area, CellChange, parse_area, reference

HELD_MAX = 1 << 23  # bytes of a changed cell with its formula: texts and formulas are limited to far less

Position = tuple[int, int]


class SheetEditor:
    """Gets the events of a sheet, and writes its source text with the changes.

    The lists of rows and columns that are not written yet are in descending order: the next one is the last.
    """

    def __init__(
        self, changes: Mapping[Position, CellChange], fail: xml_events.Fail, look: layout.SheetLook | None = None
    ) -> None:
        self._fail = fail
        self._changes = changes
        self._markup = _CellMarkup(changes, fail)
        self._rows: dict[int, list[int]] = defaultdict(list)
        for row, column in sorted(changes, reverse=True):
            self._rows[row].append(column)
        self._waiting = list(self._rows)
        self._columns: list[int] = []  # of the current row
        self._source = markup.SourceText()
        self._look = None if look is None else layout.LookEditor(look, self._source)
        self._positions = reading.Positions(fail)
        self._depth = 0
        self._in_data = False
        self._tags: list[bytes] = [b""] * 6  # start tags by depth, of what is being changed
        self._cell: _ChangedCell | None = None
        self._formula: _FormulaSpan | None = None
        self._kept_at = -1  # where an element begins that a changed cell keeps
        self._orphans = reading.SharedFormulas(fail)  # those whose defining cell has dropped them

    def edited(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the source text with the changes."""
        parser = xml_events.XmlParser(self, self._fail)
        for chunk in chunks:
            self._source.add(chunk)
            parser.feed(chunk)
            if self._cell is None and self._formula is None:
                self._source.copy(parser.position)
            elif self._source.held > HELD_MAX:
                self._fail(f"has a cell {self._positions} of more than {HELD_MAX >> 20} MiB")
            yield self._source.taken()
        parser.feed(b"", final=True)
        if self._waiting:
            self._fail("has no place for rows")
        yield self._source.finished()

    def start(self, name: str, attributes: dict[str, str], at: int) -> None:
        """Begin an element."""
        self._depth += 1
        if self._look is not None and (self._depth == 2 or (self._depth > 2 and not self._in_data)):
            self._look.start(self._depth, name, attributes, at)
        if self._depth == 1:
            self._positions.enter_sheet(name)
        elif self._depth == 2:
            self._in_data = False
            self._begin_section(name, attributes, at)
        elif not self._in_data:
            if self._depth == 3 and name == "col":
                self._markup.add_column_style(attributes)
            elif self._depth == 3 and name == "mergeCell":
                self._markup.check_merged(attributes.get("ref", ""))
        elif self._depth == 3 and name == "row":
            self._begin_row(attributes, at)
        elif self._depth == 4 and name == "c":
            self._begin_cell(attributes.get("r"), at)
        elif self._depth == 5:
            self._begin_content(name, attributes, at)

    def end(self, name: str, at: int) -> None:
        """End an element."""
        if self._in_data:
            if self._depth == 5:
                self._end_content(at)
            elif self._depth == 4 and self._cell is not None:
                self._end_cell(self._cell, at)
            elif self._depth == 3 and name == "row":
                self._insert_cells(None, at)
            elif self._depth == 2:
                self._insert_rows(None, at)
        if self._look is not None and self._depth < 3:
            self._look.end(self._depth, at)
        self._depth -= 1

    def text(self, data: str) -> None:
        """Text."""
        if self._formula is not None:
            self._formula.text.append(data)

    def _tag(self, at: int) -> bytes:
        """Return the start tag at this offset, and remember it for the end of its element."""
        self._tags[self._depth] = tag = self._source.tag(at)
        return tag

    def _end_of(self, start: int, at: int) -> int:
        """Return the offset behind the current element, which begins at `start`, and whose end tag is at `at`."""
        tag = self._tags[self._depth]
        return start + len(tag) if markup.is_empty(tag) else self._source.end_tag(at)

    def _begin_section(self, name: str, attributes: dict[str, str], at: int) -> None:
        if name == "dimension":
            tag = self._tag(at)
            self._source.replace(at, at + len(tag), self._markup.with_dimension(tag, attributes.get("ref", "")))
        elif name == "sheetData":
            tag = self._tag(at)
            self._in_data, self._markup.ns = True, markup.prefix(tag)
            if markup.is_empty(tag) and self._waiting:
                self._source.replace(at, at, markup.opened(tag))
                self._insert_rows(None, at)
                self._source.replace(at, at + len(tag), b"</%ssheetData>" % self._markup.ns)

    def _begin_row(self, attributes: dict[str, str], at: int) -> None:
        self._positions.enter_row(attributes.get("r"))
        row = self._positions.row
        self._insert_rows(row, at)
        self._columns = []
        if not self._waiting or self._waiting[-1] != row:
            return
        self._columns = self._rows[self._waiting.pop()]
        self._markup.enter_row(attributes)
        tag = self._tag(at)
        changed = markup.with_spans(tag, self._columns[-1], self._columns[0])
        if markup.is_empty(tag):
            cells = self._markup.new_cells(row, self._columns)
            self._columns = []
            changed = markup.opened(changed) + cells + b"</%srow>" % self._markup.ns if cells else changed
        self._source.replace(at, at + len(tag), changed)

    def _begin_cell(self, name: str | None, at: int) -> None:
        self._positions.enter_cell(name)
        if not self._columns:
            return
        column = self._positions.column
        self._insert_cells(column, at)
        if self._columns and self._columns[-1] == column:
            self._columns.pop()
            self._cell = _ChangedCell(at, self._changes[self._positions.row, column])
            self._tag(at)

    def _begin_content(self, name: str, attributes: dict[str, str], at: int) -> None:
        if self._cell is not None and name in ("f", "v", "is"):
            self._markup.replaced.add((self._positions.row, self._positions.column))
        drops = self._cell is not None and self._cell.change.drop_formula
        orphaned = attributes.get("t") == "shared" and attributes.get("si") in self._orphans
        if name == "f" and (drops or orphaned):
            self._tag(at)
            self._formula = _FormulaSpan(at, attributes, dropped=drops)
        elif name in ("f", "extLst") and self._cell is not None:
            self._tag(at)
            self._kept_at = at

    def _end_content(self, at: int) -> None:
        if self._formula is not None:
            self._end_formula(self._formula, self._end_of(self._formula.at, at))
            self._formula = None
        elif self._kept_at >= 0 and self._cell is not None:
            element = self._source.slice(self._kept_at, self._end_of(self._kept_at, at))
            self._cell.keep(element)
            self._kept_at = -1

    def _end_formula(self, formula: "_FormulaSpan", end: int) -> None:
        """Drop a formula, or give it the text that it shared with a cell that has dropped it."""
        index, text = formula.attributes.get("si", ""), strings.unescaped("".join(formula.text))
        if formula.dropped:
            if text and formula.attributes.get("t") == "shared":
                self._orphans.define(index, text, str(self._positions))
            return
        own = strings.escaped(text or self._orphans.text(index, str(self._positions)))
        element = b"<%sf>%s</%sf>" % (self._markup.ns, own.encode(), self._markup.ns)
        if self._cell is None:
            self._source.replace(formula.at, end, element)
        else:
            self._cell.keep(element)

    def _end_cell(self, cell: "_ChangedCell", at: int) -> None:
        changed = self._markup.cell(str(self._positions), self._tags[4], cell.change, cell.formula, cell.extension)
        self._source.replace(cell.at, self._end_of(cell.at, at), changed)
        self._cell = None

    def _insert_cells(self, before: int | None, at: int) -> None:
        """Write the new cells that stand before this column of the current row."""
        inserted: list[int] = []
        while self._columns and (before is None or self._columns[-1] < before):
            inserted.insert(0, self._columns.pop())
        if inserted:
            self._source.replace(at, at, self._markup.new_cells(self._positions.row, inserted))

    def _insert_rows(self, before: int | None, at: int) -> None:
        """Write the new rows that stand before this one."""
        while self._waiting and (before is None or self._waiting[-1] < before):
            row = self._waiting.pop()
            self._markup.enter_row({})
            if cells := self._markup.new_cells(row, self._rows[row]):
                ns = self._markup.ns
                self._source.replace(at, at, b'<%srow r="%d">%s</%srow>' % (ns, row, cells, ns))


class _CellMarkup:
    """Makes the source text of changed and new cells."""

    def __init__(self, changes: Mapping[Position, CellChange], fail: xml_events.Fail) -> None:
        self._changes = changes
        self._fail = fail
        self.ns = b""  # prefix of the sheet's elements
        self._row_style: str | None = None
        self._column_styles: list[tuple[int, int, str]] = []
        self._values = sorted(position for position, change in changes.items() if change.value is not None)
        self.replaced: set[Position] = set()
        """Changed cells that had a formula or value before."""

    def check_merged(self, merged: str) -> None:
        """Refuse values in empty cells that merged cells hide: nobody would see them. What was hidden before may get a
        new value."""
        try:
            area = parse_area(merged)
        except ValueError:
            return
        first = bisect.bisect_left(self._values, (area.first_row, 0))
        for position in itertools.islice(self._values, first, None):
            if position[0] > area.last_row:
                break
            if area.covers(position) and position != area[:2] and position not in self.replaced:
                self._fail(f"has merged cells {area} that would hide {reference(*position)}: unmerge them first")

    def add_column_style(self, attributes: dict[str, str]) -> None:
        """Use the style of these columns for their new cells."""
        first, last, style = (attributes.get(key, "") for key in ("min", "max", "style"))
        if first.isdigit() and last.isdigit() and style.isdigit():
            self._column_styles.append((int(first), int(last), style))

    def enter_row(self, attributes: dict[str, str]) -> None:
        """Use the style of this row for its new cells."""
        custom = attributes.get("customFormat") in ("1", "true") and attributes.get("s", "").isdigit()
        self._row_style = attributes["s"] if custom else None

    def with_dimension(self, tag: bytes, used: str) -> bytes:
        """Return the tag of the used range with the changed cells in it."""
        try:
            areas = [parse_area(used)]
        except ValueError:  # the range is for information only
            return tag
        areas += [Area(*position, *position) for position, change in self._changes.items() if change.value is not None]
        first_rows, first_columns, last_rows, last_columns = zip(*areas, strict=True)
        area = Area(min(first_rows), min(first_columns), max(last_rows), max(last_columns))
        return tag if area == areas[0] else markup.with_attributes(tag, {b"ref": str(area).encode()})

    def cell(self, name: str, tag: bytes, change: CellChange, formula: bytes, extension: bytes) -> bytes:
        """Return the source text of a cell with this start tag."""
        try:
            link = change.link and not formula
            kind, value = markup.cell_content(change.value, calculated=bool(formula), ns=self.ns, link=link)
        except ValueError as error:
            self._fail(f"cannot be written: cell {name} {error}")
        # vm refers to a rich value behind the old result. cm makes the formula a dynamic array.
        attributes: dict[bytes, bytes | None] = {b"t": kind, b"vm": None}
        if not formula:
            attributes[b"cm"] = None
        if change.style is not None:
            attributes[b"s"] = b"%d" % change.style
        tag = markup.opened(markup.with_attributes(tag, attributes))
        content = formula + value + extension
        return tag + content + b"</%sc>" % self.ns if content else tag[:-1] + b"/>"

    def new_cells(self, row: int, columns: list[int]) -> bytes:
        """Return the source text of new cells, of columns in descending order."""
        return b"".join(self._new_cell(row, column) for column in reversed(columns))

    def _new_cell(self, row: int, column: int) -> bytes:
        change = self._changes[row, column]
        if change.value is None and change.style is None:
            return b""
        # A cell without a style does not get that of its row or column: it has to be given to it.
        style = self._row_style or next((s for low, high, s in self._column_styles if low <= column <= high), "0")
        name = reference(row, column)
        tag = f'<c r="{name}"' + (f' s="{style}">' if style != "0" else ">")
        return self.cell(name, b"<" + self.ns + tag[1:].encode(), change, b"", b"")


class _ChangedCell:
    """Cell in the source that is being replaced, and the elements that it keeps."""

    def __init__(self, at: int, change: CellChange) -> None:
        self.at = at
        self.change = change
        self.formula = self.extension = b""

    def keep(self, element: bytes) -> None:
        """Keep the formula, or the extension list behind the value."""
        if markup.local_name(element) == b"f":
            self.formula = element
        else:
            self.extension = element


class _FormulaSpan:
    """Formula in the source that is dropped or replaced."""

    def __init__(self, at: int, attributes: dict[str, str], *, dropped: bool) -> None:
        self.at = at
        self.attributes = attributes
        self.dropped = dropped
        self.text: list[str] = []
