"""Opening, replacing and backing up files: the original is whole at any time."""

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from proxy import errors

_State = tuple[int, int, int] | None  # what differs after a change: inode, size, time; None without a file

_guarded: ContextVar[Mapping[Path, _State]] = ContextVar("guarded", default=MappingProxyType({}))


class FileChanged(errors.SheetError):
    """A file that was to be replaced is no longer as it was."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: was changed meanwhile")
        self.path = path


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading. Raises SheetError for anything else, such as a pipe, which would never end."""
    try:
        stream = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")  # noqa: SIM115  (the caller closes it)
    except OSError as error:
        raise errors.SheetError(f"{path}: cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise errors.SheetError(f"{path}: contains no spreadsheet")
    return stream


def digest(path: Path) -> str | None:
    """Return the digest of a file; None if there is none."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "blake2b").hexdigest()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a file against other runs. Raises SheetError while another one holds it."""
    while True:
        with open_regular(path) as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise errors.SheetError(f"{path}: another run is filling it: wait until that has ended") from None
            except OSError:
                pass  # a file system without locks
            # The lock is that of a file, not of its name: the run that held it may have replaced the file.
            if path.exists() and os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                yield
                return


@contextlib.contextmanager
def guarded(digests: Mapping[Path, str | None]) -> Iterator[None]:
    """Let no file be replaced that differs from its digest, or is changed from now on. Raises FileChanged."""
    states: dict[Path, _State] = {}
    for path, expected in digests.items():
        states[Path(os.path.realpath(path))] = _state(path)
        if digest(path) != expected:
            raise FileChanged(path)
    token = _guarded.set(states)
    try:
        yield
    finally:
        _guarded.reset(token)


@contextlib.contextmanager
def replacing(target: Path, mode_of: Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of `target` at the end, with the mode bits of `mode_of`. Raises FileChanged if
    somebody else writes to `target` meanwhile.

    After an error or an interruption `target` is as before, and nothing else is left.
    """
    target = Path(os.path.realpath(target))  # a link stays, and what it refers to is replaced
    with _one_line(target):
        before = _guarded.get().get(target, _state(target))
        mode = stat.S_IMODE(mode_of.stat().st_mode) if mode_of.exists() else 0o600
        descriptor, name = _unnamed(target) or _named(target)
        try:
            with open(descriptor, "w+b") as file:
                yield file
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
                if not os.path.exists(name):
                    # linkat follows the link of /proc to the file without a name.
                    os.link(f"/proc/self/fd/{file.fileno()}", name, src_dir_fd=descriptor, follow_symlinks=True)
            _replace(name, target, before)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        _sync_folder(target.parent)


def _replace(name: str, target: Path, before: _State) -> None:
    if _state(target) != before:
        raise FileChanged(target)
    os.replace(name, target)


def _state(path: Path) -> _State:
    if not path.exists():
        return None
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


def _unnamed(target: Path) -> tuple[int, str] | None:
    """Open a file that has no name until it is linked to the returned one: it vanishes even if the process is killed.

    Only some file systems of Linux have them.
    """
    flag = getattr(os, "O_TMPFILE", 0)
    if not flag or not os.path.exists("/proc/self/fd"):
        return None
    try:
        descriptor = os.open(target.parent, flag | os.O_RDWR, 0o600)
    except OSError:
        return None
    return descriptor, str(_beside(target))


def _named(target: Path) -> tuple[int, str]:
    name = _beside(target)
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), str(name)


def _beside(target: Path) -> Path:
    """Return an unused name in the folder of the target: a rename across file systems would be a copy."""
    return target.with_name(f".v3bridge-{secrets.token_hex(8)}.tmp")


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
            try:
                with file, path.open("rb") as source:
                    shutil.copyfileobj(source, file)
                    file.flush()
                    os.fsync(file.fileno())
                shutil.copystat(path, backup)
            except BaseException:
                backup.unlink()  # half a backup would be taken for one
                raise
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
