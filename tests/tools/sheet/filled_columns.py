"""Parts for tests of columns, and tables filled with them."""

import asyncio
import csv
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from tools.sheet.part_source import MemoryPartSource

from proxy.tools.sheet import fill
from proxy.tools.sheet.columns import specs
from proxy.tools.sheet.columns.job import ColumnsJob
from proxy.tools.sheet.columns.specs import ColumnSet
from proxy.tools.sheet.parts import Offer, Part, PartSpec, Price

NOW = 1_700_000_000.0
DIGIKEY = Offer(
    "459", "Digi-Key", True, "296-1", 500, 1, 1, 42, "Tube", "https://d.example/1", "2026-01-01",
    (Price(1, Decimal("0.60"), "USD"), Price(100, Decimal("0.30"), "USD")),
)  # fmt: skip
REEL = Offer(
    "2401", "Mouser", False, "595-1", 9000, 2500, 2500, None, "Reel", prices=(Price(1, Decimal("0.1"), "USD"),)
)
LM358 = Part(
    "LM358N", "Texas Instruments", "https://p.example", "Op amp", "https://d.example/lm358.pdf", "Active", "DIP-8",
    (DIGIKEY, REEL),
    specs=(
        PartSpec("rohs", "RoHS", "rohs_status", "Compliant"),
        PartSpec("numberofpins", "Number of Pins", "pin_count", "8"),
    ),
)  # fmt: skip
PARTS = {"LM358N": LM358, "1234567": Part("1234567", "=cmd|' /C calc'!A0", short_description="-1+1")}


def columns(names: str, **more: Any) -> ColumnSet:
    """Columns by name."""
    return ColumnSet(specs.parse_list(names), **more)


Bom = Callable[[str], tuple[Path, Path]]
Fill = Callable[..., Mapping[str, int]]


def filling(source: MemoryPartSource) -> Fill:
    """A function that fills a table to a target."""

    def run(table: Any, target: Path, names: str, **more: Any) -> Mapping[str, int]:
        job_options = {name: more.pop(name) for name in ("rerun_failures", "fetched_before", "reading") if name in more}
        job = ColumnsJob(table, columns(names, **more), now=NOW, **job_options)
        asyncio.run(fill.fetch(job, source, asyncio.Event()))
        return job.write(target)

    return run


def rows_of(file: Path, delimiter: str = ",") -> list[list[str]]:
    """Return the cells of a CSV file."""
    with file.open(newline="", encoding="utf-8-sig") as stream:
        return list(csv.reader(stream, delimiter=delimiter))
