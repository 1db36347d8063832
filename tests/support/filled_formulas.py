"""Workbooks with the add-in's formulas, filled from a source of parts in memory."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from tools.sheet.part_source import MemoryPartSource

from proxy.tools.sheet.formulas.job import FormulaJob, FormulaOptions
from proxy.tools.sheet.libreoffice import LibreOffice
from proxy.tools.sheet.package.cells import CellError, CellValue, Formula
from proxy.tools.sheet.package.workbook import open_package
from proxy.tools.sheet.parts import Offer, Part, Price, Refresh
from support.workbooks import features
from support.workbooks.builder import AnyCell, FormulaCell, WorkbookBuilder, letters

X = "_xll.NEXAR_SUPPLY_"
LOGIN = FormulaCell(f'{X}LOGIN("planted-id","planted-secret")', "")
NOT_AVAILABLE = CellError("#N/A")


def part(mpn: str, price: str = "0.5", manufacturer: str = "TI") -> Part:
    """A part with one offer of Digi-Key."""
    prices = (Price(1, Decimal(price), "USD"), Price(100, Decimal(price) / 2, "USD"))
    offer = Offer("459", "Digi-Key", authorized=True, sku=f"{mpn}-ND", stock=7, moq=1, prices=prices)
    return Part(mpn, manufacturer, url=f"https://octopart.com/{mpn}", short_description=f"={mpn}", offers=(offer,))


PARTS = {mpn: part(mpn) for mpn in ("LM317", "1868783", "NE555", "LM317-ND", "A-1", "B-2")}


@dataclass(frozen=True)
class Filled:
    """A filled workbook: its cells by sheet and address, and the end of the run."""

    cells: dict[str, tuple[CellValue, Formula | None]]
    counts: dict[str, int]
    problems: list[str]
    source: MemoryPartSource
    lines: int

    def __getitem__(self, address: str) -> CellValue:
        return self.cells[address][0]


def book(cells: Mapping[str, AnyCell], more: Mapping[str, Mapping[str, AnyCell]] | None = None) -> WorkbookBuilder:
    """A workbook with a login in A1 of its first sheet, BOM, unless the cells have something else there."""
    workbook = WorkbookBuilder()
    features.dynamic_arrays(workbook)
    for name, content in {"BOM": {"A1": LOGIN, **cells}, **(more or {})}.items():
        sheet = workbook.sheet(name)
        for address, cell in content.items():
            sheet.put(address, cell)
    return workbook


async def _run(
    path: Path, source: MemoryPartSource, options: FormulaOptions, office: LibreOffice | None, *, refresh: Refresh
) -> tuple[FormulaJob, dict[str, int], Path]:
    """Fill a workbook as the command does."""
    target = path.with_suffix(".filled.xlsx")
    with open_package(path) as package:
        job = FormulaJob(package, options, office)
        while job.queries:
            async for result in source.fetch(job.queries, refresh=refresh):
                job.add(result)
            await job.proceed(stopped=False)
        counts = {name: count for name, count in job.write(target).items() if count}
    return job, counts, target


def fill(
    workbook: WorkbookBuilder,
    folder: Path,
    source: MemoryPartSource | None = None,
    office: LibreOffice | None = None,
    *,
    refresh: Refresh = "nothing",
    **options: object,
) -> Filled:
    """Fill a workbook; return what is in the copy."""
    source = source or MemoryPartSource(PARTS)
    path = workbook.write(folder / "BOM.xlsx")
    job, counts, target = asyncio.run(_run(path, source, FormulaOptions(**options), office, refresh=refresh))  # type: ignore[arg-type]
    cells: dict[str, tuple[CellValue, Formula | None]] = {}
    with open_package(target) as package:
        for sheet in package.sheets:
            prefix = "" if sheet is package.sheets[0] else f"{sheet.name}!"
            for _, row in package.rows(sheet):
                for cell in row:
                    address = f"{prefix}{letters(cell.column)}{cell.row}"
                    cells[address] = cell.value, cell.formula
    return Filled(cells, counts, job.problems, source, job.lines)
