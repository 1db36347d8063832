"""Parts, upstream requests, time and memory of `v3bridge sheet fill` on a parts list of 10 000 lines, run twice.

As a CSV file and as a workbook, with the columns of a usual parts list, and as a workbook with six of the add-in's
functions in each row; the second run should cost nothing. Parts come from a canned upstream that responds after 200 ms,
each with 6 offers and 36 price breaks. The commands are processes of their own: the time has their start, the memory is
the largest that each had.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import openpyxl
import yaml

from bench.goals import Goal
from bench.processes import Server, configuration, upstream

LINES, FEW = 10_000, 1000
UPSTREAM_MS = 200
COLUMNS = ("--columns", "manufacturer,price@100,stock,moq,lead_time,lifecycle,datasheet")
FORMULAS = ("--api-key", "env:BENCH_KEY")  # instead of a login in the workbook
FUNCTIONS = tuple(
    f"=NEXAR_SUPPLY_{name}"
    for name in (
        *("MANUFACTURER_NAME(A{0})", 'DISTRIBUTOR_PRICE(A{0},"","",100)', "DISTRIBUTOR_STOCK(A{0})"),
        *("DISTRIBUTOR_MOQ(A{0})", "DISTRIBUTOR_LEAD_TIME(A{0})", "DATASHEET_URL(A{0})"),
    )
)
REQUESTS, PARTS = "upstream requests", "parts"
COMMAND = """
import re, runpy, sys
from pathlib import Path
peak = Path(sys.argv.pop())
try:
    runpy.run_module("proxy", run_name="__main__")
finally:
    # Not ru_maxrss, which is at least that of the process that started this one.
    peak.write_text(re.search("VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())[1])
"""


class FillKind(NamedTuple):
    """A kind of file: its suffix, how it is written, and options of the command."""

    suffix: str
    write: Callable[[Path, int], None]
    options: tuple[str, ...]


class FillFigures(NamedTuple):
    """One command: seconds, seconds of CPU time, peak memory in MB, and what it requested of the upstream."""

    seconds: float
    cpu: float
    memory: float
    requests: int
    parts: int


def row(kind: str, figure: str, lines: int = LINES) -> str:
    """Return the name of a row."""
    return f"{lines} lines, {kind}: {figure}"


GOALS = {
    goal: limit
    for kind in ("csv", "xlsx", "formulas")
    for goal, limit in (
        (row(kind, f"{REQUESTS}, first run"), Goal("≤", LINES / 100)),
        (row(kind, f"{PARTS}, first run"), Goal("≤", LINES)),
        (row(kind, f"{REQUESTS}, second run"), Goal("≤", 0)),
        (row(kind, f"{PARTS}, second run"), Goal("≤", 0)),
        (row(kind, "peak memory, first run (MB)"), Goal("≤", 256)),
    )
}


def run() -> dict[str, float]:
    """Return the figures of both runs of each kind of file, and the memory of a short file."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, upstream(UPSTREAM_MS, parts=1) as behind:
        for kind, (suffix, write, options) in _KINDS.items():
            folder = Path(name) / kind
            folder.mkdir()
            file, few = folder / f"parts.{suffix}", folder / f"few.{suffix}"
            write(file, LINES)
            write(few, FEW)
            config = folder / "config.yaml"
            config.write_text(yaml.safe_dump(configuration(behind.port, folder, {})), encoding="utf-8")
            for place in ("first", "second"):
                figures |= _figures(kind, place, _fill(file, options, config, behind))
            figures[row(kind, "peak memory (MB)", FEW)] = _fill(few, options, config, behind).memory
    return figures


def _figures(kind: str, place: str, command: FillFigures) -> dict[str, float]:
    return {
        row(kind, f"{REQUESTS}, {place} run"): command.requests,
        row(kind, f"{PARTS}, {place} run"): command.parts,
        row(kind, f"time, {place} run (s)"): command.seconds,
        row(kind, f"CPU time, {place} run (s)"): command.cpu,
        row(kind, f"peak memory, {place} run (MB)"): command.memory,
    }


def _fill(file: Path, options: tuple[str, ...], config: Path, behind: Server) -> FillFigures:
    """Fill a file with the command; the output of an earlier run is removed."""
    for earlier in file.parent.glob(f"{file.stem}.filled*"):
        earlier.unlink()
    behind.body("/count")
    peak = file.with_name("peak")
    arguments = ["sheet", "fill", str(file), *options, "--config", str(config), "--yes", str(peak)]
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        stdout=subprocess.DEVNULL,
        env=os.environ | {"BENCH_KEY": "EXAMPLE_KEY"},
    )
    # wait4: the CPU time of this process alone, where getrusage has the sum of all children.
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"sheet fill ended with exit code {process.returncode}")
    requests, parts = json.loads(behind.body("/count"))
    cpu, memory = usage.ru_utime + usage.ru_stime, int(peak.read_text()) / 1024
    return FillFigures(seconds, cpu, memory, requests, parts)


def _rows(lines: int) -> Iterator[tuple[str | int, ...]]:
    yield "Part Number", "Quantity", "Reference"
    yield from ((f"SN74S{number:05}", 10, f"U{number}") for number in range(lines))


def _write_csv(file: Path, lines: int) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(_rows(lines))


def _write_workbook(file: Path, lines: int) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Parts")
    for cells in _rows(lines):
        sheet.append(cells)
    book.save(file)


def _write_formulas(file: Path, lines: int) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Parts")
    for number in range(1, lines + 1):
        sheet.append((f"SN74S{number:05}", *(function.format(number) for function in FUNCTIONS)))
    book.save(file)


_KINDS = {
    "csv": FillKind("csv", _write_csv, COLUMNS),
    "xlsx": FillKind("xlsx", _write_workbook, COLUMNS),
    "formulas": FillKind("xlsx", _write_formulas, FORMULAS),
}
