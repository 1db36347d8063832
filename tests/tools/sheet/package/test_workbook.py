"""Any set of changes: exactly these cells differ, for this reader and for openpyxl, and no other part."""

import os
import random
import re
import stat
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
from support import cases
from support.workbooks import builder, dialects, hostile, packed, samples
from support.workbooks.packed import PackedCell
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
@settings(max_examples=50, deadline=None)
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


PARTS: list[builder.Plain] = [1868783, "SN74S74N", "X<&>"]
VALUES = (Decimal("0.125"), Decimal("1E+3"), "=SUM(1)", " a<&>é\U0001f600\"'\n", "-1", "", True, None)
ROWS, COLUMNS = (1, 2, 3, 5, 7, 8, 9, 12, 40), (1, 2, 3, 4, 5, 8, 11, 12, 30)
SHARED = {(6, 2), (7, 2)}  # of Summary: their formula's text stands in B5
CHAIN = "xl/calcChain.xml"
Changes = dict[str, dict[tuple[int, int], cells.CellChange]]


def _changes(seed: int, sheets: list[str]) -> Changes:
    chosen = random.Random(seed)
    return {
        sheet: {
            (chosen.choice(ROWS), chosen.choice(COLUMNS)): cells.CellChange(
                chosen.choice(VALUES), drop_formula=chosen.random() < 0.3, style=chosen.choice([None, 3])
            )
            for _ in range(chosen.randint(1, 6))
        }
        for sheet in chosen.sample(sheets, 3)
    }


@pytest.fixture(params=dialects.PROGRAMS, ids=lambda dialect: dialect.name)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    book = samples.everything(PARTS, dialect=request.param, prices=[("ADA500", "Digi-Key", 100)])
    return book.write(tmp_path / "everything.xlsm")


def _by_position(package: bytes, sheet: str) -> dict[tuple[int, int], PackedCell]:
    return {builder.position(address): cell for address, cell in packed.cells(package, sheet).items()}


def test_cells_read_are_those_of_the_file(file: Path) -> None:
    with workbook.open_package(file) as package:
        for sheet in package.sheets:
            written = _by_position(file.read_bytes(), sheet.name)
            read = {(cell.row, cell.column): cell for _, row in package.rows(sheet) for cell in row}
            assert all(written[place].value is None for place in written.keys() - read.keys())
            for place, cell in read.items():
                source = written[place]
                assert (cell.formula is None) == (source.formula is None)
                assert _same(cell.value, source), (sheet.name, place)


def _same(value: cells.CellValue, source: PackedCell) -> bool:
    if source.type == "str":
        return (value or "") == (source.value or "")
    if source.type == "b":
        return value is (source.value == "1")
    if source.type == "n" and source.value:
        return value == Decimal(source.value) and isinstance(value, Decimal)
    return not isinstance(value, str | Decimal)


@pytest.mark.parametrize("seed", range(3))
def test_only_changed_cells_differ(file: Path, tmp_path: Path, seed: int) -> None:
    before, target = file.read_bytes(), tmp_path / "filled.xlsm"
    with workbook.open_package(file) as package:
        changes = _changes(seed, [sheet.name for sheet in package.sheets])
        package.save(target, changes)
    after = target.read_bytes()
    old, new = packed.members(before), packed.members(after)
    parts = packed.sheets(before)
    assert list(new) == list(old)
    different = {name for name in old if old[name] != new[name]} - {parts[sheet] for sheet in changes}
    dropped = {
        (sheet, place)
        for sheet in changes
        for place, cell in _by_position(before, sheet).items()
        if cell.formula is not None and place in changes[sheet] and changes[sheet][place].drop_formula
    }
    # Excel reports a damaged file where the chain names a cell without a formula.
    assert different == ({CHAIN} if dropped else set())
    assert _chain(before) - _chain(after) == dropped
    assert file.read_bytes() == before
    for sheet, part in parts.items():
        if "chartsheets" not in part:
            _check(sheet, changes.get(sheet, {}), _by_position(before, sheet), _by_position(after, sheet))


def _chain(package: bytes) -> set[tuple[str, tuple[int, int]]]:
    names = list(packed.sheets(package))
    cells_named = re.findall(r'<(?:\w+:)?c r="([A-Z]+[0-9]+)" i="([0-9]+)"', packed.contents(package)[CHAIN].decode())
    return {(names[int(number) - 1], builder.position(address)) for address, number in cells_named}


def _check(
    sheet: str,
    changes: dict[tuple[int, int], cells.CellChange],
    old: dict[tuple[int, int], PackedCell],
    new: dict[tuple[int, int], PackedCell],
) -> None:
    assert set(new) <= set(old) | set(changes)
    for place in old.keys() - changes.keys():
        if sheet == "Summary" and place in SHARED and (5, 2) in changes:
            # Without its first cell a shared formula is written out in the others.
            assert (new[place].value, new[place].formula) in {(old[place].value, text) for text in ("", "ROW()*2")}
        else:
            assert new[place] == old[place], (sheet, place)
    for place, change in changes.items():
        written = new.get(place, PackedCell("n", None, None, {}, {}))
        assert _same(change.value, written), (sheet, place, change, written)
        formula = old[place].formula if place in old and not change.drop_formula else None
        assert written.formula == formula


# Sound as packages: that there is nothing to fill is said by whoever looks for columns.
WITHOUT_A_COLUMN = {"no column of part numbers.xlsx", "sheet without a cell.xlsx", "workbook without sheets.xlsx"}
PRICE = cells.CellChange(Decimal("0.12"))


def _fill(folder: Path, name: str, content: bytes) -> None:
    """Read every row, and write a copy with one more value; nothing else may be left behind or changed."""
    file, target = folder / name, folder / "filled.xlsx"
    file.write_bytes(content)
    try:
        with workbook.open_package(file) as package:
            for sheet in package.sheets:
                for _ in package.rows(sheet):
                    pass
            package.save(target, {sheet.name: {(2, 7): PRICE} for sheet in package.sheets[:1]})
    finally:
        assert file.read_bytes() == content
        assert {path.name for path in folder.iterdir()} <= {name, target.name}


@pytest.mark.parametrize("name", [name for name in hostile.REFUSED if ".xls" in name and name not in WITHOUT_A_COLUMN])
def test_useless_file_is_one_line_that_names_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(errors.SheetError) as error:
        _fill(tmp_path, name, hostile.REFUSED[name]())
    assert str(tmp_path / name) in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < len(str(tmp_path)) + 250
    assert not (tmp_path / "filled.xlsx").exists()


@pytest.mark.parametrize("name", [name for name in hostile.ODD if ".xls" in name])
def test_odd_file_is_filled_or_refused(tmp_path: Path, name: str) -> None:
    refusal = ""
    try:
        _fill(tmp_path, name, hostile.ODD[name]())
    except errors.SheetError as error:
        refusal = str(error)
    assert refusal.isprintable()
    assert (tmp_path / "filled.xlsx").exists() == (not refusal)


@cases.parametrize("name, words")
def test_error_says_what_is_wrong(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(errors.SheetError, match=words):
        _fill(tmp_path, name, hostile.REFUSED[name]())


@pytest.mark.parametrize("kind", ["folder", "pipe", "broken link", "link to itself", "device"])
def test_what_is_no_file_is_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bom.xlsx"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)  # nobody will ever write to it
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.symlink_to("nowhere.xlsx" if kind == "broken link" else path)
    with pytest.raises(errors.SheetError) as error:
        workbook.open_package(path)
    assert str(path) in str(error.value)
    assert str(error.value).isprintable()


def test_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "bom.xlsx"
    file.write_bytes(builder.pack(hostile.good()))
    for target in (tmp_path / "missing" / "out.xlsx", tmp_path / f"{'x' * 300}.xlsx", Path("/proc/out.xlsx")):
        with workbook.open_package(file) as package, pytest.raises(errors.SheetError, match="cannot be written"):
            package.save(target, {"BOM": {(2, 7): PRICE}})
    (tmp_path / "folder.xlsx").mkdir()
    with workbook.open_package(file) as package, pytest.raises(errors.SheetError, match="cannot be written"):
        package.save(tmp_path / "folder.xlsx", {"BOM": {(2, 7): PRICE}})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bom.xlsx", "folder.xlsx"]


def test_copy_has_the_permissions_of_the_file(tmp_path: Path) -> None:
    file, target = tmp_path / "bom.xlsx", tmp_path / "filled.xlsx"
    file.write_bytes(builder.pack(hostile.good()))
    file.chmod(0o640)
    with workbook.open_package(file) as package:
        package.save(target, {"BOM": {(2, 7): PRICE}})
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


DAMAGED = ("xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "[Content_Types].xml")
DAMAGE = (
    b"", b'"', b"<", b"</", b"A0", b"9" * 30, b"-", b' t="s"', b' t="d"', b"<c/>", b"<row/>", b"<v>", b"e999",
    b'<f t="shared" si="0"/>', b"&#0;", b"<![CDATA[", b"\xff", b"\0", b"_xD800_", b"</c>", b"<mergeCell/>",
)  # fmt: skip


@given(st.sampled_from(DAMAGED), st.floats(0, 1), st.integers(0, 12), st.sampled_from(DAMAGE))
@settings(max_examples=50, deadline=None)
def test_damage_at_any_place_is_refused_in_one_line_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, part: str, share: float, removed: int, inserted: bytes
) -> None:
    content = hostile.good()
    at = int(share * len(content[part]))
    content[part] = content[part][:at] + inserted + content[part][at + removed :]
    try:
        _fill(tmp_path_factory.mktemp("damaged"), "book.xlsx", builder.pack(content))
    except errors.SheetError as error:
        assert str(error).isprintable()  # noqa: PT017
