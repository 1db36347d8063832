"""Tests of line files: plain, compressed or truncated."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from proxy.kit import zstd
from proxy.traffic.recording import line_files

LINES = [b'{"n": %d}' % n for n in range(2000)]
TEXT = b"".join(line + b"\n" for line in LINES)


def frames() -> Any:
    compress = zstd.compress
    return b"".join(compress(line + b"\n") for line in LINES)


PACKED = {
    "plain": TEXT,
    "zstd": zstd.compress(TEXT),
    "frames": frames(),
    "gzip": gzip.compress(TEXT),
}


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
def test_lines_are_complete(tmp_path: Path, packed: Any) -> None:
    (tmp_path / "lines").write_bytes(packed)
    lines = line_files.WholeLines(tmp_path / "lines")
    assert list(lines) == LINES
    assert not lines.cut


@pytest.mark.parametrize("kind", ["plain", "frames", "gzip"])
def test_truncated_file_gives_its_complete_lines(tmp_path: Path, kind: str) -> None:
    (tmp_path / "lines").write_bytes(PACKED[kind][: -len(PACKED[kind]) // 3 - 4])
    lines = line_files.WholeLines(tmp_path / "lines")
    found = list(lines)
    assert lines.cut
    assert found == LINES[: len(found)]
    assert len(found) > 1000


def test_complete_frames_end_at_the_append_position(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    whole = frames()
    for cut in (0, 1, 7, len(whole) // 2):
        file.write_bytes(whole[: len(whole) - cut])
        end = line_files.whole_frames(file)
        file.write_bytes(whole[:end] + zstd.compress(b"more\n"))
        *_, last = line_files.WholeLines(file)
        assert last == b"more"
    assert line_files.whole_frames(file) == len(file.read_bytes())


def test_file_is_readable_by_the_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.touch(0o644)
    for _ in range(2):
        with line_files.open_locked(file) as opened:
            opened.write(b"more ")
    assert file.read_bytes() == b"more more "
    assert file.stat().st_mode & 0o777 == 0o600


def test_file_has_one_writer_at_a_time(tmp_path: Path) -> None:
    with line_files.open_locked(tmp_path / "mine"), pytest.raises(OSError, match="another run is writing to it"):
        line_files.open_locked(tmp_path / "mine")
    line_files.open_locked(tmp_path / "mine").close()
