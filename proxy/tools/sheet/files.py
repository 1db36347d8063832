"""Files of a run: read once, and replaced as a whole only if they are as they were."""

import contextlib
import hashlib
import itertools
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from proxy import errors

SIZE_MAX = 1 << 26  # bytes of a list


class State(msgspec.Struct):
    """Copies by path: their digests, and how many lines each lacks. Times of logins by the client id's digest."""

    copies: dict[str, tuple[str, int]] = {}
    logins: dict[str, float] = {}


@contextlib.contextmanager
def state() -> Iterator[State]:
    """Yield what runs remember, and save it if the block changes it. A file that cannot be read is as good as none;
    where it cannot be written, the next copy gets another name, and logins begin anew."""
    home = os.environ.get("XDG_STATE_HOME", "")
    # The XDG Base Directory Specification has a relative path ignored.
    folder = (Path(home) if home.startswith("/") else Path.home() / ".local" / "state") / "v3bridge"
    known = State()
    with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        known = msgspec.json.decode((folder / "sheet.json").read_bytes(), type=State)
    before = msgspec.json.encode(known)
    yield known
    after = msgspec.json.encode(known)
    if after != before:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = folder / f"sheet.json.{secrets.token_hex(4)}"
            new.write_bytes(after)
            new.replace(folder / "sheet.json")


def read(path: Path) -> bytes:
    """Return the content of a file. Raises SheetError, also for a pipe, which would never end."""
    if path.is_dir():
        raise errors.SheetError(f"{path}: is a folder: name a parts list in it")
    with _one_line(path, "read"), open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise errors.SheetError(f"{path}: contains no spreadsheet")
        data = stream.read(SIZE_MAX + 1)
    if len(data) > SIZE_MAX:
        raise errors.SheetError(f"{path}: is larger than a parts list can be ({SIZE_MAX >> 20} MiB)")
    return data


def digest(file: Path | bytes) -> str:
    """Return the digest of a file or of its content; empty if there is no file."""
    try:
        return hashlib.blake2b(file if isinstance(file, bytes) else file.read_bytes()).hexdigest()
    except OSError:
        return ""


def write(
    file: Path, save: Callable[[Path], object], kind: str, suffix: str, *, lacking: int, in_place: str | None = None
) -> tuple[Path, Path | None]:
    """Let `save` write a file beside another, and move it to a free name such as `BOM.filled.xlsx`; or to the other's
    place, if that has the digest `in_place` still: what somebody saved meanwhile stays. Return its path, and that of
    a backup of the other, or of a copy that lacks fewer lines than this one. After an error nothing is left of it."""
    new, backup = file.with_name(f".v3bridge-{secrets.token_hex(8)}.tmp"), None
    try:
        with _one_line(file, "filled"):
            new.touch(0o600, exist_ok=False)
            save(new)
            with new.open("rb") as stream:
                os.fsync(stream.fileno())
            if file.exists():
                shutil.copymode(file, new)
            with state() as known:
                known.copies = {path: copy for path, copy in known.copies.items() if os.path.exists(path)}
                target = file if digest(file) == in_place else _free_copy(known, file, kind, suffix)
                _, lacked = known.copies.get(str(target.resolve()), ("", lacking))
                if target == file or lacked < lacking:
                    made = f"{time.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}"
                    backup = target.with_name(f"{target.stem}.backup-{made}{target.suffix}")
                    with _one_line(backup, "written"):
                        shutil.copy2(target, backup)
                known.copies[str(target.resolve())] = digest(new), lacking
                new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return target, backup


def _free_copy(known: State, file: Path, kind: str, suffix: str) -> Path:
    """Return the first path of a file beside another, such as `BOM.filled.xlsx` and `BOM.filled-2.xlsx`, that is
    missing, or as a run has left it: no other work is overwritten."""
    stem = re.sub(r"\.filled(-\d+)?$", "", file.stem)
    for number in itertools.count(1):
        path = file.with_name(f"{stem}.{kind}{f'-{number}' if number > 1 else ''}{suffix}")
        copy = known.copies.get(str(path.resolve()))
        is_own = copy is not None and copy[0] == digest(path) and path != file and not path.is_symlink()
        if is_own or not os.path.lexists(path):
            break
    return path


@contextlib.contextmanager
def _one_line(path: Path, what: str) -> Iterator[None]:
    """Turn errors of the file system (no permission, disk full) into one line."""
    try:
        yield
    except OSError as error:
        raise errors.SheetError(f"{path}: cannot be {what}: {error.strerror or error}") from None
