"""Small workbook packages whose every byte a test decides."""

import zipfile
from pathlib import Path

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
SPREADSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def sheet(rows: str, before: str = "", after: str = "") -> str:
    """Return the XML of a worksheet with these rows."""
    return f'<worksheet xmlns="{MAIN}">{before}<sheetData>{rows}</sheetData>{after}</worksheet>'


def relationships(*related: tuple[str, str]) -> str:
    """Return the XML of relationships (kind, target), named rId1 and so on."""
    listed = "".join(
        f'<Relationship Id="rId{number}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(related, 1)
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{listed}</Relationships>'


def parts(*sheets: str | bytes, **more: str | bytes) -> dict[str, str | bytes]:
    """Return the parts of a workbook with sheets One, Two, and so on; `more` replaces parts or adds them to xl/."""
    names = ["One", "Two", "Three", "Four"][: len(sheets)]
    listed = "".join(f'<sheet name="{name}" sheetId="{i + 5}" r:id="rId{i}"/>' for i, name in enumerate(names, 1))
    content: dict[str, str | bytes] = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{SPREADSHEET}.sheet.main+xml"/>'
        + "".join(
            f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{SPREADSHEET}.worksheet+xml"/>'
            for i in range(1, len(sheets) + 1)
        )
        + f'<Override PartName="/xl/calcChain.xml" ContentType="{SPREADSHEET}.calcChain+xml"/></Types>',
        "_rels/.rels": relationships(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relationships(
            *(("worksheet", f"worksheets/sheet{i}.xml") for i in range(1, len(sheets) + 1)),
            *((kind, f"{kind}.xml") for kind in ("sharedStrings", "styles", "calcChain") if kind in more),
        ),
    }
    content |= {f"xl/worksheets/sheet{i}.xml": text for i, text in enumerate(sheets, 1)}
    return content | {name if "/" in name else f"xl/{name}.xml": text for name, text in more.items()}


def written(path: Path, content: dict[str, str | bytes]) -> Path:
    """Write parts as a package."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return path


def part(path: Path, name: str) -> bytes:
    """Return the content of a part."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)
