"""Writes minimal .xlsx workbooks without the library that reads them."""

import io
import zipfile
from collections.abc import Sequence
from xml.sax.saxutils import escape


def workbook(*sheets: Sequence[Sequence[str | int | float]], last: str = "") -> bytes:
    """A minimal .xlsx; `last` is XML appended to the rows of each sheet."""
    numbers = range(1, len(sheets) + 1)
    links = "".join(
        f'<Relationship Id="r{n}" Target="worksheets/sheet{n}.xml" Type="http://schemas.openxmlformats.org/'
        'officeDocument/2006/relationships/worksheet"/>'
        for n in numbers
    )
    named = "".join(f'<sheet name="S{n}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    root = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
        'Target="xl/workbook.xml" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
        'officeDocument"/></Relationships>'
    )
    files = {
        "_rels/.rels": root,
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        f'<Override PartName="/xl/workbook.xml" ContentType="{types}"/></Types>',
        "xl/workbook.xml": f'<workbook xmlns="{space}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/'
        f'relationships"><sheets>{named}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
        f'relationships">{links}</Relationships>',
        **{f"xl/worksheets/sheet{n}.xml": _sheet(space, rows, last) for n, rows in enumerate(sheets, 1)},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def _sheet(space: str, rows: Sequence[Sequence[str | int | float]], last: str) -> str:
    written = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    return f'<worksheet xmlns="{space}"><dimension ref="A1"/><sheetData>{written}{last}</sheetData></worksheet>'


def _cell(value: str | int | float) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f"<c><v>{value}</v></c>"
