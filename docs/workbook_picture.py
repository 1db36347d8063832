"""Take the picture of a filled workbook for the documentation: `python -m docs.workbook_picture`.

Writes a bill of materials with openpyxl, fills it with `v3bridge sheet fill` from the embedded sandbox, and lets
LibreOffice print it. Needs what `make test` installs, soffice (libreoffice-calc-nogui) and pdftoppm (poppler-utils).
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import openpyxl
from openpyxl.styles import Border, Font, PatternFill, Side

ROOT = Path(__file__).parents[1]
IMAGE = ROOT / "docs/images/workbook.png"
COLUMNS = "price@100,stock,lead_time,distributor"
LINES = (
    ("Reference", "MPN", "Manufacturer", "Qty"),
    ("U1", "SN74S74N", "Texas Instruments", 2),
    ("U2", "LM358N", "", 4),
    ("U3", "ATMEGA328P-PU", "Microchip", 1),
    ("D1", "1N4007", "", 8),
    ("M1", 1141, "Adafruit", 1),
    ("Q1", "2N3904", "onsemi", 6),
    ("X9", "NO-SUCH-PART", "", 1),
)
WIDTHS = (11, 17, 19, 6)
RESOLUTION = 110  # dots per inch


def write_bom(file: Path) -> None:
    """Write a small bill of materials with some style."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "BOM"
    line = Side(style="thin", color="BBBBBB")
    for row in LINES:
        sheet.append(row)
    for row in sheet.iter_rows():
        for cell in row:
            cell.border = Border(line, line, line, line)
            if cell.row == 1:
                cell.font, cell.fill = Font("Calibri", 11, bold=True), PatternFill("solid", fgColor="DCE6F1")
    for letter, width in zip("ABCD", WIDTHS, strict=True):
        sheet.column_dimensions[letter].width = width
    # One page that is as wide as the table, without margins: the picture is the table.
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = openpyxl.worksheet.properties.PageSetupProperties(fitToPage=True)
    sheet.page_margins = openpyxl.worksheet.page.PageMargins(0.2, 0.2, 0.2, 0.2, 0, 0)
    book.save(file)


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bom = folder / "BOM.xlsx"
        write_bom(bom)
        subprocess.run([sys.executable, "-m", "proxy", "sheet", "fill", str(bom), "--columns", COLUMNS], check=False)
        filled = folder / "BOM.filled.xlsx"
        profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
        convert = ["soffice", profile, "--headless", "--convert-to", "pdf", "--outdir", str(folder), str(filled)]
        subprocess.run(convert, check=True, stdout=subprocess.DEVNULL)
        page = [
            *("pdftoppm", "-png", "-singlefile", "-r", str(RESOLUTION), "-W", "1230", "-H", "140"),
            str(filled.with_suffix(".pdf")),
        ]
        subprocess.run([*page, str(IMAGE.with_suffix(""))], check=True)
    print(f"{IMAGE.relative_to(ROOT)}: {IMAGE.stat().st_size // 1000} KB")


if __name__ == "__main__":
    main()
