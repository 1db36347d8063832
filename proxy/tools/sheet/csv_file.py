"""CSV and TSV files: read with Python's csv, and written with their encoding, delimiter, line ends and decimal comma.

A text that a spreadsheet program would take for a formula gets an apostrophe.
"""

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TextIO

from proxy import errors
from proxy.tools.sheet.columns import CellValue, FilledColumns
from proxy.tools.sheet.lines import Row
from proxy.traffic import bom_columns

NEW_FILE = b"\xef\xbb\xbf"  # a CSV file that spreadsheet programs read as UTF-8
FORMULA_STARTS = tuple("=+-@\t\r")
_COMMA, _POINT = re.compile(r"-?\d+,\d+"), re.compile(r"-?\d+\.\d+")


class CsvFile:
    """A CSV file. Rows are numbered by their first lines."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self._data = data
        name = bom_columns.encoding(data)
        self.encoding = {"utf-8-sig": "utf-8"}.get(name, name)
        self._mark = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        if name == "utf-16":
            self.encoding = "utf-16-le" if data.startswith(bom_columns.UTF16[0]) else "utf-16-be"
            self._mark = 2
        # Bytes that the encoding does not define are written back as they were.
        self._errors = "surrogatepass" if name == "utf-16" else "surrogateescape"
        if data.startswith((b"+/v8", b"+/v9", b"+/v+", b"+/v/")):
            raise errors.SheetError(f"{path}: is encoded as UTF-7: save it as UTF-8")
        with self._text() as stream:
            sample = stream.read(bom_columns.SAMPLE_CHARACTERS)
        if "\0" in sample:
            what = "it is no text, or UTF-16 without a byte order mark; save it as .xlsx, or as .csv in UTF-8"
            raise errors.SheetError(f"{path}: cannot be filled: {what}")
        self.delimiter = bom_columns.delimiter(sample)
        end = re.search(r"\r\n|\n|\r", sample)
        self.line_end = end[0] if end else "\n"
        cells = re.split(rf"[{re.escape(self.delimiter)}\r\n\"]+", sample)
        commas, points = (sum(bool(form.fullmatch(cell)) for cell in cells) for form in (_COMMA, _POINT))
        self.decimal = "," if self.delimiter != "," and commas > points else "."

    def rows(self, *, exact: bool = False) -> Iterator[Row]:
        """Yield the rows. What cannot be sent, bytes that the encoding does not define, become question marks."""
        with self._text() as stream:
            for number, row in bom_columns.rows(stream, self.delimiter):
                is_sent = exact or all(map(str.isascii, row))
                yield number, row if is_sent else [cell.encode("utf-8", "replace").decode() for cell in row]

    def save_list(self, target: Path, filled: FilledColumns) -> None:
        """Write the file with other cells."""
        with self._open(target) as written:
            writer = csv.writer(written, delimiter=self.delimiter, lineterminator=self.line_end)
            for number, row in self.rows(exact=True):
                cells = filled.cells.get(number, {})
                changed = [*row] + ([""] * (max(cells) + 1 - len(row)) if cells else [])
                for column, value in cells.items():
                    changed[column] = self._as_text(value)
                writer.writerow(changed)

    def save_rows(self, target: Path, rows: Iterable[Sequence[CellValue]]) -> None:
        """Write another file in the manner of this one."""
        with self._open(target) as written:
            writer = csv.writer(written, delimiter=self.delimiter, lineterminator=self.line_end)
            writer.writerows([*map(self._as_text, row)] for row in rows)

    @contextlib.contextmanager
    def _text(self) -> Iterator[TextIO]:
        """Yield the text. What is wrong with it is a SheetError."""
        data = io.BytesIO(self._data[self._mark :])
        try:
            with io.TextIOWrapper(data, self.encoding, errors=self._errors, newline="") as stream:
                yield stream
        except UnicodeDecodeError:
            raise errors.SheetError(f"{self.path}: is damaged: it ends within a character") from None
        except bom_columns.BrokenRow as error:
            raise errors.SheetError(f"{self.path}: row {error.row} {error}") from None

    def _open(self, target: Path) -> TextIO:
        stream = target.open("wb")
        stream.write(self._data[: self._mark])
        return io.TextIOWrapper(stream, self.encoding, errors=self._errors, newline="")

    def _as_text(self, value: CellValue) -> str:
        if not isinstance(value, str):
            return "" if value is None else f"{Decimal(value):f}".replace(".", self.decimal)
        text = value if value.isascii() else value.encode(self.encoding, "replace").decode(self.encoding)
        return f"'{text}" if text.startswith(FORMULA_STARTS) else text
