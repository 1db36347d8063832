"""Workbooks, read and written by openpyxl in a process of its own: a hostile file can only end that.

Before anything is unpacked, the sizes that the archive's directory states are added up; openpyxl unpacks no more. A
formula that can be filled is one call of a function of the add-in (contract workbook.md, Functions), whose arguments
are literals and references to cells. Anything else is named, and left.
"""

import importlib.util
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import msgspec

import proxy
from proxy import errors
from proxy.tools.sheet.cell_texts import Cell
from proxy.tools.sheet.columns import FilledColumns
from proxy.tools.sheet.lines import Reading, column_name

UNPACKED_MAX = 1 << 26  # bytes
READ_SECONDS, WRITE_SECONDS = 20, 120  # of CPU
REFUSED = 3  # exit code: standard output says why
WAITING = 6  # times as long as that, on a machine with other work
NO_WORKBOOK = "is not a workbook, damaged, or protected by a password; save it as .xlsx without one, or as CSV"
KEPT = (  # also what programs make anew
    *("[", "_rels/", "docProps/", "xl/_rels/", "xl/workbook.", "xl/worksheets/", "xl/chartsheets/", "xl/styles."),
    *("xl/theme/", "xl/sharedStrings.", "xl/comments", "xl/tables/", "xl/externalLinks/", "xl/media/"),
    *("xl/calcChain.", "xl/printerSettings/"),
)
LOST = {
    "xl/charts/": "charts",
    "xl/drawings/": "drawings",
    "xl/pivotTables/": "pivot tables",
    "xl/slicers/": "slicers",
    "xl/vbaProject": "macros",
    "xl/ctrlProps/": "form controls",
    "xl/threadedComments/": "threaded comments",
    "_xmlsignatures/": "its signature",
}
"""What a copy lacks or has changed, by the beginnings of parts' names; others that are not KEPT have none but those."""

PREFIX = "NEXAR_SUPPLY_"

_PART = ("mpn", "manufacturer")
_OFFERS = (*_PART, "distributors", "authorized")

FUNCTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("DETAIL_URL", "DATASHEET_URL", "SHORT_DESCRIPTION", "MANUFACTURER_NAME"), _PART),
    "DISTRIBUTOR_PRICE": (*_PART, "distributors", "quantity", "currency", "authorized"),
    "AVERAGE_PRICE": (*_PART, "quantity", "currency", "authorized"),
    **dict.fromkeys(("DISTRIBUTOR_STOCK", "DISTRIBUTOR_STOCK_UPDATED", "DISTRIBUTOR_MOQ"), _OFFERS),
    **dict.fromkeys(("DISTRIBUTOR_ORDER_MULTIPLE", "DISTRIBUTOR_LEAD_TIME", "DISTRIBUTOR_PACKAGING"), _OFFERS),
    **dict.fromkeys(("DISTRIBUTOR_URL", "DISTRIBUTOR_SKU"), _OFFERS),
    "LOGIN": ("client_id", "client_secret", "exclude_datasheets", "exclude_lead_time"),
    **dict.fromkeys(("VERSION", "DEV_TOKEN", "DEV_TOKEN_EXPIRES", "DEV_FEATURES", "FEATURES"), ()),
}
"""What the arguments of each function mean, in their order; by its name without the prefix."""


class Call(msgspec.Struct, frozen=True):
    """A cell with one call. `arguments`: values of each."""

    sheet: str
    row: int
    column: int
    function: str
    formula: str
    arguments: list[list[Cell]] = []

    @property
    def place(self) -> str:
        """The cell, as people name it."""
        return f"{self.sheet}!{column_name(self.column - 1)}{self.row}"

    @property
    def looks_up(self) -> bool:
        """Whether the function needs a part."""
        return FUNCTIONS[self.function][:1] == ("mpn",)


class ReadTask(msgspec.Struct, tag=True):
    """What is to be read: a sheet, or the first with part numbers below their heading; or `calls` of the add-ins."""

    path: str
    calls: bool = False
    sheet: str | None = None
    named: Mapping[str, Sequence[str]] = {}


class WorkbookContent(msgspec.Struct):
    """Rows of one of the sheets, or calls of all. `others`: further sheets with part numbers; `formulas`: number of the
    workbook's own ones, whose values a copy shows only when it is opened; `extensions`: what of sheets is not kept,
    such as sparklines."""

    sheets: list[str] = []
    sheet: str = ""
    others: list[str] = []
    rows: list[tuple[int, list[Cell]]] = []
    formulas: int = 0
    extensions: list[str] = []
    calls: list[Call] = []
    problems: list[str] = []


class NewCell(msgspec.Struct, frozen=True):
    """A cell to be written. `comment`: the formula that it had; `is_new`: it takes the style of its neighbor."""

    sheet: str
    row: int
    column: int
    value: str | int | float | None
    comment: str = ""
    number_format: str = ""
    is_new: bool = False


class WriteTask(msgspec.Struct, tag=True):
    """Cells that are written into a copy."""

    path: str
    target: str
    cells: list[NewCell]


class WorkbookFile:
    """A workbook as it was read: what is written is a copy of that, whatever somebody saves meanwhile. `lost`: what a
    copy lacks or has changed."""

    def __init__(self, path: Path, data: bytes, folder: Path) -> None:
        """Raise SheetError if the file is damaged or too large, before anything is unpacked."""
        if importlib.util.find_spec("openpyxl") is None:
            raise ModuleNotFoundError("openpyxl", name="openpyxl")
        self.path = path
        self.content = WorkbookContent()
        self._snapshot = folder / f"list{path.suffix}"
        self._snapshot.write_bytes(data)
        try:
            with zipfile.ZipFile(self._snapshot) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            raise errors.SheetError(f"{self.path}: {NO_WORKBOOK}") from None
        if sum(member.file_size for member in members) > UNPACKED_MAX:
            large = f"is larger than a parts list can be ({UNPACKED_MAX >> 20} MiB unpacked)"
            raise errors.SheetError(f"{self.path}: {large}")
        others = [each.filename for each in members if not (each.is_dir() or each.filename.startswith(KEPT))]
        self.lost = sorted({next((LOST[start] for start in LOST if name.startswith(start)), name) for name in others})

    def read(self, sheet: str | None = None, reading: Reading | None = None) -> WorkbookContent:
        """Return the rows of a sheet that are not blank, or without `reading` the calls of the add-in's functions.
        Raises SheetError."""
        task = ReadTask(str(self._snapshot), reading is None, sheet, {} if reading is None else reading.named)
        self.content = msgspec.msgpack.decode(self._run(task, READ_SECONDS), type=WorkbookContent)
        self.lost += self.content.extensions
        return self.content

    def save(self, target: Path, cells: Sequence[NewCell]) -> None:
        """Write a copy with other cells. Raises SheetError."""
        self._run(WriteTask(str(self._snapshot), str(target), list(cells)), WRITE_SECONDS)

    def save_list(self, target: Path, filled: FilledColumns) -> None:
        """Write a copy with other cells of the sheet. Raises SheetError."""
        written: list[NewCell] = []
        for row, values in sorted(filled.cells.items()):
            for at, value in sorted(values.items()):
                plain = float(value) if isinstance(value, Decimal) else value
                written.append(
                    NewCell(self.content.sheet, row, at + 1, plain, "", filled.formats[at], at in filled.new)
                )
        self.save(target, written)

    def _run(self, task: ReadTask | WriteTask, seconds: int) -> bytes:
        """Let another process do it, which imports nothing from the folder of the user."""
        environment = os.environ | {"PYTHONPATH": str(Path(proxy.__file__).parents[1])}
        command = [sys.executable, "-P", "-m", "proxy.tools.sheet.workbook_process", str(seconds)]
        late = f"{self.path}: takes more than {seconds} s or too much memory: split it, or save the list as CSV"
        data = msgspec.msgpack.encode(task)
        try:
            done = subprocess.run(  # noqa: S603 - this program itself
                command, input=data, capture_output=True, env=environment, timeout=WAITING * seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise errors.SheetError(late) from None
        if done.returncode == REFUSED:
            raise errors.SheetError(f"{self.path}: {msgspec.msgpack.decode(done.stdout, type=str)}")
        if done.returncode:
            raise errors.SheetError(late)
        return done.stdout
