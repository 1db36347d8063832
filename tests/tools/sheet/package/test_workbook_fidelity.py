"""In the spelling of every program: what is not changed stays, what is changed reads back, and nothing else appears."""

import random
import re
from decimal import Decimal
from pathlib import Path

import pytest
from support.workbooks import builder, dialects, packed, samples
from support.workbooks.packed import PackedCell

from proxy.tools.sheet.package import cells, workbook

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
