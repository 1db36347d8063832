"""Runs KiCost's command line on a list of parts, and reads its spreadsheet.

The Makefile installs it without its dependencies, each version in its own folder. The tests set its URLs, its
credentials and the exchange rates, which it would fetch from the European Central Bank.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import openpyxl
import pytest

# The columns of KiCost's spreadsheet, and the sellers that they stand for.
SELLERS = {
    "Arrow": "Arrow Electronics",
    "Digi-Key": "Digi-Key",
    "Farnell": "Farnell",
    "LCSC": "LCSC",
    "Mouser": "Mouser",
    "Newark": "Newark",
    "TME": "TME",
}
RATES = '<r><Cube time="2026-11-20"/><Cube currency="USD" rate="1.15"/><Cube currency="GBP" rate="0.87"/></r>'
# Its token URL is a constant: this is where it connects, as for the other clients. Digi-Key's own service is switched
# off: KiCost leaves it on, and then fails, where the library for it is not installed.
START = """
import os, sys
from kicost import __main__ as kicost
sys.modules["kicost.distributors.api_digikey"].api_digikey.enabled = False
token_url = os.environ.get("TOKEN_URL")
if token_url:
    sys.modules["kicost.distributors.api_nexar"].PROD_TOKEN_URL = token_url
kicost.main()
"""


class Line(NamedTuple):
    """Spreadsheet cells of one part at one seller. `stock` None: not stocked."""

    code: str
    stock: int | None
    prices: dict[int, float]


Sheet = dict[str, dict[str, Line]]


def run(version: str, folder: Path, parts: list[tuple[str, str]], **environment: str) -> Sheet:
    """Run it on (maker, number) pairs; return its results by number and seller's column."""
    installed = Path(sys.prefix) / f"kicost-{version}"
    if not installed.is_dir():
        pytest.fail(f"KiCost {version} is not in {installed}: `make test` installs it", pytrace=False)
    bom, sheet, rates = folder / "bom.csv", folder / "out.xlsx", folder / "rates.xml"
    named = any(maker for maker, _ in parts)
    rows = [("manf", "manf#"), *parts] if named else [("manf#", ""), *((mpn, "") for _, mpn in parts)]
    bom.write_text("".join(f"{first},{second}\n" for first, second in rows))
    rates.write_text(RATES)
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(installed),
        "KICOST_CURRENCY_RATES": str(rates),
        **environment,
    }
    command = [sys.executable, "-c", START, "-i", bom.name, "-o", sheet.name, "--eda", "csv", "--overwrite"]
    command += ["--disable_api", "KitSpace"]  # what the service does not have it would ask another one
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    return _read(sheet)


def _read(path: Path) -> Sheet:
    rows = [list(row) for row in openpyxl.load_workbook(path).active.iter_rows(values_only=True)]
    top = next(number for number, row in enumerate(rows) if row[0] == "Global Part Info")
    sellers = {name: column for column, name in enumerate(rows[top]) if name in SELLERS}
    number = rows[top + 1].index("Manf#")
    found: Sheet = {}
    for row in rows[top + 2 :]:
        if row[number] is None:
            break
        found[str(row[number])] = {
            seller: _line(row[column : column + 6]) for seller, column in sellers.items() if row[column + 5] is not None
        }
    return found


def _line(cells: list[object]) -> Line:
    """Read Avail, Purch, Unit$, MOQ, Ext$, Cat#; the prices are in the formula of the unit price."""
    stock, _, unit, _, _, code = cells
    breaks = re.search(r"\{([\d.,]+)\},\{([\d.,]+)\}", str(unit))
    quantities, prices = (text.split(",") for text in breaks.groups()) if breaks else ([], [])
    return Line(
        str(code),
        int(stock) if isinstance(stock, int | float) else None,
        {int(quantity): float(price) for quantity, price in zip(quantities, prices, strict=True) if float(price)},
    )
