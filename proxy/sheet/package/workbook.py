"""A workbook file (.xlsx, .xlsm): its sheets, their rows, and a copy with changed cells.

Nothing but changed cells differs in a copy: other parts are copied as packed bytes, and within a changed sheet
everything but these cells as source text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from proxy import errors
from proxy.sheet.package import archive, editing, names, reading, saving, strings, structure, xml_events
from proxy.sheet.package.cells import Area, Cell, CellChange, NewSheet, parse_area

SHEET_MAX = 1 << 32  # bytes of a sheet: 1 048 576 rows of 80 cells, at 50 bytes a cell
STRINGS_MAX = 1 << 29  # bytes of the shared strings, which are kept in memory


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
        self.sheets: Sequence[structure.Sheet] = self._structure.sheets

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._archive.close()

    @property
    def date_1904(self) -> bool:
        """Whether dates count from 1904 instead of 1900."""
        return self._structure.date_1904

    def rows(self, sheet: structure.Sheet) -> Iterator[tuple[int, list[Cell]]]:
        """Yield (number, cells) of the rows that stand in the file, in a stream."""
        reader = reading.RowReader(self._shared_strings(), self._failing(sheet), date_1904=self.date_1904)
        return reader.rows(self._source(sheet, []))

    def layout(self, sheet: structure.Sheet) -> structure.SheetLayout:
        """Return the tables and merged cells of a sheet."""
        tables = list(structure.tables(self._parts, sheet))
        merged = _MergedCells(self._failing(sheet))
        merged.load(self._source(sheet, []))
        headers = tuple(header for _, header in tables if header is not None)
        return structure.SheetLayout(tuple(area for area, _ in tables), tuple(merged.areas), headers)

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
    ) -> None:
        """Write a copy with changed cells, by the names of their sheets, to `target`, which may be the file itself."""
        for new in new_sheets:
            raise errors.SheetError(f"{self.path}: the sheet {structure.visible(new.name)!r} cannot be added yet")
        by_name = {sheet.name: sheet for sheet in self.sheets}
        edited = {by_name[name].part: (by_name[name], cells) for name, cells in changes.items() if cells}
        with saving.replacing(target, self.path) as stream:
            writer = archive.ArchiveWriter(stream)
            for member in self._archive.members.values():
                if member.name in edited:
                    sheet, cells = edited[member.name]
                    writer.write(member.name, self._edited(sheet, cells), member)
                else:
                    writer.copy(self._archive, member)
            writer.finish(self._archive.comment)

    def _edited(self, sheet: structure.Sheet, cells: Mapping[tuple[int, int], CellChange]) -> Iterator[bytes]:
        encoding: list[str] = []
        editor = editing.SheetEditor(cells, self._failing(sheet))
        for chunk in editor.edited(self._source(sheet, encoding)):
            yield chunk if encoding[0] == "utf-8" else chunk.decode().encode(encoding[0])

    def _source(self, sheet: structure.Sheet, encoding: list[str]) -> Iterator[bytes]:
        return xml_events.utf8(self._archive.chunks(sheet.part, SHEET_MAX), self._failing(sheet), encoding)

    def _shared_strings(self) -> strings.SharedStrings | None:
        part = self._structure.shared_strings
        if self._strings is None and part is not None:
            fail = self._parts.failing(part)
            shared = strings.SharedStrings(fail)
            shared.load(xml_events.utf8(self._archive.chunks(part, STRINGS_MAX), fail))
            self._strings = shared
        return self._strings

    def _failing(self, sheet: structure.Sheet) -> xml_events.Fail:
        def fail(problem: str) -> NoReturn:
            raise errors.SheetError(f"{self.path}: the sheet {structure.visible(sheet.name)!r} {problem}")

        return fail


class _MergedCells:
    """Collects the merged areas of a sheet."""

    def __init__(self, fail: xml_events.Fail) -> None:
        self._fail = fail
        self.areas: list[Area] = []

    def load(self, chunks: Iterable[bytes]) -> None:
        for _ in xml_events.XmlParser(self, self._fail).run(chunks):
            pass

    def start(self, name: str, attributes: dict[str, str], _: int) -> None:
        if name == "mergeCell":
            try:
                self.areas.append(parse_area(attributes.get("ref", "")))
            except ValueError as error:
                self._fail(f"has wrong merged cells: {error}")

    def end(self, _: str, __: int) -> None:
        pass

    def text(self, _: str) -> None:
        pass


def open_package(path: Path) -> Package:
    """Open a workbook; a context manager. Raises SheetError for a file that is none, or that is not safe to read."""
    return Package(Path(path))
