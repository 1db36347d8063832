"""Whole workbooks, filled from a source of parts in memory, without LibreOffice."""

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from support import cases
from support.filled_formulas import NOT_AVAILABLE, PARTS, Filled, X, book, fill, part
from support.workbooks import features, hostile
from support.workbooks.builder import AnyCell, ErrorCell, FormulaCell, RawCell, WorkbookBuilder
from tools.sheet.part_source import MemoryPartSource

from proxy import errors
from proxy.tools.sheet.formulas import job
from proxy.tools.sheet.formulas.job import FormulaJob, FormulaOptions
from proxy.tools.sheet.package import workbook
from proxy.tools.sheet.package.cells import CellError, CellValue, Formula
from proxy.tools.sheet.package.workbook import open_package
from proxy.tools.sheet.parts import PartQuery, PartResult


def error_of(workbook: WorkbookBuilder, folder: Path, **options: object) -> str:
    """The message of the error that a workbook is refused with."""
    path = workbook.write(folder / "BOM.xlsx")
    with open_package(path) as package, pytest.raises(errors.SheetError) as error:
        FormulaJob(package, FormulaOptions(**options))  # type: ignore[arg-type]
    return error.value.message


def queries(result: Filled) -> set[str]:
    """The part numbers that were fetched."""
    return {query.mpn for query in result.source.cache}


def test_formulas_stay_and_get_typed_values(tmp_path: Path) -> None:
    price = FormulaCell(f"{X}DISTRIBUTOR_PRICE(A2,,,100)", 9.9, array="B2", dynamic=True)
    result = fill(
        book({"A2": "LM317", "B2": price, "C2": FormulaCell(f"{X}SHORT_DESCRIPTION(A2)", ""), "D2": "beside"}), tmp_path
    )
    assert result.cells["B2"] == (Decimal("0.25"), Formula(price.text, "array", "B2"))
    assert result.cells["C2"] == ("=LM317", Formula(f"{X}SHORT_DESCRIPTION(A2)"))
    assert result["D2"] == "beside"
    assert result["A1"] == "The Nexar Supply Add-in is ready!"
    assert result.counts == {"found": 2}
    assert result.lines == 2


def test_cells_without_a_value_are_counted_apart(tmp_path: Path) -> None:
    price = FormulaCell(f'{X}DISTRIBUTOR_PRICE(A2,,"nobody")', 9.9)
    result = fill(book({"A2": "LM317", "B2": price, "C2": FormulaCell(f"{X}SHORT_DESCRIPTION(A2)", "")}), tmp_path)
    assert result.counts == {"found": 1, "no value": 1}


def test_values_can_replace_the_formulas(tmp_path: Path) -> None:
    price = FormulaCell(f"{X}DISTRIBUTOR_PRICE(A2)", 9.9)
    result = fill(book({"A2": "LM317", "B2": price, "C2": FormulaCell("B2*2", 1)}), tmp_path, values=True)
    assert result.cells["B2"] == (Decimal("0.5"), None)
    assert result.cells["C2"] == (Decimal(1), Formula("B2*2"))


@cases.parametrize("arguments, expected")
def test_arguments_may_have_any_form(arguments: str, expected: str, tmp_path: Path) -> None:
    workbook = book(
        {"A2": "LM317", "B2": 1868783, "E2": FormulaCell(f"{X}DISTRIBUTOR_PRICE({arguments})", "")},
        {"Other 's, sheet": {"A1": "NE555", "B1": "Digi-Key", "B2": 77}},
    )
    features.defined_names(workbook, {"Number": "'Other ''s, sheet'!$A$1"})
    result = fill(workbook, tmp_path)
    assert queries(result) == {expected}
    assert result["E2"] == Decimal("0.5")


@pytest.mark.parametrize("prefix", ["", "_xll.", "_xlfn.", "_xludf.", "[1]!", "@_xll."])
@pytest.mark.parametrize(
    "name, expected",
    [
        ("NEXAR_SUPPLY_DISTRIBUTOR_STOCK", Decimal(7)),
        ("nexar_supply_distributor_sku", "LM317-ND"),
        ("OCTOPART_DISTRIBUTOR_MOQ", Decimal(1)),
        ("Octopart_Description", "=LM317"),
    ],
)
def test_all_dialects_are_filled(prefix: str, name: str, expected: CellValue, tmp_path: Path) -> None:
    result = fill(book({"A2": "LM317", "B2": FormulaCell(f"{prefix}{name}(A2)", "")}), tmp_path)
    assert result["B2"] == expected


@pytest.mark.parametrize("values", [False, True])
def test_shared_formulas_are_those_of_each_cell(values: bool, tmp_path: Path) -> None:
    cells: dict[str, AnyCell] = {
        "A2": "LM317",
        "A3": "NE555",
        "B2": FormulaCell(f"{X}DISTRIBUTOR_SKU(A2)", "", shared=(0, "B2:B3")),
        "B3": FormulaCell("", "", shared=(0, "")),
    }
    result = fill(book(cells), tmp_path, values=values)
    assert [result["B2"], result["B3"]] == ["LM317-ND", "NE555-ND"]
    assert (result.cells["B3"][1] is None) is values


def test_formulas_that_google_sheets_has_exported_are_filled(tmp_path: Path) -> None:
    exported = 'IFERROR(__xludf.DUMMYFUNCTION("OCTOPART_DISTRIBUTOR_PRICE(A2,"""",""Digi-Key"",100)"),9.9)'
    result = fill(book({"A2": "LM317", "B2": FormulaCell(exported, 9.9)}), tmp_path)
    assert result.cells["B2"] == (Decimal("0.25"), Formula(exported))


def test_an_array_formula_fills_its_range(tmp_path: Path) -> None:
    cells: dict[str, AnyCell] = {
        "A2": "LM317",
        "A3": "NE555",
        "B2": FormulaCell(f"{X}DISTRIBUTOR_SKU(A2:A4)", "", array="B2:B4"),
        "B3": "old",
        "B4": "old",
    }
    result = fill(book(cells), tmp_path)
    assert [result[f"B{row}"] for row in (2, 3, 4)] == ["LM317-ND", "NE555-ND", NOT_AVAILABLE]


def test_equal_queries_are_one_and_the_manufacturer_makes_a_difference(tmp_path: Path) -> None:
    cells = {
        f"B{row}": FormulaCell(f'{X}DISTRIBUTOR_PRICE("LM317",{maker},,{row})', "")
        for row, maker in enumerate(['""', '"TI"', '"ti"', ""], 2)
    }
    assert len(fill(book(dict(cells)), tmp_path).source.cache) == 3
    as_add_in = fill(book(dict(cells)), tmp_path, as_add_in=True)
    assert set(as_add_in.source.cache) == {PartQuery("LM317")}


def test_a_distributor_without_offers_costs_the_part_itself(tmp_path: Path) -> None:
    cells = {"B2": FormulaCell(f'{X}DISTRIBUTOR_PRICE("LM317",,"Nobody")', "")}
    for as_add_in in (False, True):
        result = fill(book(dict(cells)), tmp_path, as_add_in=as_add_in)
        assert result.source.parts_spent == 1
        assert result["B2"] == (
            "ERROR: Query did not provide a result. Please widen your search criteria." if as_add_in else NOT_AVAILABLE
        )


def test_results_of_functions_may_be_arguments_of_others(tmp_path: Path) -> None:
    cells: dict[str, AnyCell] = {
        "A2": "LM317",
        "D2": FormulaCell(f"{X}DISTRIBUTOR_PRICE(C2)", ""),
        "C2": FormulaCell(f"{X}DISTRIBUTOR_SKU(A2)", "outdated"),
        "E2": FormulaCell(f"{X}DETAIL_URL({X}DISTRIBUTOR_SKU(A2))", ""),
    }
    result = fill(book(cells), tmp_path)
    assert result["C2"] == "LM317-ND"
    assert result["D2"] == Decimal("0.5")
    assert result["E2"] == "https://octopart.com/LM317-ND"
    assert queries(result) == {"LM317", "LM317-ND"}


def test_circular_references_name_their_cells(tmp_path: Path) -> None:
    cells = {"B2": FormulaCell(f"{X}DETAIL_URL(C2)", ""), "C2": FormulaCell('D2&"x"', ""), "D2": FormulaCell("B2", "")}
    message = error_of(book(dict(cells)), tmp_path)
    assert "circular reference" in message
    assert all(f"BOM!{cell}" in message for cell in cells)
    assert error_of(book({"B2": FormulaCell(f"{X}DETAIL_URL(B2)", "")}), tmp_path).endswith("BOM!B2 → BOM!B2")


@pytest.mark.parametrize(
    "cells, words",
    [
        ({"A1": "no login"}, ["no login", "BOM!B2", "NEXAR_SUPPLY_LOGIN", "--api-key"]),
        ({"C9": FormulaCell('OCTOPART_SET_APIKEY("x")', "")}, ["two logins", "BOM!A1", "BOM!C9"]),
        ({"A1": FormulaCell(f"{X}LOGIN(TRIM(C1),C2)", "")}, ["BOM!A1", "arguments"]),
    ],
)
def test_there_is_exactly_one_login(cells: dict[str, AnyCell], words: Sequence[str], tmp_path: Path) -> None:
    message = error_of(book({"B2": FormulaCell(f'{X}DETAIL_URL("LM317")', ""), **cells}), tmp_path)
    assert all(word in message for word in words)
    assert "planted" not in message


def test_an_api_key_makes_the_login_optional(tmp_path: Path) -> None:
    cells: dict[str, AnyCell] = {"A1": "no login", "B2": FormulaCell(f'{X}DISTRIBUTOR_SKU("LM317")', "")}
    assert fill(book(cells), tmp_path, login_optional=True)["B2"] == "LM317-ND"


def test_the_login_s_arguments_may_be_cells(tmp_path: Path) -> None:
    cells: dict[str, AnyCell] = {
        "A1": FormulaCell(f"{X}LOGIN(C1,C2,TRUE,C3)", ""),
        "C1": "planted-id",
        "C2": "planted-secret",
        "B2": FormulaCell(f'{X}DATASHEET_URL("LM317")', ""),
        "B3": FormulaCell(f'{X}DISTRIBUTOR_LEAD_TIME("LM317")', ""),
        "B4": FormulaCell(f"{X}DEV_FEATURES()", ""),
        "B5": FormulaCell(f"{X}DEV_TOKEN()", "planted-token"),
    }
    with open_package(book(dict(cells)).write(tmp_path / "BOM.xlsx")) as package:
        login = FormulaJob(package, FormulaOptions()).login
    assert login
    assert (login.client_id, login.secret.reveal()) == ("planted-id", "planted-secret")
    assert "planted-secret" not in repr(login)
    result = fill(book(cells), tmp_path)
    assert [result[f"B{row}"] for row in (2, 3, 4, 5)] == ["", NOT_AVAILABLE, "Datasheets: 0; LeadTime: 1", ""]


def test_the_octopart_add_in_s_login_is_an_api_key(tmp_path: Path) -> None:
    cells: dict[str, AnyCell] = {
        "A1": FormulaCell('OCTOPART_SET_APIKEY("planted-key")', ""),
        "B2": FormulaCell('OCTOPART_DETAIL_URL("LM317")', ""),
        "B3": FormulaCell('OCTOPART_SET_USER("me@example.com")', ""),
        "B4": FormulaCell('OCTOPART_SET_OPTIONS("apikey=planted-key")', ""),
    }
    result = fill(book(cells), tmp_path)
    assert result["A1"] == "Octopart Add-In is ready!"
    assert result["B3"] == "[Obsolete] Please use =OCTOPART_SET_APIKEY(...)"
    assert result["B4"] == "The following options were set:"
    del cells["A1"], cells["B4"]
    google = fill(book({"A1": 1, **cells}), tmp_path)
    assert google["B3"] == "Octopart Add-In is ready!"


def test_failures_alone_can_be_run_again(tmp_path: Path) -> None:
    cached: dict[str, AnyCell] = {
        "B2": FormulaCell(f'{X}DISTRIBUTOR_SKU("LM317")', "kept"),
        "B3": FormulaCell(f'{X}DISTRIBUTOR_SKU("NE555")', "ERROR: Query did not provide a result. …"),
        "B4": FormulaCell(f'{X}DISTRIBUTOR_PRICE("A-1")', "#N/A"),
        "B5": FormulaCell(f'{X}DISTRIBUTOR_PRICE("B-2")', None),
        "B6": FormulaCell(f'{X}DISTRIBUTOR_PRICE("1868783")', "!!! Processing !!!"),
        "B7": FormulaCell(f"{X}DETAIL_URL(B2)", "kept, too"),
        "B9": RawCell(f'<c r="{{address}}" t="str"><f>{X}DISTRIBUTOR_PACKAGING(B2)</f><v></v></c>'),
        "B8": FormulaCell(f'{X}DETAIL_URL("LM317-ND")', "Nexar Supply client is not specified. Please provide …"),
    }
    result = fill(book(cached), tmp_path, rerun_failures=True)
    assert queries(result) == {"NE555", "A-1", "B-2", "1868783", "LM317-ND"}
    assert result.counts == {"found": 5, "stale": 3}  # nobody knows when the kept values were fetched
    assert [result[f"B{row}"] for row in (2, 3, 4, 7)] == ["kept", "NE555-ND", Decimal("0.5"), "kept, too"]


def test_outcomes_are_counted(tmp_path: Path) -> None:
    source = MemoryPartSource({**PARTS, "Twice": part("Twice")}, now=0.0)
    source.hits = {"Twice": 2}
    source.errors = {"Broken": "Bad mpn"}
    cells = {
        f"B{row}": FormulaCell(f'{X}DISTRIBUTOR_SKU("{mpn}")', "")
        for row, mpn in enumerate(["LM317", "Twice", "Nothing", "Broken", ""], 2)
    }
    result = fill(book(dict(cells)), tmp_path, source, now=86_401.0)
    assert result.counts == {"ambiguous": 1, "not found": 1, "failed": 1, "stale": 1}
    assert result["B6"] == NOT_AVAILABLE


def test_errors_in_arguments_are_the_result(tmp_path: Path) -> None:
    cells: dict[str, AnyCell] = {
        "A2": ErrorCell("#REF!"),
        "B2": FormulaCell(f"{X}DISTRIBUTOR_SKU(A2)", ""),
        "B3": FormulaCell(f'{X}DISTRIBUTOR_PRICE("LM317",,,"many")', ""),
        "B4": FormulaCell(f'{X}DETAIL_URL("LM317",1,2,3)', ""),
        "B5": FormulaCell(f"{X}DETAIL_URL(A2:B4)", ""),
    }
    result = fill(book(cells), tmp_path)
    assert [result[f"B{row}"] for row in (2, 3, 4, 5)] == [CellError("#REF!"), *[CellError("#VALUE!")] * 3]
    assert not result.source.cache


def test_what_only_libreoffice_calculates_is_listed_without_it(tmp_path: Path) -> None:
    cells: dict[str, AnyCell] = {
        "A2": "LM317",
        "B2": FormulaCell(f"IFERROR({X}DISTRIBUTOR_PRICE(A2)*2,-1)", 5),
        "C2": FormulaCell("B2+1", 6),
        "D2": FormulaCell(f"{X}DETAIL_URL(TRIM(A2))", "old"),
        "E2": FormulaCell("A2&A2", "unconcerned"),
        "F2": FormulaCell(f"{X}LIFECYCLE(A2)", "old"),
        "G2": FormulaCell(f"{X}DETAIL_URL(C2)", "old"),
    }
    result = fill(book(cells, {"Sum": {"A1": FormulaCell("SUM(BOM!B:C)", 11)}}), tmp_path)
    assert [result[f"{column}2"] for column in "BCDEFG"] == [
        Decimal(5), Decimal(6), "old", "unconcerned", "old", "old",
    ]  # fmt: skip
    assert result["Sum!A1"] == Decimal(11)
    problems = "\n".join(result.problems)
    for cell in ("BOM!B2", "BOM!C2", "BOM!D2", "BOM!F2", "BOM!G2", "Sum!A1"):
        assert cell in problems
    assert "BOM!D2: argument 1 cannot be evaluated: LibreOffice is not installed" in problems
    assert "BOM!E2" not in problems
    assert result.counts["not filled"] == 6


def test_an_early_end_keeps_the_other_values(tmp_path: Path) -> None:
    cells = {f"B{row}": FormulaCell(f'{X}DISTRIBUTOR_SKU("{mpn}")', "old") for row, mpn in enumerate(PARTS, 2)}
    path = book(dict(cells)).write(tmp_path / "BOM.xlsx")
    with open_package(path) as package:
        job = FormulaJob(package, FormulaOptions())
        first = job.queries[0]
        job.add(PartResult(first, PARTS[first.mpn], 1, None, 0.0))
        asyncio.run(job.proceed(stopped=True))
        counts = job.write(tmp_path / "out.xlsx")
    assert (counts["found"], counts["not filled"]) == (1, len(PARTS) - 1)


def test_a_workbook_without_these_functions_is_refused(tmp_path: Path) -> None:
    assert "--columns" in error_of(book({"A1": "LM317", "B1": FormulaCell("SUM(1)", 1)}), tmp_path)
    assert "BOM!B1" in error_of(book({"A1": 1, "B1": FormulaCell(f"{X}LIFECYCLE(1)", 1)}), tmp_path)


FORMULAS = [
    name for name in hostile.ODD if any(word in name for word in ("formula", "circle", "cell of", "distributors"))
]
OPTIONS = job.FormulaOptions(login_optional=True, now=1e9)


def _fill(file: Path, target: Path) -> job.FormulaJob:
    with workbook.open_package(file) as package:
        filling = job.FormulaJob(package, OPTIONS)
        for query in filling.queries:
            filling.add(PartResult(query, None, 0, None, 1e9))
        filling.write(target)
        return filling


@pytest.mark.parametrize("name", FORMULAS)
def test_odd_formulas_are_filled_or_refused(tmp_path: Path, name: str) -> None:
    file, target = tmp_path / name, tmp_path / "filled.xlsx"
    content = hostile.ODD[name]()
    file.write_bytes(content)
    refusal = ""
    try:
        _fill(file, target)
    except errors.SheetError as error:
        refusal = str(error)
    assert refusal.isprintable()
    assert bool(refusal) == (not target.exists())
    assert file.read_bytes() == content


@pytest.mark.parametrize("name, words", [
    ("circle of two cells.xlsx", "circular reference: BOM!B2 → BOM!B3 → BOM!B2"),
    ("cell of itself.xlsx", "circular reference: BOM!B2 → BOM!B2"),
    ("long formula.xlsx", "BOM!B2: the formula is longer than Excel allows"),
])  # fmt: skip
def test_refusal_names_the_cells(tmp_path: Path, name: str, words: str) -> None:
    file = tmp_path / name
    file.write_bytes(hostile.ODD[name]())
    with pytest.raises(errors.SheetError, match=words):
        _fill(file, tmp_path / "filled.xlsx")


def test_formula_nested_60_deep_has_its_call_found(tmp_path: Path) -> None:
    file = tmp_path / "nested.xlsx"
    file.write_bytes(hostile.ODD["formula nested 60 deep.xlsx"]())
    with workbook.open_package(file) as package:
        assert [query.mpn for query in job.FormulaJob(package, OPTIONS).queries] == [hostile.PART]


def test_formulas_of_nonsense_are_listed_with_their_cells(tmp_path: Path) -> None:
    file = tmp_path / "nonsense.xlsx"
    file.write_bytes(hostile.ODD["formulas of nonsense.xlsx"]())
    problems = [str(problem) for problem in _fill(file, tmp_path / "filled.xlsx").problems]
    assert "BOM!B2: the formula lacks a closing parenthesis" in problems
    assert "BOM!B8: no add-in has the function NEXAR_SUPPLY_NOTHING" in problems
