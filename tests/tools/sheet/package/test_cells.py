"""References of cells and areas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tools.sheet.package import cells


@given(st.integers(1, cells.ROWS_MAX), st.integers(1, cells.COLUMNS_MAX))
def test_a_reference_reads_back(row: int, column: int) -> None:
    assert cells.parse_reference(cells.reference(row, column)) == (row, column)
    assert cells.column_number(cells.column_name(column)) == column


def test_the_last_cell_is_xfd1048576() -> None:
    assert cells.reference(cells.ROWS_MAX, cells.COLUMNS_MAX) == "XFD1048576"
    assert cells.parse_reference("$xfd$1048576") == (cells.ROWS_MAX, cells.COLUMNS_MAX)


@pytest.mark.parametrize("text", ["", "A", "1", "A0", "A01", "1A", "XFE1", "A1048577", "A1:B2", "Ä1", "A١", "A1\n"])
def test_what_is_no_cell_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cell"):
        cells.parse_reference(text)


def test_an_area_covers_its_corners_and_is_written_as_a_range() -> None:
    area = cells.parse_area("C7:A2")
    assert area == cells.Area(2, 1, 7, 3)
    assert [area.covers(place) for place in ((2, 1), (7, 3), (1, 1), (2, 4))] == [True, True, False, False]
    assert (str(area), str(cells.parse_area("B2"))) == ("A2:C7", "B2")
