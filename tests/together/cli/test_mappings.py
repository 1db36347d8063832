"""Tests of `v3bridge mappings`: the coverage table, whole and by object, and mapping errors."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.running_commands import Run

from proxy.mapping import coverage, loader

FOLDER = Path(__file__).parents[3] / "mappings"
ROWS = coverage.of_mappings(loader.load(FOLDER))


@pytest.fixture(scope="module")
def table(run_command: Run) -> Any:
    done = run_command("mappings")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _cells(table: Any) -> Any:
    """First column → second, of the rows that begin a field."""
    rows = (line.split("│") for line in table.splitlines() if line.startswith("│"))
    return {cells[1].split()[0]: cells[2].strip() for cells in rows if cells[1].strip()}


def test_every_field_has_a_row_with_its_kind(table: Any) -> None:
    assert _cells(table) == {f"{row.object}.{row.field}": row.kind for row in ROWS}


def test_last_line_counts_all_fields(table: Any) -> None:
    assert table.splitlines()[-1].startswith(f"{len(ROWS)} fields: ")


def test_field_without_source_shows_reason_and_client_value(
    run_command: Run,
) -> None:
    done = run_command("mappings", "--object", "Seller")
    line = next(line for line in done.stdout.splitlines() if "Seller.has_ecommerce" in line)
    assert "the service does not say whether a seller sells online; a client sees null" in line


def test_single_object_can_be_shown(run_command: Run) -> None:
    done = run_command("mappings", "--object", "Seller")
    assert set(_cells(done.stdout)) == {f"Seller.{row.field}" for row in ROWS if row.object == "Seller"}


def test_unknown_object_is_named_with_the_known_ones(
    run_command: Run,
) -> None:
    done = run_command("mappings", "--object", "Sellar")
    words = " ".join(done.stderr.replace("│", " ").split())
    assert done.returncode == 2
    assert "no mapping describes 'Sellar'" in words
    assert "Seller, Source" in words


def test_mapping_mistake_names_file_and_line(run_command: Run, tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "mappings")
    company = folder / "company.yaml"
    company.write_text(company.read_text().replace("    id: id\n", "    id: {form: id}\n"))
    number = company.read_text().splitlines().index("    id: {form: id}") + 1
    done = run_command("mappings", "--folder", str(folder))
    assert done.returncode == 2
    assert done.stderr.startswith(f"v3bridge: company.yaml:{number}:")
    assert "form" in done.stderr


def test_missing_folder_is_named(run_command: Run) -> None:
    done = run_command("mappings", "--folder", "no-such-folder")
    assert done.returncode == 2
    assert "no-such-folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_source_of_all_mapping_functions_is_printed(
    run_command: Run,
) -> None:
    done = run_command("mappings", "--source")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("def map_part(part, context):\n    return Part(\n        part.v3uid,  # uid\n")
    for name in ("map_part_offer", "map_seller", "map_brand", "map_category"):
        assert f"\ndef {name}(" in done.stdout
    compile(done.stdout, "printed", "exec")


def test_source_of_one_object_is_printed(run_command: Run) -> None:
    done = run_command("mappings", "--source", "Datasheet")
    assert done.stdout.splitlines()[0] == "def map_datasheet(datasheet):"
    assert done.stdout.count("def ") == 1
