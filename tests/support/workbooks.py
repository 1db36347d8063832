"""Workbooks for tests."""

import io
from collections.abc import Sequence

import openpyxl


def workbook(*sheets: Sequence[Sequence[str | int | float]]) -> bytes:
    book, stream = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for number, rows in enumerate(sheets, 1):
        sheet = book.create_sheet(f"S{number}")
        for row in rows:
            sheet.append(row)
    book.save(stream)
    return stream.getvalue()
