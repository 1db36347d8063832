"""CSV and TSV files, filled without changing anything else: encoding, delimiter, line ends and quotes stay.

Cells are kept as they are written. A text that a spreadsheet program would take for a formula gets an apostrophe.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from proxy import errors
from proxy.tools.sheet.columns.lines import TableRow
from proxy.tools.sheet.package import saving
from proxy.tools.sheet.package.cells import CellError, CellValue, ColumnLook
from proxy.traffic import bom_columns

SIZE_MAX = 1 << 26  # bytes; a table is read whole, because its encoding is known only then
FORMULA_STARTS = tuple("=+-@\t\r")
TEXTS_KEPT = 1000  # with their quotes
SAMPLE = 1000  # rows that are examined for quotes and the decimal comma
_COMMA, _POINT = re.compile(r"-?\d+,\d+"), re.compile(r"-?\d+\.\d+")


class CsvTable:
    """A CSV file. Rows are numbered by their first lines, columns from 0."""

    def __init__(self, path: Path, named: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.place = str(path)  # in messages
        self._data = _read(path)
        self._encoding, self._mark = _exact_encoding(self._data)
        # Bytes that the encoding does not define are written back as they were.
        self._errors = "surrogatepass" if self._encoding.startswith("utf-16") else "surrogateescape"
        try:
            self._text = self._data[len(self._mark) :].decode(self._encoding, self._errors)
        except UnicodeDecodeError:
            raise errors.SheetError(f"{path}: is damaged: it ends within a character of {self._encoding}") from None
        if "\0" in self._text:
            raise errors.SheetError(f"{path}: is neither CSV nor a workbook that can be filled (.xlsx, .xlsm)")
        self._delimiter = bom_columns.delimiter(self._text, named or bom_columns.NONE)
        delimiter = re.escape(self._delimiter)
        self._cell = re.compile(rf'((?:"[^"]*(?:""[^"]*)*")?[^{delimiter}\r\n]*)({delimiter}|\r\n|\r|\n|\Z)')
        self._special = re.compile(rf'[{delimiter}"\r\n]')  # what is quoted
        # Most texts of a file of offers, such as names, are those of a row shortly before.
        self._quoted_text = lru_cache(TEXTS_KEPT)(self._quote_text)
        self._study()

    offers_max: int | None = None
    sheet: str | None = None

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows with their numbers."""
        for number, raw, _ in self._records():
            texts = [_unquoted(cell) for cell in raw]
            # What cannot be sent, bytes that the encoding does not define, become question marks.
            yield number, [text if text.isascii() else text.encode("utf-8", "replace").decode() for text in texts]

    def save(
        self,
        target: Path,
        changes: Mapping[int, Mapping[int, CellValue]],
        offers: Iterable[Sequence[CellValue]] | None,
        summary: Iterable[Sequence[CellValue]] | None,
        looks: Mapping[int, ColumnLook],
    ) -> None:
        """Write the table with changed cells, by row and column index, and a second file of offers beside it, if there
        are to be."""
        del summary, looks
        self._write(target, self._changed(changes))
        if offers is None:
            return
        rows = (self._delimiter.join(map(self._quoted, row)) + self._line_end for row in offers)
        self._write(offers_file(target), rows)

    def _study(self) -> None:
        """Find out how the file writes line ends, quotes and decimals."""
        raw_rows = [raw for _, (_, raw, _) in zip(range(SAMPLE), self._records(), strict=False)]
        cells = [cell for raw in raw_rows for cell in raw if cell.strip()]
        header = next((row for raw in raw_rows if (row := [cell for cell in raw if cell.strip()])), [])
        self._line_end = next((end for _, _, end in self._records() if end), "\n")
        self._quotes_text = bool(header) and all(cell.startswith('"') for cell in header)
        self._quotes_all = self._quotes_text and all(cell.startswith('"') for cell in cells)
        values = list(map(_unquoted, cells))
        commas, points = (sum(bool(form.fullmatch(value)) for value in values) for form in (_COMMA, _POINT))
        self._decimal = "," if self._delimiter != "," and commas > points else "."

    def _records(self) -> Iterator[tuple[int, list[str], str]]:
        """Yield number, cells as they are written, and line end of each row."""
        number, raw = 1, list[str]()
        lines = 0
        for match in self._cell.finditer(self._text):
            cell, end = match.groups()
            if not end and not raw and not cell:
                return
            raw.append(cell)
            lines += cell.count("\n") or cell.count("\r")
            if end != self._delimiter:
                yield number, raw, end
                number, raw, lines = number + lines + 1, [], 0
                if not end:
                    return

    def _changed(self, changes: Mapping[int, Mapping[int, CellValue]]) -> Iterator[str]:
        for number, raw, end in self._records():
            cells = changes.get(number, {})
            raw.extend([""] * (max(cells, default=-1) + 1 - len(raw)))
            for column, value in cells.items():
                raw[column] = self._quoted(value)
            yield self._delimiter.join(raw) + end

    def _quoted(self, value: CellValue) -> str:
        if isinstance(value, str):
            return self._quoted_text(value)
        text = self._as_text(value)
        return f'"{text}"' if text and self._quotes_all else text

    def _quote_text(self, value: str) -> str:
        text = value
        if not text.isascii():
            # A character that the encoding lacks becomes a question mark: another encoding would spoil the other cells.
            text = text.encode(self._encoding, "replace").decode(self._encoding)
        if text.startswith(FORMULA_STARTS):
            text = f"'{text}"
        if self._special.search(text) or (text and self._quotes_text):
            return '"' + text.replace('"', '""') + '"'
        return text

    def _as_text(self, value: Decimal | bool | CellError | None) -> str:
        """Format a value that has no character to be quoted."""
        match value:
            case None:
                return ""
            case bool():
                return str(value).upper()
            case Decimal():
                text = str(value)  # three times as fast, and nearly always the same
                return (f"{value:f}" if "E" in text else text).replace(".", self._decimal)
        return value.code

    def _write(self, target: Path, texts: Iterable[str]) -> None:
        with saving.replacing(target, self.path) as stream:
            stream.write(self._mark)
            for text in texts:
                stream.write(text.encode(self._encoding, self._errors))


def offers_file(target: Path) -> Path:
    """Return the path of the file of offers beside a filled one."""
    return target.with_name(f"{target.stem.removesuffix('.filled')}.offers{target.suffix}")


def _read(path: Path) -> bytes:
    with saving.open_regular(path) as stream:
        data = stream.read(SIZE_MAX + 1)
    if len(data) > SIZE_MAX:
        raise errors.SheetError(f"{path}: is larger than a parts list can be ({SIZE_MAX >> 20} MiB)")
    return data


def _exact_encoding(data: bytes) -> tuple[str, bytes]:
    """Return the encoding without its byte order mark, and the mark."""
    name = bom_columns.encoding(data)
    if name == "utf-16":
        return ("utf-16-le" if data.startswith(bom_columns.UTF16[0]) else "utf-16-be"), data[:2]
    if name == "utf-8-sig":
        return "utf-8", data[:3] if data.startswith(b"\xef\xbb\xbf") else b""
    return name, b""


def _unquoted(raw: str) -> str:
    if not raw.startswith('"'):
        return raw
    end = len(raw) if raw.endswith('"') else raw.rfind('"') + 1
    return raw[1 : end - 1].replace('""', '"') + raw[end:] if end > 1 else raw
