"""Files that replace others at once, and backups."""

import os
import re
import resource
import time
from pathlib import Path

import pytest

from proxy import errors
from proxy.tools.sheet.package import saving


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "book.xlsx"
    path.write_bytes(b"old")
    path.chmod(0o640)
    return path


@pytest.fixture(params=["without a name", "with a name"])
def temporary_file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "with a name":  # other systems, and file systems without such files
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return str(request.param)


@pytest.mark.usefixtures("temporary_file")
def test_the_target_is_replaced_with_the_mode_of_the_original(target: Path) -> None:
    copy = target.with_name("copy.xlsx")
    for path in (target, copy):
        with saving.replacing(path, target) as stream:
            stream.write(b"new")
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
    assert set(target.parent.iterdir()) == {target, copy}


@pytest.mark.usefixtures("temporary_file")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, errors.SheetError("x")])
def test_an_interrupted_run_leaves_nothing(target: Path, error: type[BaseException] | BaseException) -> None:
    try:
        with saving.replacing(target, target) as stream:
            stream.write(b"new")
            raise error
    except (KeyboardInterrupt, ValueError, errors.SheetError):
        pass
    assert list(target.parent.iterdir()) == [target]
    assert target.read_bytes() == b"old"


@pytest.mark.usefixtures("temporary_file")
def test_a_full_disk_is_one_line_and_changes_nothing(target: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)  # beyond it a write fails as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(errors.SheetError) as error, saving.replacing(target, target) as stream:
            stream.write(bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert re.fullmatch(rf"{re.escape(str(target))}: cannot be written: [\w ]+", str(error.value))
    assert list(target.parent.iterdir()) == [target]
    assert target.read_bytes() == b"old"


def test_a_folder_that_cannot_be_written_is_one_line(target: Path) -> None:
    with (
        pytest.raises(errors.SheetError, match=r"none/copy\.xlsx: cannot be written: No such file"),
        saving.replacing(target.parent / "none" / "copy.xlsx", target),
    ):
        pass
    folder = target.with_name("taken.xlsx")
    folder.mkdir()
    with pytest.raises(errors.SheetError, match="cannot be written"), saving.replacing(folder, target) as stream:
        stream.write(b"new")
    assert set(target.parent.iterdir()) == {target, folder}


def test_a_link_stays_a_link(target: Path) -> None:
    link = target.with_name("link.xlsx")
    link.symlink_to(target.name)
    with saving.replacing(link, link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_backups_are_named_by_their_time_and_never_overwritten(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda _: "20261122T211500")
    names = [saving.back_up(target).name for _ in range(3)]
    stem = "book.backup-20261122T211500"
    assert names == [f"{stem}.xlsx", f"{stem}-1.xlsx", f"{stem}-2.xlsx"]
    for name in names:
        backup = target.with_name(name)
        assert (backup.read_bytes(), backup.stat().st_mode & 0o777) == (b"old", 0o640)
        assert backup.stat().st_mtime == target.stat().st_mtime
