"""Tests of what runs remember of the files that they filled."""

from pathlib import Path

import pytest

from proxy import errors
from proxy.tools.sheet.parts import PartQuery, PartResult
from proxy.tools.sheet.records import FillRecords

QUERY = PartQuery("LM358N", "TI")
NOW = 20.0


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A filled file."""
    file = tmp_path / "BOM.filled.csv"
    file.write_text("mpn\n")
    return file


def test_record_knows_ages_and_files_of_the_last_run(target: Path, tmp_path: Path) -> None:
    records = FillRecords(target, tmp_path / "state")
    assert records.fetched(QUERY) is None
    records.note(PartResult(QUERY, None, 0, None, 17.0))
    records.note(PartResult(PartQuery("X"), None, 0, "timeout", 18.0))
    records.save(target, now=NOW)
    again = FillRecords(target, tmp_path / "state")
    assert (again.fetched(QUERY), again.fetched(PartQuery("X"))) == (17.0, None)
    again.check_unchanged()
    assert FillRecords(tmp_path / "other.csv", tmp_path / "state").fetched(QUERY) is None


def test_times_older_than_a_day_are_dropped_and_the_file_is_still_known(target: Path, tmp_path: Path) -> None:
    records = FillRecords(target, tmp_path / "state")
    records.note(PartResult(QUERY, None, 0, None, 17.0))
    records.save(target, now=17.0 + 86_400)
    again = FillRecords(target, tmp_path / "state")
    again.check_unchanged()
    assert again.fetched(QUERY) is None


def test_file_that_was_edited_is_not_overwritten(target: Path, tmp_path: Path) -> None:
    records = FillRecords(target, tmp_path / "state")
    with pytest.raises(errors.SheetError, match="exists, and was changed since"):
        records.check_unchanged()
    records.save(target, now=NOW)
    target.write_text("mpn\nmine\n")
    with pytest.raises(errors.SheetError, match="name another file with --output"):
        FillRecords(target, tmp_path / "state").check_unchanged()
    target.unlink()
    FillRecords(target, tmp_path / "state").check_unchanged()


def test_file_of_offers_has_a_record_of_its_own(target: Path, tmp_path: Path) -> None:
    offers = tmp_path / "BOM.offers.csv"
    offers.write_text("Line\n")
    FillRecords(target, tmp_path / "state").save(target, offers, now=NOW)
    FillRecords(offers, tmp_path / "state").check_unchanged()
    offers.write_text("mine\n")
    with pytest.raises(errors.SheetError, match=r"BOM\.offers\.csv: exists, and was changed since"):
        FillRecords(offers, tmp_path / "state").check_unchanged()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"path": 1}', b"[]"])
def test_damaged_record_is_as_good_as_none(target: Path, tmp_path: Path, content: bytes) -> None:
    FillRecords(target, tmp_path / "state").save(target, now=NOW)
    (file,) = (tmp_path / "state").iterdir()
    file.write_bytes(content)
    assert FillRecords(target, tmp_path / "state").fetched(QUERY) is None


def test_folder_that_cannot_be_written_is_no_error(target: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    FillRecords(target, tmp_path / "state").save(target, now=NOW)
