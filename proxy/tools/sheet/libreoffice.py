"""Calculation of formulas by LibreOffice, on a copy that has nothing but values and formulas.

No part of the user's file but its cells reaches LibreOffice: no macros, links, charts. Its exit code proves nothing
(contract workbook.md, Files), so the values are read back, and each expected cell must have one.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from proxy import errors
from proxy.tools.sheet.package.cells import CellError, CellValue, reference
from proxy.tools.sheet.package.workbook import open_package

TIMEOUT_SECONDS = 300.0
"""Most time of one calculation. A workbook of 100 000 formulas takes about a minute."""

_PROGRAMS = ("soffice", "libreoffice")
_NO_PROXY = "http://127.0.0.1:9"  # refuses connections
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_SPREADSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"

# No macros, no update of links, and a proxy that refuses connections: functions that read the network find none.
_SETTINGS = (
    ("Office.Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Office.Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Office.Calc/Content/Update", "Link", "1"),
    ("Office.Calc/Formula/Load", "OOXMLRecalcMode", "0"),
    ("Inet/Settings", "ooInetProxyType", "2"),
    ("Inet/Settings", "ooInetHTTPProxyName", "127.0.0.1"),
    ("Inet/Settings", "ooInetHTTPProxyPort", "9"),
    ("Inet/Settings", "ooInetHTTPSProxyName", "127.0.0.1"),
    ("Inet/Settings", "ooInetHTTPSProxyPort", "9"),
)
_PROFILE = (
    '<?xml version="1.0" encoding="UTF-8"?><oor:items xmlns:oor="http://openoffice.org/2001/registry">'
    + "".join(
        f'<item oor:path="/org.openoffice.{path}"><prop oor:name="{name}" oor:op="fuse"><value>{value}</value></prop>'
        "</item>"
        for path, name, value in _SETTINGS
    )
    + "</oor:items>"
)


class CopiedFormula(NamedTuple):
    """A formula of the copy, without `=`; `reference` is the range of an array formula."""

    text: str
    reference: str | None = None


class CopiedCell(NamedTuple):
    """A cell of the copy."""

    column: int
    content: CellValue | CopiedFormula


class CopiedSheet(NamedTuple):
    """A sheet of the copy, rows and cells in ascending order. `rows` are written as they are iterated."""

    name: str
    rows: Iterable[tuple[int, Sequence[CopiedCell]]]


CalculatedValues = dict[tuple[str, int, int], CellValue]
"""Values by sheet, row and column."""


class CalculationFailed(Exception):  # noqa: N818  (a reason that the summary names, not the end of a run)
    """LibreOffice gave no values. The message says why."""


def find_program(chosen: Path | None) -> Path | None:
    """Return the program of LibreOffice: the chosen one, or that on PATH; None without one. Raises SheetError."""
    if chosen is not None:
        path = shutil.which(chosen)
        if path is None:
            raise errors.SheetError(f"--libreoffice {chosen}: is not a program; name the file soffice of LibreOffice")
        return Path(path)
    return next((Path(path) for name in _PROGRAMS if (path := shutil.which(name)) is not None), None)


class LibreOffice:
    """An installed LibreOffice."""

    def __init__(self, program: Path, seconds: float = TIMEOUT_SECONDS) -> None:
        self._program = program
        self._seconds = seconds

    async def calculate(
        self,
        sheets: Iterable[CopiedSheet],
        wanted: Mapping[str, Collection[tuple[int, int]]],
        *,
        date_1904: bool = False,
    ) -> CalculatedValues:
        """Calculate the formulas of some sheets; return the values of the wanted cells (row, column). Raises
        CalculationFailed."""
        with tempfile.TemporaryDirectory(prefix="v3bridge-sheet-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            copy, output = folder / "copy.xlsx", folder / "calculated"
            await asyncio.to_thread(_write, copy, sheets, date_1904=date_1904)
            await self._convert(copy, output, folder / "profile")
            return await asyncio.to_thread(_read, output / copy.name, wanted)

    async def _convert(self, copy: Path, output: Path, profile: Path) -> None:
        (profile / "user").mkdir(parents=True)
        (profile / "user" / "registrymodifications.xcu").write_text(_PROFILE)
        process = await asyncio.create_subprocess_exec(
            self._program,
            f"-env:UserInstallation={profile.as_uri()}",
            *("--headless", "--norestore", "--nolockcheck", "--nodefault", "--nologo"),
            *("--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", output, copy),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "HOME": str(profile), "http_proxy": _NO_PROXY, "https_proxy": _NO_PROXY},
            start_new_session=True,  # soffice starts other programs, which have to end with it
        )
        try:
            await asyncio.wait_for(process.wait(), self._seconds)
        except TimeoutError:
            raise CalculationFailed(f"LibreOffice took longer than {self._seconds:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def _read(calculated: Path, wanted: Mapping[str, Collection[tuple[int, int]]]) -> CalculatedValues:
    if not calculated.exists():
        raise CalculationFailed("LibreOffice wrote no file")
    values: CalculatedValues = {}
    try:
        with open_package(calculated) as workbook:
            for sheet in workbook.sheets:
                cells = wanted.get(sheet.name, ())
                for row, present in workbook.rows(sheet, formulas=False) if cells else ():
                    for cell in present:
                        if (row, cell.column) in cells:
                            values[sheet.name, row, cell.column] = cell.value
    except errors.SheetError as error:
        raise CalculationFailed(f"LibreOffice wrote a file that cannot be read: {error.message}") from error
    missing = sum(len(cells) for cells in wanted.values()) - len(values)
    if missing:
        raise CalculationFailed(f"LibreOffice did not calculate {missing} of the cells")
    return values


def _write(path: Path, sheets: Iterable[CopiedSheet], *, date_1904: bool) -> None:
    """Write a workbook of these sheets. Formulas have no cached values: LibreOffice calculates those."""
    names = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number, sheet in enumerate(sheets, 1):
            names.append(sheet.name)
            with archive.open(f"xl/worksheets/sheet{number}.xml", "w", force_zip64=True) as stream:
                stream.write(f'<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
                for row, cells in sheet.rows:
                    texts = "".join(_cell(row, cell) for cell in cells)
                    stream.write(f'<row r="{row}">{texts}</row>'.encode("utf-8", "replace"))
                stream.write(b"</sheetData></worksheet>")
        for part, text in _other_parts(names, date_1904=date_1904).items():
            archive.writestr(part, text)


def _other_parts(names: Sequence[str], *, date_1904: bool) -> dict[str, str]:
    sheets, relationships, types = "", "", ""
    for number, name in enumerate(names, 1):
        sheets += f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="r{number}"/>'
        target = f"worksheets/sheet{number}.xml"
        relationships += f'<Relationship Id="r{number}" Type="{_DOCUMENT}/worksheet" Target="{target}"/>'
        types += f'<Override PartName="/xl/{target}" ContentType="{_SPREADSHEET}.worksheet+xml"/>'
    root = f'<Relationship Id="r1" Type="{_DOCUMENT}/officeDocument" Target="xl/workbook.xml"/>'
    return {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_SPREADSHEET}.sheet.main+xml"/>{types}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{root}</Relationships>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{relationships}'
        "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_DOCUMENT}"><workbookPr date1904="{int(date_1904)}"/>'
        f"<sheets>{sheets}</sheets></workbook>",
    }


def _cell(row: int, cell: CopiedCell) -> str:
    address = reference(row, cell.column)
    match cell.content:
        case None:
            return ""
        case CopiedFormula(text, filled):
            array = "" if filled is None else f' t="array" ref="{filled}"'
            return f'<c r="{address}"><f{array}>{_escaped(text)}</f></c>'
        case bool():
            return f'<c r="{address}" t="b"><v>{int(cell.content)}</v></c>'
        case Decimal():
            return f'<c r="{address}"><v>{cell.content}</v></c>'
        case CellError(code):
            return f'<c r="{address}" t="e"><v>{_escaped(code)}</v></c>'
        case str():
            text = _escaped(cell.content)
            return f'<c r="{address}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _escaped(text: str) -> str:
    """Return text for XML, without the characters that XML cannot have."""
    return escape("".join(letter for letter in text if letter >= " " or letter in "\t\n\r"))
