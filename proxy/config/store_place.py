"""Where the store of a configuration is: the file of an SQLite store, and the folder for state of this user."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from proxy.config.secret import StoreUrl


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for state (XDG Base Directory Specification)."""
    home = environ.get("XDG_STATE_HOME", "")
    # the specification has a relative path ignored
    state = Path(home) if home.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    return state / "v3bridge"


def file_of(url: StoreUrl, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file of an SQLite store, which without a path is in the folder for state; None for another store."""
    scheme, _, path = url.reveal().partition(":")
    if scheme != "sqlite":
        return None
    return Path(path) if path else state_folder(environ) / "state.sqlite"


def location(url: StoreUrl, environ: Mapping[str, str] = os.environ) -> StoreUrl:
    """Return the address of a store that is the same in every folder and environment."""
    file = file_of(url, environ)
    return url if file is None else StoreUrl(f"sqlite:{file.resolve()}")


def missing_folder(file: Path, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder of an SQLite store that the user has to make; None where it exists, or is the default one."""
    if file.is_relative_to(state_folder(environ)):
        return None
    try:
        file.parent.stat()
    except FileNotFoundError:
        return file.parent
    except OSError:  # opening the file says why
        return None
    return None


def make_command(folder: Path) -> str:
    """Return the shell command that makes a folder."""
    return f"mkdir -p {shlex.quote(str(folder))}"
