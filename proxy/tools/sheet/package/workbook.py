"""A workbook file (.xlsx, .xlsm): its sheets, their rows, and a copy with changed cells.

Nothing but changed cells differs in a copy: other parts are copied as packed bytes, and within a changed sheet
everything but these cells as source text.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn, Self

from proxy import errors
from proxy.tools.sheet.package import (
    archive,
    editing,
    formats,
    names,
    reading,
    registering,
    saving,
    strings,
    structure,
    xml_events,
)
from proxy.tools.sheet.package.cells import Cell, CellChange, ColumnLook, NewSheet, parse_area, reference
from proxy.tools.sheet.package.layout import SheetLook

SHEET_MAX = 1 << 32  # bytes of a sheet: 1 048 576 rows of 80 cells, at 50 bytes a cell
STRINGS_MAX = 1 << 28  # bytes of the shared strings, which are kept in memory

ARRAY_MAX = 1 << 16  # cells of an array formula that are looked for in the calculation chain


class Package:
    """Open workbook. `sheets` are its worksheets in order, hidden ones among them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._archive = archive.Archive(path)
        try:
            self._parts = structure.Parts(self._archive)
            self._structure = structure.read(self._parts)
        except BaseException:
            self._archive.close()
            raise
        self._strings: strings.SharedStrings | None = None
        self._expanded: Counter[str] = Counter()  # characters of shared formulas in their cells, by sheet
        self.sheets: Sequence[structure.Sheet] = self._structure.sheets

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    @cached_property
    def _formats(self) -> formats.CellFormats | None:
        part = self._structure.styles
        return None if part is None else formats.CellFormats(self._parts.source(part), self._parts.elements(part))

    @property
    def date_1904(self) -> bool:
        """Whether dates count from 1904 instead of 1900."""
        return self._structure.date_1904

    def rows(self, sheet: structure.Sheet, *, formulas: bool = True) -> Iterator[tuple[int, list[Cell]]]:
        """Yield (number, cells) of the rows that stand in the file, in a stream. Without `formulas`, shared formulas
        have no text, and cost nothing."""
        fail = self._failing(sheet)
        room = reading.EXPANDED_MAX - self._expanded.total() + self._expanded[sheet.part]  # a second reading is no more
        shared = reading.SharedFormulas(fail, room) if formulas else None
        reader = reading.RowReader(self._shared_strings(), fail, shared, date_1904=self.date_1904)
        yield from reader.rows(self._source(sheet))
        if shared is not None:
            self._expanded[sheet.part] = shared.expanded

    def number_formats(self) -> Sequence[str]:
        """Return the number format of each style, as `Cell.style` counts them."""
        return () if self._formats is None else self._formats.number_formats

    def style(self, base: int, look: ColumnLook | None = None, *, bold: bool = False) -> int:
        """Return the style that has a look beside cells of the style `base`. `save` adds it where it is new."""
        return base if self._formats is None else self._formats.style(base, look, bold=bold)

    def defined_names(self) -> Iterator[names.DefinedName]:
        """Yield the defined names of the workbook and of its sheets."""
        return names.defined_names(self._parts, self._structure.workbook)

    def named_tables(self) -> Iterator[names.NamedTable]:
        """Yield the Excel tables of all sheets."""
        for sheet in self.sheets:
            yield from names.named_tables(self._parts, sheet)

    def save(
        self,
        target: Path,
        changes: Mapping[str, Mapping[tuple[int, int], CellChange]],
        new_sheets: Iterable[NewSheet] = (),
        looks: Mapping[str, SheetLook] = MappingProxyType({}),
    ) -> None:
        """Write a copy with changed cells, by the names of their sheets, to `target`, which may be the file itself.
        `looks` are those of changed sheets; one with Excel tables has their filters."""
        by_name = {sheet.name: sheet for sheet in self.sheets}
        if unknown := [name for name in changes if name not in by_name]:
            raise errors.SheetError(f"{self.path}: has no sheet {structure.visible(unknown[0])!r}")
        edited = {by_name[name].part: (by_name[name], cells) for name, cells in changes.items() if cells}
        for sheet, cells in edited.values():
            self._check_tables(sheet, cells)
        looks = {
            name: look._replace(filtered=None) if any(names.named_tables(self._parts, by_name[name])) else look
            for name, look in looks.items()
        }
        edits = registering.PartEdits(self._parts, self._structure)
        for name, look in looks.items():
            edits.widen_filter(by_name[name], look)
        added = [(*edits.add_sheet(new.name), new, self._column_styles(new)) for new in new_sheets]
        styles = None if self._formats is None else self._formats.edited()
        if styles is not None and self._structure.styles is not None:
            edits.replace(self._structure.styles, styles)
        self._drop_calculated(edits, edited.values())
        with saving.replacing(target, self.path) as stream:
            writer = archive.ArchiveWriter(stream)
            for member in self._archive.members.values():
                if member.name in edited:
                    sheet, cells = edited[member.name]
                    writer.write(member.name, self._edited(sheet, cells, looks.get(sheet.name)), member)
                elif member.name not in edits.changed:
                    writer.copy(self._archive, member)
                elif (content := edits.content(member.name)) is not None:
                    writer.write(member.name, [content], member)
            for part, name, new, column_styles in added:
                strict = self._structure.strict
                writer.write(part, registering.sheet_source(new, column_styles, strict=strict, name=name))
            writer.finish(self._archive.comment)

    def _edited(
        self, sheet: structure.Sheet, cells: Mapping[tuple[int, int], CellChange], look: SheetLook | None
    ) -> Iterator[bytes]:
        source = self._source(sheet)
        for chunk in editing.SheetEditor(cells, self._failing(sheet), look).edited(source):
            yield source.encoded(chunk)

    def _column_styles(self, new: NewSheet) -> list[int]:
        return [self.style(0, bold=True), *(self.style(0, look) for look in new.looks)]

    def _check_tables(self, sheet: structure.Sheet, cells: Mapping[tuple[int, int], CellChange]) -> None:
        """Refuse changes of table headers: the table names its columns, too, and Excel would call the file damaged."""
        for table in names.named_tables(self._parts, sheet):
            for position in cells:
                if table.header is not None and table.header.covers(position):
                    self._failing(sheet)(
                        f"has an Excel table with its header in {reference(*position)}, which must stay as it is"
                    )

    def _drop_calculated(
        self,
        edits: registering.PartEdits,
        edited: Iterable[tuple[structure.Sheet, Mapping[tuple[int, int], CellChange]]],
    ) -> None:
        """Take cells that lose their formula out of the calculation chain; otherwise Excel repairs the file."""
        chain = self._structure.calc_chain
        dropped = {
            sheet: {position for position, change in cells.items() if change.drop_formula} for sheet, cells in edited
        }
        if chain is None or not edits.drop_calculated(chain, dropped):
            return  # most changes are of cells without formula: these sheets need not be read again
        arrays = {sheet: self._array_cells(sheet, positions) for sheet, positions in dropped.items() if positions}
        if edits.changed[chain] is not None:
            edits.drop_calculated(chain, arrays)

    def _array_cells(self, sheet: structure.Sheet, positions: set[tuple[int, int]]) -> set[tuple[int, int]]:
        """Return the cells of array formulas that are defined at these positions; each is in the chain."""
        return {
            position
            for _, row in self.rows(sheet)
            for cell in row
            if cell.formula is not None and cell.formula.kind == "array" and (cell.row, cell.column) in positions
            for position in _cells(cell.formula.reference or "")
        }

    def _source(self, sheet: structure.Sheet) -> xml_events.Utf8Source:
        return xml_events.Utf8Source(self._archive.chunks(sheet.part, SHEET_MAX), self._failing(sheet))

    def _shared_strings(self) -> strings.SharedStrings | None:
        part = self._structure.shared_strings
        if self._strings is None and part is not None:
            shared = strings.SharedStrings(self._parts.failing(part))
            shared.load(self._parts.utf8(part, STRINGS_MAX))
            self._strings = shared
        return self._strings

    def _failing(self, sheet: structure.Sheet) -> xml_events.Fail:
        def fail(problem: str) -> NoReturn:
            raise errors.SheetError(f"{self.path}: the sheet {structure.visible(sheet.name)!r} {problem}")

        return fail


def _cells(area: str) -> Iterator[tuple[int, int]]:
    """Yield the cells of a range, as many as a formula can fill in practice."""
    try:
        parsed = parse_area(area)
    except ValueError:
        return
    rows = range(parsed.first_row, parsed.last_row + 1)
    columns = range(parsed.first_column, parsed.last_column + 1)
    yield from itertools.islice(itertools.product(rows, columns), ARRAY_MAX)


def open_package(path: Path) -> Package:
    """Open a workbook; a context manager. Raises SheetError for a file that is none, or that is not safe to read."""
    return Package(Path(path))


def is_signed(path: Path) -> bool:
    """Return whether a workbook has a digital signature, which any change makes invalid. Raises SheetError."""
    with archive.Archive(path) as members:
        return any(name.lower().startswith("_xmlsignatures/") for name in members.members)
