"""Which formulas depend on which cells: transitively, over all sheets, and in circles. No I/O, no recursion."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from proxy.tools.sheet.formulas.references import CellArea, CellPosition

_SMALL = 64  # cells of an area that is looked up cell by cell


class FormulaLinks(NamedTuple):
    """What a formula reads, and the cells that its result fills: its own, or an array formula's range.

    `of_all`: the text does not say what it reads, as with INDIRECT. `calculable`: LibreOffice has all of its functions.
    """

    reads: tuple[CellArea, ...]
    fills: CellArea
    of_all: bool = False
    calculable: bool = True


class CellColumns:
    """Set of cells that finds those of an area: sorted rows of each column of each sheet."""

    def __init__(self, cells: Iterable[CellPosition]) -> None:
        rows: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for cell in cells:
            rows[cell.sheet][cell.column].append(cell.row)
        self._rows = {
            sheet: {column: sorted(numbers) for column, numbers in sorted(columns.items())}
            for sheet, columns in rows.items()
        }

    def intersects(self, area: CellArea) -> bool:
        """Return true if one of the cells is in an area."""
        for column, rows in self._rows.get(area.sheet, {}).items():
            if area.left <= column <= area.right:
                place = bisect_left(rows, area.top)
                if place < len(rows) and rows[place] <= area.bottom:
                    return True
        return False

    def within(self, area: CellArea) -> Iterator[CellPosition]:
        """Yield the cells of an area."""
        for column, rows in self._rows.get(area.sheet, {}).items():
            if area.left <= column <= area.right:
                for row in rows[bisect_left(rows, area.top) : bisect_right(rows, area.bottom)]:
                    yield CellPosition(area.sheet, row, column)


class FormulaDependencies:
    """The formulas of a workbook and what each of them reads."""

    def __init__(self, formulas: Mapping[CellPosition, FormulaLinks]) -> None:
        self._formulas = formulas
        self._readers: dict[CellPosition, list[CellPosition]] = defaultdict(list)
        self._wide: list[tuple[CellArea, CellPosition]] = []
        for formula, links in formulas.items():
            for area in links.reads:
                if (cell := area.one_cell) is not None:
                    self._readers[cell].append(formula)
                elif area.size <= _SMALL:
                    for cell in area.cells():
                        self._readers[cell].append(formula)
                else:
                    self._wide.append((area, formula))
        self._of_all = [formula for formula, links in formulas.items() if links.of_all]

    def dependents(self, changed: Collection[CellPosition]) -> set[CellPosition]:
        """Return the formulas to calculate again where those of `changed` have new results, these included."""
        dirty = set(changed)
        if dirty:
            dirty.update(self._of_all)
        queue = list(dirty)
        wide = self._wide
        while queue:
            filled = list(self._spread(queue, dirty))
            # Areas are compared with all cells at once: one by one would take their product.
            columns, missed, queue = CellColumns(filled), [], []
            for area, formula in wide:
                if formula in dirty:
                    continue
                if columns.intersects(area):
                    dirty.add(formula)
                    queue.append(formula)
                else:
                    missed.append((area, formula))
            wide = missed
        return dirty

    def _spread(self, queue: list[CellPosition], dirty: set[CellPosition]) -> Iterator[CellPosition]:
        """Add all readers of single cells to `dirty`; yield every cell that a formula of `dirty` newly fills."""
        while queue:
            formula = queue.pop()
            for cell in self._filled(formula):
                yield cell
                for reader in self._readers.get(cell, ()):
                    if reader not in dirty:
                        dirty.add(reader)
                        queue.append(reader)

    def _filled(self, formula: CellPosition) -> Iterable[CellPosition]:
        links = self._formulas.get(formula)
        # The first cell that a formula fills is its own.
        return (formula,) if links is None or links.fills.size == 1 else links.fills.cells()

    def circle(self, starts: Iterable[CellPosition], dirty: Collection[CellPosition]) -> Sequence[CellPosition]:
        """Return the cells of a circular reference that one of `starts` is part of or depends on; empty without one.
        Only cells of `dirty` are followed."""
        owners = {cell: formula for formula in dirty for cell in self._filled(formula)}
        columns = CellColumns(owners)
        finished: set[CellPosition] = set()
        for start in starts:
            path: dict[CellPosition, Iterator[CellPosition]] = {}
            following: CellPosition | None = start
            while following is not None:
                if following in path:
                    members = list(path)
                    return members[members.index(following) :]
                if following not in finished:
                    path[following] = self._read_by(following, columns)
                following = None
                while path and following is None:
                    current = next(reversed(path))
                    cell = next(path[current], None)
                    if cell is None:
                        finished.add(current)
                        del path[current]
                    else:
                        following = owners[cell]
        return ()

    def _read_by(self, formula: CellPosition, columns: CellColumns) -> Iterator[CellPosition]:
        links = self._formulas.get(formula)
        for area in links.reads if links else ():
            yield from columns.within(area)
