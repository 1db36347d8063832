"""A source in memory, and tables filled from it."""

import pytest
from support.filled_columns import NOW, PARTS, Fill, filling
from support.part_source import MemoryPartSource


@pytest.fixture
def source() -> MemoryPartSource:
    """A few parts."""
    return MemoryPartSource(PARTS, now=NOW)


@pytest.fixture
def fill_table(source: MemoryPartSource) -> Fill:
    """Fills a table to a target."""
    return filling(source)
