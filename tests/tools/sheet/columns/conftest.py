"""A source in memory, and tables filled from it."""

import pytest
from tools.sheet.filled_columns import NOW, PARTS, Fill, filling
from tools.sheet.part_source import MemoryPartSource


@pytest.fixture
def source() -> MemoryPartSource:
    """A few parts."""
    return MemoryPartSource(PARTS, now=NOW)


@pytest.fixture
def fill_table(source: MemoryPartSource) -> Fill:
    """Fills a table to a target."""
    return filling(source)
