"""Tests of digests of shipped files: sha256sum can make them, too, and they change with any name or content."""

import subprocess
from pathlib import Path

from proxy import kit


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
    assert kit.digest(files) == kit.digest(reversed(files)) == printed.split()[0]
