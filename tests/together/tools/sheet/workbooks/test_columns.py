"""`v3bridge sheet fill --columns`: what it adds to workbooks with everything, and what stays as it was."""

import json
from collections.abc import Callable
from pathlib import Path

from support.running_commands import Run
from support.workbooks import builder, calc, packed, samples

PARTS: list[builder.Plain] = [1868783, "SN74S74N", "LM358N", 326]  # numbers stand in numeric cells


def test_columns_stand_right_of_the_data_and_nothing_else_changes(fill: Run, tmp_path: Path) -> None:
    """The sheet of offers has to be registered, and formats added: those four parts change, too."""
    book = samples.everything(PARTS)
    file = book.write(tmp_path / "everything.xlsm")
    before = file.read_bytes()
    result = fill(file, "--columns", "price@100,stock,lead_time,distributor")
    assert result.returncode in (0, 1), result.stderr
    after = (tmp_path / "everything.filled.xlsm").read_bytes()
    new = packed.sheets(after)
    registered = {"[Content_Types].xml", "xl/workbook.xml", "xl/_rels/workbook.xml.rels", new["Offers"]}
    assert packed.different(before, after) == registered | {"xl/styles.xml", new["Sample"]}
    old_cells, new_cells = packed.cells(before, "Sample"), packed.cells(after, "Sample")
    assert {address: new_cells[address] for address in old_cells} == old_cells
    added = {address: cell for address, cell in new_cells.items() if address not in old_cells}
    assert {builder.position(address)[1] for address in added} == set(range(12, 17))
    row = {builder.position(address)[1]: cell for address, cell in added.items() if builder.position(address)[0] == 8}
    assert [row[column].type for column in range(12, 17)] == ["n", "n", "n", "str", "str"]


def test_libreoffice_reads_the_values_of_columns(
    fill: Run, tmp_path: Path, needs_program: Callable[[str], str]
) -> None:
    rows: list[list[builder.AnyCell]] = [["MPN", "Qty", "Note"]]
    rows += [[part, 10 * number, "=1+1"] for number, part in enumerate(PARTS, 1)]
    file = samples.bom(rows).write(tmp_path / "BOM.xlsx")
    assert fill(file, "--columns", "price@100,price:EUR,stock,lead_time,datasheet,description").returncode in (0, 1)
    filled = tmp_path / "BOM.filled.xlsx"
    read = calc.opened(needs_program("soffice"), filled, tmp_path)
    assert set(read) == {"BOM", "Offers"}
    for sheet, cells in read.items():
        written = packed.values(packed.cells(filled.read_bytes(), sheet))
        assert len(written) > 20
        assert packed.values(cells) == written


def test_in_place_keeps_the_original_as_a_backup(fill: Run, tmp_path: Path) -> None:
    file = samples.bom([["MPN"], *([part] for part in PARTS)]).write(tmp_path / "BOM.xlsx")
    before = file.read_bytes()
    fill(file, "--columns", "stock", "--in-place")
    (backup,) = tmp_path.glob("BOM.backup-*.xlsx")
    assert backup.read_bytes() == before
    assert "Offers" in packed.sheets(file.read_bytes())


def test_second_run_costs_nothing(fill: Run, tmp_path: Path) -> None:
    file = samples.bom([["MPN"], ["SN74S74NE4"], ["CD4013BE"]]).write(tmp_path / "BOM.xlsx")
    first, second = (json.loads(fill(file, "--columns", "stock", "--json").stdout) for _ in range(2))
    assert first["parts_spent"] > 0
    assert (second["parts_spent"], second["upstream_requests"]) == (0, 0)
    assert second["lines"] == first["lines"] == 2
