"""Where the store of a configuration is: the setting `store`, the file of an SQLite store, and the folder for state of
this user."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from proxy import errors
from proxy.config.secret import StoreUrl

_REDIS = re.compile(r"(rediss?|unix)://.")


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for state of commands (XDG Base Directory Specification)."""
    home = environ.get("XDG_STATE_HOME", "")
    # the specification has a relative path ignored
    state = Path(home) if home.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    return state / "v3bridge"


def parse(text: str, config_file: Path, environ: Mapping[str, str]) -> StoreUrl:
    """Parse the setting `store`. A relative path is relative to the configuration file; without a path, the file is in
    systemd's state directory, else beside the configuration file, and has its name. Raises ValueError."""
    if text == "memory:" or _REDIS.match(text):
        return StoreUrl(text)
    scheme, separator, path = text.partition(":")
    if scheme != "sqlite" or (separator and not path):
        raise ValueError("is none of memory:, sqlite, sqlite:PATH, redis://…, rediss://… and unix://…")
    if path:
        file = config_file.parent / Path(path).expanduser()
    else:
        folder = environ.get("STATE_DIRECTORY", "").partition(":")[0]
        file = Path(folder or config_file.parent, config_file.name).with_suffix(".sqlite")
    return StoreUrl(f"sqlite:{file.absolute()}")


def file_of(url: StoreUrl) -> Path | None:
    """Return the file of an SQLite store; None for another store."""
    scheme, _, path = url.reveal().partition(":")
    return Path(path) if scheme == "sqlite" else None


def usable_file(url: StoreUrl) -> Path | None:
    """Return the file of an SQLite store, whose folder exists; None for another store. Raises ConfigError."""
    file = file_of(url)
    if file is None:
        return None
    try:
        file.parent.stat()
    except FileNotFoundError:
        # A mistyped path, or a disk that is not mounted: usage would begin from zero.
        raise errors.ConfigError(
            f"store: the folder of {file} does not exist, and a new store would know no usage; mount its disk, or make "
            f"the folder: mkdir -p {shlex.quote(str(file.parent))}"
        ) from None
    except OSError:  # opening the file says why
        pass
    return file
