"""What the XML parser refuses, and in which encodings it reads."""

from pathlib import Path

import pytest
from tools.sheet.package import exact_workbook

from proxy import errors
from proxy.tools.sheet.package import cells, workbook, xml_events

ROW = '<row r="1"><c r="A1" t="inlineStr"><is><t>é😀</t></is></c></row>'


def _book(folder: Path, sheet: bytes) -> Path:
    return exact_workbook.written(folder / "book.xlsx", exact_workbook.parts(sheet))


def _refused(folder: Path, sheet: bytes) -> str:
    with workbook.open_package(_book(folder, sheet)) as package:
        with pytest.raises(errors.SheetError) as error:
            list(package.rows(package.sheets[0]))
        with pytest.raises(errors.SheetError):
            package.save(folder / "filled.xlsx", {"One": {(1, 1): cells.CellChange("x")}})
    assert not (folder / "filled.xlsx").exists()
    return str(error.value)


def test_document_types_are_refused_whatever_they_declare(tmp_path: Path) -> None:
    sheet = exact_workbook.sheet(ROW).encode()
    for declaration in (b"<!DOCTYPE worksheet>", b'<!DOCTYPE worksheet [<!ENTITY a "b">]>'):
        assert "document type" in _refused(tmp_path, declaration + sheet)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    depth = xml_events.DEPTH_MAX
    assert "nested deeper" in _refused(
        tmp_path, exact_workbook.sheet(ROW, after="<x>" * depth + "</x>" * depth).encode()
    )


@pytest.mark.parametrize("text", ["<!--{}-->", "<x a='{}'/>", "<?x {}?>"])
def test_an_endless_tag_is_refused_before_it_costs_time(tmp_path: Path, text: str) -> None:
    sheet = exact_workbook.sheet(ROW, after=text.format("y" * (3 << 20))).encode()
    assert "tag or comment of more than 1 MiB" in _refused(tmp_path, sheet)


def test_other_encodings_are_refused_by_name(tmp_path: Path) -> None:
    sheet = b"<?xml version='1.0' encoding='iso-8859-1'?>" + exact_workbook.sheet(ROW).encode("iso-8859-1", "replace")
    assert "another encoding" in _refused(tmp_path, sheet)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_encoding_of_a_sheet_is_kept(tmp_path: Path, codec: str, mark: str) -> None:
    mark = "" if codec == "utf-8-sig" else mark
    declared = codec.removesuffix("-sig").removesuffix("-le").removesuffix("-be")
    xml = f"{mark}<?xml version='1.0' encoding='{declared}'?>" + exact_workbook.sheet(ROW)
    path, target = _book(tmp_path, xml.encode(codec)), tmp_path / "filled.xlsx"
    with workbook.open_package(path) as package:
        assert [row for _, row in package.rows(package.sheets[0])] == [[cells.Cell(1, 1, "é😀")]]
        package.save(target, {"One": {(1, 2): cells.CellChange("ü")}})
    expected = xml.replace("</row>", '<c r="B1" t="inlineStr"><is><t>ü</t></is></c></row>').encode(codec)
    assert exact_workbook.part(target, "xl/worksheets/sheet1.xml") == expected
