"""SECURITY.md states the limits that the code has."""

import re
from pathlib import Path

from proxy.tools.sheet.package import archive, cells, reading, strings, structure, workbook, xml_events

PAGE = Path(__file__).parents[3] / "SECURITY.md"
MIB, GIB = 1 << 20, 1 << 30
LIMITS = {
    "file": f"{archive.FILE_MAX // MIB} MiB",
    "parts": f"{archive.MEMBERS_MAX:,}",
    "all parts, unpacked": f"{archive.UNPACKED_MAX // GIB} GiB",
    "a sheet, unpacked": f"{workbook.SHEET_MAX // GIB} GiB",
    "shared strings, unpacked": f"{workbook.STRINGS_MAX // MIB} MiB, {strings.STRINGS_MAX:,} texts",
    "lists of sheets, styles, calculated cells": f"{structure.PART_MAX // MIB} MiB each",
    "ratio of unpacked to packed bytes": f"{archive.RATIO_MAX}, beyond {archive.RATIO_FREE // MIB} MiB",
    "rows, columns": f"{cells.ROWS_MAX:,} and {cells.COLUMNS_MAX:,}",
    "text of a cell, written": f"{cells.TEXT_MAX:,} characters",
    "text of a cell, read": f"{strings.TEXT_READ_MAX:,} characters",
    "shared formula": f"{reading.FORMULA_MAX:,} characters",
    "shared formulas of a workbook, in all their cells": f"{reading.EXPANDED_MAX:,} characters",
    "nesting of XML": f"{xml_events.DEPTH_MAX} elements",
    "a tag or comment": f"{xml_events.TAG_MAX // MIB} MiB",
}


def test_limits_are_those_of_the_code() -> None:
    table = PAGE.read_text("utf-8").split("## Limits of workbooks")[1].split("\n## ")[0]
    stated = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|[^|]*\|$", table, re.MULTILINE)[1:])
    stated.pop("---", None)
    assert stated == LIMITS
