"""CPU time and memory of reading a sheet, and of changing cells of it: up to as many rows as a sheet can have.

Each measurement is a process of its own. openpyxl reads the same file in its read-only mode, which keeps the least in
memory; it cannot change cells in it.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import xlsxwriter

from bench.goals import Goal

ROWS = (100_000, 1_048_576)
CHANGED = 10_000
STEPS = {
    "read": "from proxy.tools.sheet.package import workbook\n"
    "with workbook.open_package(path) as package: rows = sum(1 for _ in package.rows(package.sheets[0]))",
    "change": "from proxy.tools.sheet.package import cells, workbook\n"
    f"changes = {{(row, 4): cells.CellChange('0.10') for row in range(1, {CHANGED + 1})}}\n"
    "with workbook.open_package(path) as package: package.save(path.with_name('copy.xlsx'), {'BOM': changes})",
    "openpyxl": "import openpyxl\n"
    "for _ in openpyxl.load_workbook(path, read_only=True).worksheets[0].iter_rows(values_only=True): pass",
}
MEASURED = """
import re, sys, time
from pathlib import Path
path = Path(sys.argv[1])
{step}
# Not ru_maxrss, which is at least that of the process that started this one.
peak = re.search("VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())
print(time.process_time(), int(peak[1]) / 1024)
"""


def _row(step: str, rows: int, figure: str) -> str:
    return f"{step} {rows:,} rows: {figure}"


MEMORY, SECONDS = "memory (MB)", "CPU time (s)"
GROWTH = "memory for ten times the rows (times)"
READ = f"reading, of openpyxl's CPU time ({ROWS[0]:,} rows)"
GOALS = {GROWTH: Goal("≤", 1.1), READ: Goal("≤", 1)}


def run() -> dict[str, float]:
    """Return CPU time and memory of each step at each size."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for rows in ROWS:
            path = _written(Path(folder) / "book.xlsx", rows)
            for step in ("read", "change"):
                seconds, memory = _measured(step, path)
                figures |= {_row(step, rows, SECONDS): seconds, _row(step, rows, MEMORY): memory}
            if rows == ROWS[0]:
                figures[READ] = figures[_row("read", rows, SECONDS)] / _measured("openpyxl", path)[0]
    small, large = (max(figures[_row(step, rows, MEMORY)] for step in ("read", "change")) for rows in ROWS)
    return figures | {GROWTH: large / small}


def _measured(step: str, path: Path) -> tuple[float, float]:
    """Return CPU seconds and megabytes of a process that does this step."""
    command = [sys.executable, "-c", MEASURED.format(step=STEPS[step]), str(path)]
    seconds, memory = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(memory)


def _written(path: Path, rows: int) -> Path:
    """Write a workbook with this many rows of a part number, a text and a quantity."""
    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        sheet = book.add_worksheet("BOM")
        for row in range(rows):
            sheet.write_row(row, 0, (row, f"SN74S{row}N", row % 99))
    return path
