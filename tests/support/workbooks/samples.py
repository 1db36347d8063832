"""Whole workbooks: a bill of materials, the add-in's sample, and one with every feature."""

from collections.abc import Sequence

from support.workbooks import dialects, features, sheet_features
from support.workbooks.builder import AnyCell, FormulaCell, Plain, SheetBuilder, StyledCell, WorkbookBuilder

# The official sample's columns: heading, function, its argument, and whether the result is text.
COLUMNS: tuple[tuple[str, str, str, Plain], ...] = (
    ("SKU", "DISTRIBUTOR_SKU", "A{row}", "8931817"),
    ("Average Price", "AVERAGE_PRICE", "A{row}", 45.79),
    ("Stock", "DISTRIBUTOR_STOCK", "$A{row}", "In stock"),
    ("ClickURL", "DETAIL_URL", "A{row}", "https://example.invalid/part"),
    ("Lead Time", "DISTRIBUTOR_LEAD_TIME", "A{row}", ""),
    ("Order Multiple", "DISTRIBUTOR_ORDER_MULTIPLE", "A{row}", "1"),
    ("Dist URL", "DISTRIBUTOR_URL", "A{row}", "https://example.invalid/click?a=1&b=2"),
    ("Packaging", "DISTRIBUTOR_PACKAGING", "A{row}", ""),
    ("MOQ", "DISTRIBUTOR_MOQ", "A{row}", 1),
    ("DatasheetURL", "DATASHEET_URL", "A{row}", "https://example.invalid/datasheet.pdf"),
)
FIRST_ROW = 7
MACROS = bytes(range(256)) * 32
LOGIN_MISSING = "Please provide your Nexar application Client Id and Secret"


def bom(
    rows: Sequence[Sequence[AnyCell]], dialect: dialects.Dialect = dialects.EXCEL, name: str = "BOM"
) -> WorkbookBuilder:
    """One sheet with these rows, the first of them in bold."""
    book = WorkbookBuilder(dialect)
    features.styles(book)
    sheet = book.sheet(name)
    for number, row in enumerate(rows):
        bold = number == 0 and all(isinstance(cell, str) for cell in row)
        sheet.append(*(StyledCell(cell, features.BOLD) if bold and isinstance(cell, str) else cell for cell in row))
    return book


def official(
    parts: Sequence[Plain],
    *,
    dialect: dialects.Dialect = dialects.EXCEL,
    function: str = "_xll.NEXAR_SUPPLY_",
    prices: Sequence[tuple[Plain, Plain, int]] = (),
    macros: bytes | None = None,
) -> WorkbookBuilder:
    """Like the add-in's official sample: a login, a row of functions a part, and prices by distributor and quantity.

    Formulas of the first row and of the last column are dynamic arrays; every address has a link.
    """
    book = WorkbookBuilder(dialect, macros)
    book.macro_enabled = True  # the sample is an .xlsm without macros
    features.styles(book)
    features.theme(book)
    features.dynamic_arrays(book)
    features.properties(book)
    sheet = book.sheet("Sample")
    sheet.put("A1", StyledCell("Client Id:  ", features.CENTRED), None, "<- Put your Client Id in B1")
    sheet.put("A2", StyledCell("Client Secret: ", features.CENTRED), None, "<- Put your Client Secret in B2")
    sheet.put("A3", "Version:", _volatile("B3", f"{function}VERSION()", "0.2.0"))
    sheet.put("A4", "Ready?", _volatile("B4", f"{function}LOGIN(B1,B2)", LOGIN_MISSING))
    headings = ["MPN", *(heading for heading, *_ in COLUMNS)]
    sheet.put("A6", *(StyledCell(heading, features.BOLD_LEFT) for heading in headings))
    for row, part in enumerate(parts, FIRST_ROW):
        _part_row(sheet, row, part, function)
    last = _price_rows(sheet, FIRST_ROW + len(parts) + 1, prices, function)
    rows = range(FIRST_ROW, FIRST_ROW + len(parts))
    features.hyperlinks(
        sheet, {f"{letter}{row}": f"https://example.invalid/{letter}/{row}?a=1&b=2" for row in rows for letter in "EHK"}
    )
    sheet_features.frozen(sheet, FIRST_ROW - 1)
    features.printer_settings(sheet)
    sheet.elements["phoneticPr"] = '<phoneticPr fontId="1" type="noConversion"/>'
    sheet.put(f"E{last + 1}", StyledCell(None, features.LEFT))
    return book


def _volatile(address: str, text: str, value: str) -> FormulaCell:
    return FormulaCell(text, value, array=address, dynamic=True, attributes=' aca="1" ca="1"')


def _part_row(sheet: SheetBuilder, row: int, part: Plain, function: str) -> None:
    cells: list[AnyCell] = [StyledCell(part, features.LEFT)]
    for number, (_, name, argument, value) in enumerate(COLUMNS, 2):
        text = f"{function}{name}({argument.format(row=row)})"
        dynamic = row == FIRST_ROW or name == "DATASHEET_URL"
        array = f"{'ABCDEFGHIJK'[number - 1]}{row}" if dynamic else ""
        style = features.LINK if name.endswith("URL") else features.LEFT
        cells.append(FormulaCell(text, value, array=array, dynamic=dynamic, style=style))
    sheet.put(f"A{row}", *cells)


def _price_rows(sheet: SheetBuilder, row: int, prices: Sequence[tuple[Plain, Plain, int]], function: str) -> int:
    """Write the second block from this row on, and return its last row."""
    headings = ("MPN", None, "Distributor", "Quantity", "Distributor Price")
    sheet.put(f"A{row}", *(heading and StyledCell(heading, features.BOLD) for heading in headings))
    for part, distributor, quantity in prices:
        row += 1
        text = f"{function}DISTRIBUTOR_PRICE(A{row},,C{row},D{row})"
        price = FormulaCell(text, 50.62, array=f"E{row}", dynamic=True, style=features.LEFT)
        sheet.put(f"A{row}", part, StyledCell(None, features.LEFT), distributor, quantity, price)
    return row


def everything(
    parts: Sequence[Plain],
    *,
    dialect: dialects.Dialect = dialects.EXCEL,
    prices: Sequence[tuple[Plain, Plain, int]] = (),
) -> WorkbookBuilder:
    """The official sample's sheet with macros, and on it and beside it every feature that a workbook may have."""
    book = official(parts, dialect=dialect, prices=prices, macros=MACROS)
    sample = book.sheets[0]
    last = FIRST_ROW + len(parts) - 1
    sheet_features.chart_and_picture(sample, f"Sample!$C${FIRST_ROW}:$C${last}")
    sheet_features.comments(sample, {"A6": "From engineering", f"A{last}": "Second source?"})
    sheet_features.rules(sample, f"J{FIRST_ROW}:J{last}")
    sheet_features.merged(sample, "C1:E1", "C2:E2")
    sheet_features.protection(sample)
    _summary(book, last)
    table = book.sheet("Parts list")
    table.append("Reference", "Part", "Quantity", "Bought on")
    for number, part in enumerate(parts, 1):
        table.append(
            f"<r><t>R</t></r><r><rPr><b/></rPr><t>{number}</t></r>",
            part,
            number,
            StyledCell(44927 + number, features.DATE),
        )
    sheet_features.table(table, f"A1:D{len(parts) + 1}", ["Reference", "Part", "Quantity", "Bought on"])
    sheet_features.pivot_table(
        table, f"A1:D{len(parts) + 1}", ["Reference", "Part", "Quantity", "Bought on"], book.sheet("Pivot")
    )
    hidden = book.sheet("Hidden", "hidden")
    hidden.append("yes")
    hidden.append("no")
    book.sheet("Very hidden", "veryHidden").append(True, 1.5, "x")
    sheet_features.chart_sheet(sample)
    features.defined_names(book, {"Distributors": "Hidden!$A$1:$A$2", "Factor": "1.19", "Broken": "#REF!"})
    features.defined_names(book, {"_xlnm.Print_Area": f"Sample!$A$1:$K${last}"}, ' localSheetId="0"')
    features.locked_structure(book)
    features.custom_xml(book)
    features.external_link(book)
    features.calculation_chain(book)
    return book


def _summary(book: WorkbookBuilder, last: int) -> None:
    """Formulas that depend on those of the sample: sums, a shared formula, an error, a truth value."""
    sheet = book.sheet("Summary")
    sheet.append("Sum", FormulaCell(f"SUM(Sample!C{FIRST_ROW}:C{last})", 100.5))
    sheet.append("Any", FormulaCell(f"Sample!J{FIRST_ROW}>0", True))
    sheet.append("Error", FormulaCell("1/0", "#DIV/0!"))
    sheet.append("Text", FormulaCell('"a"&" < "&"b"', "a < b"))
    sheet.append("First", FormulaCell("ROW()*2", 10, shared=(0, "B5:B7")))
    sheet.append("Second", FormulaCell("", 12, shared=(0, "")))
    sheet.append("Third", FormulaCell("", 14, shared=(0, "")))
    sheet.append("Matrix", FormulaCell("TRANSPOSE(A1:A2)", "Sum", array="B8:C8"), "Any")
