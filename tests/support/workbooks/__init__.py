"""Workbooks for tests, written as XML text and packed with zipfile: nothing here uses the code under test.

`builder` has sheets, cells and the package; `dialects` how each program spells them; `features` and `sheet_features`
everything that may stand beside cells; `samples` whole workbooks, one of them like the add-in's official sample;
`hostile` files that no program wrote; `packed` reads a package back.
"""

from collections.abc import Sequence

from support.workbooks import builder, dialects


def workbook(*sheets: Sequence[Sequence[str | int | float]], last: str = "") -> bytes:
    """A minimal .xlsx without cell addresses; `last` is XML appended to the rows of each sheet."""
    book = builder.WorkbookBuilder(dialects.BARE)
    for number, rows in enumerate(sheets, 1):
        sheet = book.sheet(f"S{number}")
        for row in rows:
            sheet.append(*row)
        sheet.tail = last
    return book.packed()
