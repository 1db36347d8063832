"""Parts, upstream requests, time and memory of `v3bridge sheet fill` on a parts list of 10 000 lines, run twice.

As a CSV file and as a workbook, with the columns of a usual parts list; the second run should cost nothing. Parts come
from a canned upstream that responds after 200 ms, each with 6 offers and 36 price breaks. The commands are processes of
their own: the time has their start, the memory is the largest that each had.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import openpyxl
import yaml

from bench.goals import Goal
from bench.processes import Server, configuration, upstream

LINES, FEW = 10_000, 1000
UPSTREAM_MS = 200
COLUMNS = "manufacturer,price@100,stock,moq,lead_time,lifecycle,datasheet"
REQUESTS, PARTS = "upstream requests", "parts"


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
    for kind in ("csv", "xlsx")
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
        for kind, write in (("csv", _write_csv), ("xlsx", _write_workbook)):
            folder = Path(name) / kind
            folder.mkdir()
            file, few = folder / f"parts.{kind}", folder / f"few.{kind}"
            write(file, LINES)
            write(few, FEW)
            config = folder / "config.yaml"
            config.write_text(yaml.safe_dump(configuration(behind.port, folder, {})), encoding="utf-8")
            for place in ("first", "second"):
                figures |= _figures(kind, place, _fill(file, config, behind))
            figures[row(kind, "peak memory (MB)", FEW)] = _fill(few, config, behind).memory
    return figures


def _figures(kind: str, place: str, command: FillFigures) -> dict[str, float]:
    return {
        row(kind, f"{REQUESTS}, {place} run"): command.requests,
        row(kind, f"{PARTS}, {place} run"): command.parts,
        row(kind, f"time, {place} run (s)"): command.seconds,
        row(kind, f"CPU time, {place} run (s)"): command.cpu,
        row(kind, f"peak memory, {place} run (MB)"): command.memory,
    }


def _fill(file: Path, config: Path, behind: Server) -> FillFigures:
    """Fill a file with the command; the output of an earlier run is removed."""
    for earlier in file.parent.glob(f"{file.stem}.filled*"):
        earlier.unlink()
    behind.body("/count")
    command = [sys.executable, "-m", "proxy", "sheet", "fill", str(file), "--columns", COLUMNS]
    began = time.perf_counter()
    process = subprocess.Popen([*command, "--config", str(config), "--yes"], stdout=subprocess.DEVNULL)
    # wait4: the memory of this process alone, where getrusage has the largest of all children.
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"sheet fill ended with exit code {process.returncode}")
    requests, parts = json.loads(behind.body("/count"))
    return FillFigures(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, requests, parts)


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
