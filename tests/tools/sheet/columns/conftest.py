"""A source in memory, and tables filled from it."""

from pathlib import Path

import pytest
from tools.sheet.filled_columns import NOW, PARTS, Bom, Fill, filling
from tools.sheet.part_source import MemoryPartSource


@pytest.fixture
def source() -> MemoryPartSource:
    """A few parts."""
    return MemoryPartSource(PARTS, now=NOW)


@pytest.fixture
def fill_table(source: MemoryPartSource) -> Fill:
    """Fills a table to a target."""
    return filling(source)


@pytest.fixture
def bom(tmp_path: Path) -> Bom:
    """Writes a CSV file of parts; gives its path and the path to fill."""
    file = tmp_path / "BOM.csv"

    def write(text: str) -> tuple[Path, Path]:
        file.write_text(text)
        return file, tmp_path / "BOM.filled.csv"

    return write
