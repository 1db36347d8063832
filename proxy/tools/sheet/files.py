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
    """Digests of files as they were written, by path, and times of logins, by digest of the client id."""

    written: dict[str, str] = {}
    logins: dict[str, float] = {}


def _state_folder() -> Path:
    """Return the folder for state of programs (XDG Base Directory Specification)."""
    home = os.environ.get("XDG_STATE_HOME", "")
    # the specification has a relative path ignored
    return (Path(home) if home.startswith("/") else Path.home() / ".local" / "state") / "v3bridge"


def state() -> State:
    """Return what runs remember. A file that cannot be read is as good as none."""
    with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode((_state_folder() / "sheet.json").read_bytes(), type=State)
    return State()


def _save(state: State) -> None:
    """Save it. Where this is not possible, the next copy gets another name, and logins begin anew."""
    folder = _state_folder()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = folder / f"sheet.json.{secrets.token_hex(4)}"
        new.write_bytes(msgspec.json.encode(state))
        new.replace(folder / "sheet.json")


def note_login(client_id: str, now: float, *, anew: bool) -> None:
    """Remember a successful login. It lasts from the first one on, unless it was renewed."""
    known, key = state(), digest(client_id.encode())
    known.logins[key] = now if anew else known.logins.get(key, now)
    _save(known)


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


def check_folder(path: Path) -> None:
    """Raise SheetError before anything is spent where nothing can be written beside a file."""
    folder = Path(os.path.realpath(path)).parent
    if not os.access(folder, os.W_OK):
        raise errors.SheetError(f"{path}: nothing can be written beside it: the folder {folder} is not writable")


def free_copy(file: Path, kind: str, suffix: str) -> Path:
    """Return the first path of a file beside another, such as `BOM.filled.xlsx` and `BOM.filled-2.xlsx`, that is
    missing, or as a run has left it: no other work is overwritten."""
    stem, written = re.sub(r"\.filled(-\d+)?$", "", file.stem), state().written
    for number in itertools.count(1):
        path = file.with_name(f"{stem}.{kind}{f'-{number}' if number > 1 else ''}{suffix}")
        is_own = not path.is_symlink() and path != file and written.get(str(path.resolve())) == digest(path)
        if is_own or not os.path.lexists(path):
            break
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
    known = state()
    known.written = {path: each for path, each in known.written.items() if os.path.exists(path)}
    known.written[str(target.resolve())] = written
    _save(known)
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
