"""Any set of changes: exactly these cells differ, for this reader and for openpyxl, and no other part."""

import tracemalloc
import zipfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.sheet.package import exact_workbook

from proxy import errors
from proxy.tools.sheet.package import cells, workbook

Place = tuple[int, int]
Rows = Mapping[Place, cells.Cell]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["=1+1", "-1", " x ", "_x000D_"]
)
numbers = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15)
values = st.none() | st.booleans() | texts | numbers | st.just(cells.CellError("#N/A"))
places = st.tuples(st.integers(1, 12) | st.just(cells.ROWS_MAX), st.integers(1, 12) | st.just(cells.COLUMNS_MAX))
changes = st.builds(cells.CellChange, values, st.booleans(), st.none() | st.integers(0, 2))


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook that openpyxl wrote, with values and formulas of all types, and cells without."""
    written = openpyxl.Workbook()
    for sheet in (written.active, written.create_sheet("Zwei & <3>")):
        for row in range(2, 9, 2):
            for column in range(1, 9, 3):
                sheet.cell(row, column, [1.5, "text", True, "=A1&B2", None, "#REF!"][(row + column) % 6])
        sheet["J10"] = openpyxl.worksheet.formula.ArrayFormula("J10:J11", "=A1:A2*2")
        sheet["C3"].font = openpyxl.styles.Font(bold=True)
        sheet["C5"].number_format = "0.00"
    path = tmp_path_factory.mktemp("book") / "book.xlsx"
    written.save(path)
    return path


def read(path: Path, name: str) -> Rows:
    with workbook.open_package(path) as package:
        sheet = next(sheet for sheet in package.sheets if sheet.name == name)
        return {cell[:2]: cell for _, row in package.rows(sheet) for cell in row}


def expected(old: cells.Cell | None, place: Place, change: cells.CellChange) -> cells.Cell:
    base = old or cells.Cell(*place, None)
    formula = None if change.drop_formula else base.formula
    return base._replace(
        value=change.value, formula=formula, style=base.style if change.style is None else change.style
    )


@given(st.dictionaries(places, changes, max_size=12))
@settings(max_examples=150, deadline=None)
def test_exactly_the_changed_cells_differ(
    tmp_path_factory: pytest.TempPathFactory, book: Path, changed: dict[Place, cells.CellChange]
) -> None:
    target = tmp_path_factory.getbasetemp() / "filled.xlsx"
    with workbook.open_package(book) as package:
        name = package.sheets[1].name
        package.save(target, {name: changed})
    before, after = read(book, name), read(target, name)
    wanted = dict(before) | {place: expected(before.get(place), place, change) for place, change in changed.items()}
    assert {place: cell for place, cell in wanted.items() if cell[2:] != (None, 0, None)} == {
        place: cell for place, cell in after.items() if cell[2:] != (None, 0, None)
    }
    old, new = zipfile.ZipFile(book), zipfile.ZipFile(target)
    assert new.namelist() == old.namelist()
    different = [name for name in old.namelist() if old.read(name) != new.read(name)]
    assert different == ["xl/worksheets/sheet2.xml"] * bool(different)
    check_with_openpyxl(book, target, name, changed)


def check_with_openpyxl(book: Path, target: Path, name: str, changed: dict[Place, cells.CellChange]) -> None:
    """Compare formulas and styles of all cells, and the values of changed ones, as openpyxl reads them."""
    # Private: reading a cell in any other way makes it.
    old, new = (openpyxl.load_workbook(path)[name]._cells for path in (book, target))
    results = openpyxl.load_workbook(target, data_only=True)[name]._cells
    for place in old.keys() | new.keys():
        if place not in changed:
            assert facts(new[place]) == facts(old[place])
    for place, change in changed.items():
        if place not in new:
            assert (change.value, change.style or 0) == (None, 0)
            continue
        kept = place in old and old[place].data_type == "f" and not change.drop_formula
        assert (new[place].data_type == "f") == kept
        assert same(results[place].value, change.value)
        if change.style is not None:
            assert new[place].style_id == change.style


def facts(cell: Any) -> tuple[Any, ...]:
    return getattr(cell.value, "text", cell.value), cell.data_type, cell.style_id


def same(read_value: Any, value: cells.CellValue) -> bool:
    match value:
        case Decimal():
            return float(read_value) == float(value)
        case cells.CellError(code):
            return bool(read_value == code)
        case str():
            escaped = openpyxl.utils.escape.unescape(read_value or "") if "_x" in (read_value or "") else read_value
            return (escaped or "") == value
    return read_value is value


def test_saving_without_changes_gives_the_same_members(tmp_path: Path, book: Path) -> None:
    target = tmp_path / "copy.xlsx"
    with workbook.open_package(book) as package:
        package.save(target, {sheet.name: {} for sheet in package.sheets})
    assert target.read_bytes() == book.read_bytes()


def test_a_workbook_can_be_saved_in_its_own_place(tmp_path: Path, book: Path) -> None:
    path = tmp_path / "own.xlsx"
    path.write_bytes(book.read_bytes())
    with workbook.open_package(path) as package:
        package.save(path, {"Sheet": {(1, 1): cells.CellChange("first")}})
        package.save(path, {"Sheet": {(1, 2): cells.CellChange("second")}})  # of the workbook as it was opened
    assert [cell.value for cell in read(path, "Sheet").values()][:1] == ["second"]


def test_an_unknown_sheet_is_refused(tmp_path: Path, book: Path) -> None:
    with workbook.open_package(book) as package, pytest.raises(errors.SheetError, match="has no sheet 'None'"):
        package.save(tmp_path / "x.xlsx", {"None": {(1, 1): cells.CellChange("x")}})


def test_reading_and_saving_take_the_same_memory_for_ten_times_the_rows(tmp_path: Path) -> None:
    peaks = [_peak(tmp_path, rows) for rows in (2_000, 20_000)]
    assert peaks[1] < 1.2 * peaks[0] + 100_000


def _peak(folder: Path, rows: int) -> int:
    """Return the greatest memory in use while all rows are read, and one is changed."""
    lines = "".join(
        f'<row r="{i}"><c r="A{i}" t="inlineStr"><is><t>part {i}</t></is></c></row>' for i in range(1, rows + 1)
    )
    path = exact_workbook.written(folder / f"{rows}.xlsx", exact_workbook.parts(exact_workbook.sheet(lines)))
    tracemalloc.start()
    try:
        with workbook.open_package(path) as package:
            assert sum(1 for _ in package.rows(package.sheets[0])) == rows
            package.save(folder / "filled.xlsx", {"One": {(rows // 2, 2): cells.CellChange("x")}})
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
