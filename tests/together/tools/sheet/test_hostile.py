"""`v3bridge sheet fill` on files that no program wrote: one clear line or a bounded run, and the file as it was."""

import hashlib
import subprocess
from pathlib import Path

import pytest
from support.running_commands import Run
from support.workbooks import hostile

Fill = Run

# One of each kind: of the archive, of its XML, of what is in the sheet, and of a table. Unit tests have the others.
REFUSED = (
    "zip bomb.xlsx",
    "sheet cut inside.xlsx",
    "encrypted workbook.xlsx",
    "sheet without a cell.xlsx",
    "no column.csv",
)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def fill(run_command: Fill, tmp_path: Path) -> Fill:
    """Runs the command on a file; the file must be what it was."""

    def run(file: Path, *options: str) -> "subprocess.CompletedProcess[str]":
        before = _digest(file)
        result = run_command("sheet", "fill", str(file), *(options or ("--columns", "price@100,stock")))
        assert _digest(file) == before
        assert "Traceback" not in result.stderr
        return result

    return run


def _refused(result: "subprocess.CompletedProcess[str]", file: Path) -> str:
    """The only line of an error that names the file."""
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert file.name in line
    assert line.isprintable()
    return line


@pytest.mark.parametrize("name", REFUSED)
def test_useless_file_is_refused_in_one_line(fill: Fill, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(hostile.REFUSED[name]())
    _refused(fill(file), file)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("option", ["--output", ""])
def test_folder_that_is_missing_is_refused_before_anything_is_fetched(fill: Fill, tmp_path: Path, option: str) -> None:
    file, missing = tmp_path / "bom.csv", tmp_path / "missing" / "out.csv"
    file.write_text("MPN\nSN74S74N\n")
    if not option:
        (tmp_path / "bom.filled.csv").symlink_to(missing)
    options = [option, str(missing)] if option else []
    line = _refused(fill(file, "--columns", "stock", *options), missing if option else tmp_path / "bom.filled.csv")
    assert "missing or not writable" in line


def test_copy_that_somebody_changed_or_linked_elsewhere_is_not_overwritten(fill: Fill, tmp_path: Path) -> None:
    file, other = tmp_path / "bom.csv", tmp_path / "other.csv"
    file.write_text("MPN\nSN74S74N\n")
    other.write_text("of somebody else")
    (tmp_path / "bom.filled.csv").symlink_to(other)
    assert "exists" in _refused(fill(file), tmp_path / "bom.filled.csv")
    assert other.read_text() == "of somebody else"


def test_control_characters_of_a_name_do_not_reach_the_terminal(fill: Fill, tmp_path: Path) -> None:
    file = tmp_path / "\x1b[2J[red]bom.xlsx"
    file.write_bytes(hostile.REFUSED["wrong checksum.xlsx"]())
    result = fill(file)
    assert result.returncode == 2
    assert result.stderr.rstrip("\n").isprintable()
    assert "\\x1b[2J[red]bom.xlsx" in result.stderr
