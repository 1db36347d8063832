"""Files of a run: read once, and replaced as a whole only if they are as they were."""

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from proxy import errors
from proxy.config import store_place

FILLED = ".filled"  # before the suffix of a filled copy
SIZE_MAX = 1 << 26  # bytes of a list


class State(msgspec.Struct):
    """Digests of files as they were written, by path, and times of logins, by digest of the client id."""

    written: dict[str, str] = {}
    logins: dict[str, float] = {}


def _state_file() -> Path:
    return store_place.state_folder() / "sheet.json"


def state() -> State:
    """Return what runs remember, in the state folder. A file that cannot be read is as good as none."""
    with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(_state_file().read_bytes(), type=State)
    return State()


@contextlib.contextmanager
def changed_state() -> Iterator[State]:
    """Yield the state, and save it. Without a saved one copies get other names, and logins begin anew."""
    found, file = state(), _state_file()
    yield found
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
        new.write_bytes(msgspec.json.encode(found))
        new.replace(file)


def read(path: Path) -> bytes:
    """Return the content of a file. Raises SheetError for anything that is no list, such as a pipe, which would never
    end."""
    if path.is_dir():
        raise errors.SheetError(f"{path}: is a folder: name a parts list in it")
    with _one_line(path, "read"), open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise errors.SheetError(f"{path}: contains no spreadsheet")
        data = stream.read(SIZE_MAX + 1)
    if len(data) > SIZE_MAX:
        raise errors.SheetError(f"{path}: is larger than a parts list can be ({SIZE_MAX >> 20} MiB)")
    return data


def digest_of(data: bytes) -> str:
    """Return the digest of a file's content."""
    return hashlib.blake2b(data).hexdigest()


def digest(path: Path) -> str | None:
    """Return the digest of a file; None if there is none."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "blake2b").hexdigest()
    except OSError:
        return None


def check_folder(path: Path) -> None:
    """Raise SheetError before anything is spent where nothing can be written beside a file."""
    folder = Path(os.path.realpath(path)).parent
    if not os.access(folder, os.W_OK):
        raise errors.SheetError(f"{path}: nothing can be written beside it: the folder {folder} is not writable")


def copy_path(file: Path) -> Path:
    """Return the path of the filled copy: `BOM.filled.xlsx`; that of a filled file is `BOM.filled-2.xlsx`."""
    stem, mark, number = file.stem.rpartition(FILLED)
    if mark and stem and (not number or (number.startswith("-") and number[1:].isdecimal())):
        return file.with_name(f"{stem}{FILLED}-{int(number[1:] or 1) + 1}{file.suffix}")
    return file.with_name(f"{file.stem}{FILLED}{file.suffix}")


def offers_path(target: Path) -> Path:
    """Return the path of the file of offers of a filled one."""
    return target.with_name(f"{target.stem.removesuffix(FILLED)}.offers.csv")


def numbered(path: Path) -> Path:
    """Return the path with the next number: `BOM.offers-2.csv`."""
    stem, _, number = path.stem.rpartition("-")
    is_numbered = bool(stem) and number.isdecimal()
    return path.with_stem(f"{stem if is_numbered else path.stem}-{int(number) + 1 if is_numbered else 2}")


def free_copy(path: Path, next_path: Callable[[Path], Path] = copy_path) -> Path:
    """Return the first path whose file is missing, or as a run has left it: no other work is overwritten."""
    written = state().written
    while os.path.lexists(path) and (path.is_symlink() or written.get(str(path.resolve())) != digest(path)):
        path = next_path(path)
    return path


def write(file: Path, save: Callable[[Path], object], choose: Callable[[], Path]) -> Path:
    """Let `save` write a file beside another, and give it the name that `choose` returns then: what somebody saved
    meanwhile stays. Return that name. After an error nothing is left of it."""
    new = file.with_name(f".v3bridge-{secrets.token_hex(8)}.tmp")
    try:
        with _one_line(file, "filled"):
            new.touch(0o600, exist_ok=False)
            save(new)
            with new.open("rb") as stream:
                os.fsync(stream.fileno())
            if file.exists():
                shutil.copymode(file, new)
            written = digest(new)
            target = choose()
            new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    with changed_state() as state:
        state.written = {path: known for path, known in state.written.items() if os.path.exists(path)}
        state.written[str(target.resolve())] = written or ""
    return target


def back_up(path: Path) -> Path:
    """Copy a file to one beside it that is named with the time, and return that."""
    backup = path.with_name(f"{path.stem}.backup-{time.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}{path.suffix}")
    with _one_line(backup, "written"):
        shutil.copy2(path, backup)
    return backup


@contextlib.contextmanager
def _one_line(path: Path, what: str) -> Iterator[None]:
    """Turn errors of the file system (no permission, disk full) into one line."""
    try:
        yield
    except OSError as error:
        raise errors.SheetError(f"{path}: cannot be {what}: {error.strerror or error}") from None
