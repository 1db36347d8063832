"""Files that replace others at once, and backups: the original is whole at any time."""

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from proxy import errors


@contextlib.contextmanager
def replacing(target: Path, mode_of: Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `target` at the end, with the mode bits of `mode_of`.

    After an error or an interruption `target` is as before, and nothing else is left.
    """
    with _one_line(target):
        mode = stat.S_IMODE(mode_of.stat().st_mode)
        # In the same folder: a rename across file systems would be a copy, which can be interrupted.
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".tmp", dir=target.parent)
        try:
            with open(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            os.replace(name, target)
            _sync_folder(target.parent)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise


def back_up(path: Path) -> Path:
    """Copy a file to one beside it that is named with the time, and return that. Never overwrites a file."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    for number in range(100):
        suffix = f"-{number}" if number else ""
        backup = path.with_name(f"{path.stem}.backup-{stamp}{suffix}{path.suffix}")
        with _one_line(backup):
            try:
                file = backup.open("xb")
            except FileExistsError:
                continue
            with file, path.open("rb") as source:
                shutil.copyfileobj(source, file)
                shutil.copystat(path, backup)
                file.flush()
                os.fsync(file.fileno())
            return backup
    raise errors.SheetError(f"{path}: has 100 backups of this second; nothing is written")


def _sync_folder(folder: Path) -> None:
    """Make a rename durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _one_line(path: Path) -> Iterator[None]:
    """Turn errors of the file system (no permission, disk full) into one line."""
    try:
        yield
    except OSError as error:
        raise errors.SheetError(f"{path}: cannot be written: {error.strerror}") from None
