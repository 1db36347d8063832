"""The official sample workbook, where it is recorded beside the repository."""

import zipfile
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.tools.sheet.package import cells, workbook

RECORDED = "shared/recorded/workbooks/NexarSupplytAddInExample.xlsm"
SAMPLE = next((folder / RECORDED for folder in Path(__file__).parents if (folder / RECORDED).exists()), Path(RECORDED))

pytestmark = pytest.mark.skipif(not SAMPLE.exists(), reason="the recorded sample workbook is not here")


def test_changed_results_are_all_that_differs(tmp_path: Path) -> None:
    target = tmp_path / "filled.xlsm"
    changes = {
        (7, 3): cells.CellChange(Decimal("45.8")),  # an array formula with metadata
        (8, 4): cells.CellChange("=no formula"),
        (8, 14): cells.CellChange("new"),
    }
    with workbook.open_package(SAMPLE) as package:
        before = dict(package.rows(package.sheets[0]))
        package.save(target, {"Sample": changes})
    with workbook.open_package(target) as package:
        after = dict(package.rows(package.sheets[0]))

    old, new = zipfile.ZipFile(SAMPLE), zipfile.ZipFile(target)
    assert new.namelist() == old.namelist()
    assert [name for name in old.namelist() if old.read(name) != new.read(name)] == ["xl/worksheets/sheet1.xml"]
    for row, row_cells in before.items():
        expected = [
            cell._replace(value=changes[cell.row, cell.column].value) if (cell.row, cell.column) in changes else cell
            for cell in row_cells
        ]
        assert after[row][: len(row_cells)] == expected
    assert after[8][-1] == cells.Cell(8, 14, "new")
