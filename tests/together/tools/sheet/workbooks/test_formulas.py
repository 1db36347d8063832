"""`v3bridge sheet fill` on formulas: new values of the same type, and nothing else changes."""

import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from support.running_commands import Run
from support.workbooks import builder, calc, dialects, packed, samples

RECORDED = "shared/recorded/workbooks/NexarSupplytAddInExample.xlsm"
OFFICIAL = next(
    (folder / RECORDED for folder in Path(__file__).parents if (folder / RECORDED).exists()), Path(RECORDED)
)
PARTS: list[builder.Plain] = [1868783, "SN74S74N", "LM358N", 1868784]  # numbers stand in numeric cells
REFUSED = "Unable to login to Nexar application, check Client Id and Secret"
PROGRAMS = (dialects.EXCEL, dialects.LIBREOFFICE, dialects.GOOGLE, dialects.STRICT, dialects.SDK)
PRICES = [("LM358N", "Digi-Key", 100), ("SN74S74N", None, 25), ("1N4007", "Digi-Key", 50000)]


def _check_formulas_are_filled(before: bytes, after: bytes, sheet: str, without_offer: tuple[str, ...] = ()) -> None:
    """Every formula and every attribute stays; every cell that had a value has one of the type that is right."""
    old, new = packed.cells(before, sheet), packed.cells(after, sheet)
    assert list(new) == list(old)
    for address, cell in old.items():
        filled = new[address]
        assert (filled.formula, filled.formula_attributes) == (cell.formula, cell.formula_attributes), address
        kept = {name: value for name, value in cell.attributes.items() if name != "t"}
        assert {name: value for name, value in filled.attributes.items() if name != "t"} == kept, address
        if cell.formula is None:
            assert filled == cell
        elif cell.value and "NEXAR" in cell.formula:
            assert filled.value or "PACKAGING" in cell.formula, (address, filled)  # some offers state none
            missing = address in without_offer and filled.value == "#N/A"
            assert filled.type == ("e" if missing else _right_type(cell.formula)), (address, filled)
            assert filled.type != "n" or Decimal(filled.value or -1) >= 0


def _right_type(formula: str) -> str:
    numbers = ("PRICE", "STOCK", "MOQ", "LEAD_TIME", "ORDER_MULTIPLE")
    return "n" if formula.partition("(")[0].endswith(numbers) else "str"


@pytest.mark.parametrize("dialect", PROGRAMS, ids=lambda dialect: dialect.name)
def test_formulas_are_filled_and_nothing_else_changes(
    fill: Run, service: Any, tmp_path: Path, dialect: dialects.Dialect
) -> None:
    login = (service.client_id, service.client_secret)
    book = samples.everything(PARTS, dialect=dialect, login=login, prices=PRICES)
    file = book.write(tmp_path / "everything.xlsm")
    before = file.read_bytes()
    result = fill(file)
    assert result.returncode in (0, 1), result.stderr
    after = (tmp_path / "everything.filled.xlsm").read_bytes()
    assert file.read_bytes() == before
    assert packed.different(before, after) == {packed.sheets(before)["Sample"]}
    _check_formulas_are_filled(before, after, "Sample")


def test_libreoffice_reads_the_values_of_formulas_and_calculates_with_them(
    fill: Run, service: Any, tmp_path: Path, needs_program: Callable[[str], str]
) -> None:
    login = (service.client_id, service.client_secret)
    program = needs_program("soffice")
    file = samples.everything(PARTS, login=login, prices=PRICES).write(tmp_path / "everything.xlsm")
    before = file.read_bytes()
    assert fill(file, "--values", office=True).returncode in (0, 1)
    after = (tmp_path / "everything.filled.xlsm").read_bytes()
    read = calc.opened(program, tmp_path / "everything.filled.xlsm", tmp_path)
    sample = packed.cells(after, "Sample")
    assert not [address for address, cell in sample.items() if "NEXAR_SUPPLY" in (cell.formula or "")]
    assert packed.values(read["Sample"]) == packed.values(sample)
    # What depends on the functions was calculated anew, in the file and by the program that has just opened it.
    prices = [float(sample[f"C{row}"].value or 0) for row in range(7, 7 + len(PARTS))]
    for summary in (packed.cells(after, "Summary"), read["Summary"]):
        assert float(summary["B1"].value or 0) == pytest.approx(sum(prices))
    assert packed.cells(before, "Summary")["B1"].value == "100.5"


def test_as_the_add_in_every_value_has_the_type_that_it_had(fill: Run, service: Any, tmp_path: Path) -> None:
    login = (service.client_id, service.client_secret)
    file = samples.official(PARTS, login=login, prices=PRICES).write(tmp_path / "sample.xlsm")
    before = file.read_bytes()
    assert fill(file, "--as-add-in").returncode in (0, 1)
    old, new = packed.cells(before, "Sample"), packed.cells((tmp_path / "sample.filled.xlsm").read_bytes(), "Sample")
    # The sample's stock is of a version that said "In stock".
    stock = {address for address, cell in old.items() if "STOCK" in (cell.formula or "")}
    assert {new[address].type for address in stock} == {"n"}
    assert [
        address for address in old.keys() - stock if old[address].value and new[address].type != old[address].type
    ] == []


def test_openpyxl_opens_what_was_filled(fill: Run, service: Any, tmp_path: Path) -> None:
    login = (service.client_id, service.client_secret)
    file = samples.official(PARTS, login=login, prices=PRICES).write(tmp_path / "sample.xlsm")
    assert fill(file).returncode in (0, 1)
    book = openpyxl.load_workbook(tmp_path / "sample.filled.xlsm", data_only=True)
    sheet = book["Sample"]
    assert [sheet[f"A{row}"].value for row in range(7, 11)] == PARTS
    assert all(isinstance(sheet[f"C{row}"].value, int | float) for row in range(7, 11))
    assert all(str(sheet[f"K{row}"].value) for row in range(7, 11))
    assert sheet["B4"].value == "The Nexar Supply Add-in is ready!"


@pytest.mark.skipif(not OFFICIAL.exists(), reason="the recorded sample workbook is not here")
def test_official_sample_is_filled(fill: Run, tmp_path: Path) -> None:
    """It has no credentials in it, so the proxy's own are used."""
    file = tmp_path / OFFICIAL.name
    before = OFFICIAL.read_bytes()
    file.write_bytes(before)
    result = fill(file, "--api-key", "env:SHEET_KEY")
    assert result.returncode in (0, 1), result.stderr
    after = (tmp_path / "NexarSupplytAddInExample.filled.xlsm").read_bytes()
    assert packed.different(before, after) == {"xl/worksheets/sheet1.xml"}
    # The sandbox decides which distributors have an offer.
    _check_formulas_are_filled(before, after, "Sample", without_offer=("E25", "E26"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl's, about extensions that it drops
        openpyxl.load_workbook(tmp_path / "NexarSupplytAddInExample.filled.xlsm")


@pytest.mark.parametrize("secret", ["", "pl4nted-secret"], ids=["accepted", "refused"])
def test_secret_of_a_login_stands_nowhere_but_in_the_workbook(
    fill: Run, service: Any, tmp_path: Path, secret: str
) -> None:
    secret = secret or service.client_secret
    file = samples.official(PARTS, login=(service.client_id, secret)).write(tmp_path / "sample.xlsm")
    result = fill(file)
    assert secret not in result.stdout + result.stderr
    written = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert written
    assert [path for path in written if secret.encode() in path.read_bytes()] == []
    login = packed.cells_of(tmp_path / "sample.filled.xlsm", "Sample")["B4"].value
    accepted = "The Nexar Supply Add-in is ready!"
    assert login == (accepted if secret == service.client_secret else REFUSED)
