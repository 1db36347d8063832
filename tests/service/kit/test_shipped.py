"""Tests of digests of shipped files: sha256sum can make them, too, and they change with any name or content."""

import subprocess
from pathlib import Path

from proxy.kit import shipped


def _write(folder: Path, **contents: str) -> list[Path]:
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_text(content)
    return list(folder.iterdir())


def test_digest_is_that_of_what_sha256sum_prints(tmp_path: Path) -> None:
    files = _write(tmp_path / "files", a="1", b="2", c="3")
    printed = subprocess.run(
        "sha256sum * | sha256sum", shell=True, cwd=tmp_path / "files", capture_output=True, text=True, check=True
    ).stdout
    assert shipped.digest(files) == shipped.digest(reversed(files)) == printed.split()[0]


def test_digest_changes_with_a_name_and_with_a_content(tmp_path: Path) -> None:
    first = shipped.digest(_write(tmp_path / "first", a="1", b="2"))
    same = shipped.digest(_write(tmp_path / "same", b="2", a="1"))
    different = [
        shipped.digest(_write(tmp_path / f"other{number}", **contents))
        for number, contents in enumerate(
            ({"a": "2", "b": "1"}, {"a": "1", "c": "2"}, {"a": "1"}, {"a": "12", "b": ""})
        )
    ]
    assert first == same
    assert first not in different


def test_mapping_files_are_those_of_the_folder_and_of_its_folders() -> None:
    names = {file.relative_to(shipped.path("mappings")).as_posix() for file in shipped.mapping_files()}
    assert {"part.yaml", "sheet/part.yaml", shipped.SCHEMA} <= names
