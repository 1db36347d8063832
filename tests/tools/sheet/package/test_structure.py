"""Sheets of a package by its relationships, and files that are no workbook."""

from pathlib import Path

import pytest
from support import cases
from tools.sheet.package import exact_workbook

from proxy import errors
from proxy.tools.sheet.package import cells, structure, workbook

ROW = exact_workbook.sheet('<row r="1"><c r="A1"><v>1</v></c></row>')


def opened(folder: Path, content: dict[str, str | bytes]) -> workbook.Package:
    return workbook.open_package(exact_workbook.written(folder / "book.xlsx", content))


def _read_all(package: workbook.Package) -> None:
    for sheet in package.sheets:
        list(package.rows(sheet))


def refusal(folder: Path, content: dict[str, str | bytes]) -> str:
    with pytest.raises(errors.SheetError) as error, opened(folder, content) as package:
        _read_all(package)
    assert str(error.value).isprintable()
    return str(error.value)


@cases.parametrize("target,part")
def test_parts_are_found_by_absolute_and_relative_names(tmp_path: Path, target: str, part: str) -> None:
    content = exact_workbook.parts(ROW)
    content[part] = content.pop("xl/worksheets/sheet1.xml")
    content["xl/_rels/workbook.xml.rels"] = exact_workbook.relationships(("worksheet", target))
    with opened(tmp_path, content) as package:
        assert [sheet.part for sheet in package.sheets] == [part]
        assert len(list(package.rows(package.sheets[0]))) == 1


def test_strict_workbooks_are_read_and_written_in_their_namespaces(tmp_path: Path) -> None:
    strict = "http://purl.oclc.org/ooxml"
    names = {
        exact_workbook.MAIN: f"{strict}/spreadsheetml/main",
        exact_workbook.OFFICE: f"{strict}/officeDocument/relationships",
    }
    content = exact_workbook.parts(ROW)
    for part in content:
        text = str(content[part])
        for transitional, name in names.items():
            text = text.replace(transitional, name)
        content[part] = text.replace("<workbook ", '<workbook conformance="strict" ')
    target = tmp_path / "filled.xlsx"
    with opened(tmp_path, content) as package:
        assert len(list(package.rows(package.sheets[0]))) == 1
        package.save(target, {"One": {(1, 2): cells.CellChange("x")}}, [cells.NewSheet("Offers", [["y"]])])
    with workbook.open_package(target) as package:
        assert [[row for _, row in package.rows(sheet)] for sheet in package.sheets] == [
            [[cells.Cell(1, 1, 1), cells.Cell(1, 2, "x")]],  # type: ignore[arg-type]
            [[cells.Cell(1, 1, "y")]],
        ]
    for part in ("xl/workbook.xml", "xl/worksheets/sheet2.xml", "xl/_rels/workbook.xml.rels"):
        assert exact_workbook.OFFICE not in exact_workbook.part(target, part).decode()


def test_hostile_names_of_sheets_are_read_and_shown_in_one_line(tmp_path: Path) -> None:
    names = ["a\nb\x7f", "\u202egnp.exe", "x" * 5000, "'; DROP TABLE", "../../etc", "=1+1", ""]
    listed = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="rId{i}"/>' for i, name in enumerate(names, 1)).replace(
        "\n", "&#10;"
    )
    content = exact_workbook.parts(*[exact_workbook.sheet('<row r="0"/>')] * 4)
    for i in range(5, len(names) + 1):
        content[f"xl/worksheets/sheet{i}.xml"] = exact_workbook.sheet('<row r="0"/>')
    content["xl/_rels/workbook.xml.rels"] = exact_workbook.relationships(
        *(("worksheet", f"worksheets/sheet{i}.xml") for i in range(1, len(names) + 1))
    )
    head = f'<workbook xmlns="{exact_workbook.MAIN}" xmlns:r="{exact_workbook.OFFICE}"><sheets>'
    content["xl/workbook.xml"] = f"{head}{listed}</sheets></workbook>"
    with opened(tmp_path, content) as package:
        assert [sheet.name for sheet in package.sheets] == names
        for sheet in package.sheets:
            with pytest.raises(errors.SheetError) as error:
                list(package.rows(sheet))
            assert str(error.value).isprintable()
            assert len(str(error.value)) < len(str(tmp_path)) + 200


def _replaced(part: str, old: str, new: str) -> dict[str, str | bytes]:
    content = exact_workbook.parts(ROW, ROW)
    assert old in str(content[part])
    content[part] = str(content[part]).replace(old, new)
    return content


RELATED = "xl/_rels/workbook.xml.rels"


@pytest.mark.parametrize(
    "content,problem",
    [
        (_replaced("xl/workbook.xml", 'name="Two"', 'name="ONE"'), "two sheets named 'ONE'"),
        (_replaced("xl/workbook.xml", "rId2", "rId9"), "names a sheet 'Two' that is not in the file"),
        (_replaced("xl/workbook.xml", "rId2", "rId1"), "names the same part for the sheet 'Two' and another"),
        (_replaced(RELATED, "sheet2.xml", "sheet9.xml"), "names a sheet 'Two' that is not in the file"),
        (_replaced(RELATED, "sheet2.xml", "sheet1.xml"), "names the same part"),
        (_replaced(RELATED, 'Target="worksheets/sheet2', 'TargetMode="External" Target="w'), "not in the file"),
        (_replaced(RELATED, "worksheets/sheet2.xml", "workbook.xml"), "'Two' is not a worksheet"),
        (_replaced("xl/workbook.xml", "<workbook ", "<book "), "not well-formed XML"),
        (_replaced("_rels/.rels", "xl/workbook.xml", "xl/worksheets/sheet1.xml"), "another document"),
        ({"content.xml": "<x/>", "mimetype": "x"}, "OpenDocument file: save it as .xlsx in LibreOffice"),
        ({"xl/workbook.bin": b"\0"}, "binary workbook .* save it as .xlsx"),
        ({"word/document.xml": "<x/>"}, "no workbook: open the spreadsheet"),
    ],
)
def test_what_is_no_sound_workbook_is_refused(tmp_path: Path, content: dict[str, str | bytes], problem: str) -> None:
    message = refusal(tmp_path, content)
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(message)


def test_a_part_of_endless_elements_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "ELEMENTS_MAX", 10)
    assert "more than 10 elements" in refusal(
        tmp_path, _replaced("xl/workbook.xml", "<sheets>", "<x/>" * 9 + "<sheets>")
    )
