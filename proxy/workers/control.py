"""Control socket: a Unix socket by which commands find the service that runs with a configuration file, to use its
store, or to ask for its state.

Its name is made of the path of the file and the process id, so that the command finds all services that run with the
file, without a setting. Only their own user, and root, can connect. A service that cannot have one serves all the same.
"""

import asyncio
import contextlib
import hashlib
import os
import socket
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import structlog

from proxy import config, errors

SYSTEM_FOLDER = Path("/run/v3bridge")  # RuntimeDirectory of deploy/v3bridge.service
USER_FOLDERS = Path("/run/user")  # where systemd keeps the XDG_RUNTIME_DIR of each user
RESULT_MAX = 1_048_576  # bytes of a result
SERVICE_SECONDS = 5.0  # that a service may take to describe itself
SERVICE = b"service\n"  # the request

log = structlog.get_logger()


class ServiceDescription(msgspec.Struct, frozen=True):
    """Addresses of a running service for v3 clients and for operators, with the token of these, and the store that it
    uses. Without an operators' port `admin` is empty. Only its own user can read this."""

    url: str
    admin: str
    token: str
    store: str


@asynccontextmanager
async def listening(
    file: Path,
    describe: Callable[[], ServiceDescription],
    environ: Mapping[str, str] = os.environ,
) -> AsyncIterator[None]:
    """Describe the service on request while the block runs. `file` is the configuration file."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError):  # the command was interrupted
                request = await reader.readline()
                if request == SERVICE:
                    writer.write(msgspec.json.encode(describe()) + b"\n")
                    await writer.drain()
        finally:
            writer.close()  # else the command would wait for a result that does not come

    path = _folders(environ)[0] / _name(file, str(os.getpid()))
    try:
        _make_private(path.parent)
        path.unlink(missing_ok=True)  # of an earlier process with this id
        server = await asyncio.start_unix_server(serve, path)
    except OSError as error:
        log.warning("control socket unavailable", path=str(path), reason=error.strerror or str(error))
        yield
        return
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


def running(file: Path, environ: Mapping[str, str] = os.environ) -> list[ServiceDescription]:
    """Ask every service that runs with a configuration file to describe itself."""
    found = [path for folder in _searched_folders(environ) for path in sorted(folder.glob(_name(file, "*")))]
    return [each for each in map(_ask, found) if each is not None]


def used_stores(file: Path, environ: Mapping[str, str] = os.environ) -> list[config.StoreUrl]:
    """Return the stores of the services that run with a configuration file."""
    return [config.StoreUrl(service.store) for service in running(file, environ)]


def _searched_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return where services of this user may have their sockets, also those that were started in another environment,
    such as that of a cron job. A folder that another user has made there could pretend a service."""
    *given, temporary = _folders(environ)
    guessed = (USER_FOLDERS / str(os.getuid()) / "v3bridge", temporary)
    return list(dict.fromkeys((*given, *filter(_is_own, guessed), SYSTEM_FOLDER)))


def _is_own(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:  # most are missing
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _ask(path: Path) -> ServiceDescription | None:
    """Ask one service; None if it has ended without removing its socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SERVICE_SECONDS)
        try:
            connection.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        except OSError as error:
            raise errors.ConfigError(f"the service at {path} cannot be asked: {error.strerror}") from error
        try:
            connection.sendall(SERVICE)
            with connection.makefile("rb") as response:
                return msgspec.json.decode(response.readline(RESULT_MAX), type=ServiceDescription)
        except (OSError, msgspec.DecodeError) as error:
            raise errors.ConfigError(f"the service at {path} ended before it described itself; see its log") from error


def _folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the folders where a service of this user may have its socket; a new one is made in the first."""
    folders = []
    # Several are separated by colons (systemd.exec); the first is the unit's own.
    if own := environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]:
        folders.append(Path(own))
    if (session := environ.get("XDG_RUNTIME_DIR", "")) and os.access(session, os.W_OK):
        folders.append(Path(session) / "v3bridge")
    return [*folders, Path(tempfile.gettempdir()) / f"v3bridge-{os.getuid()}"]


def _name(file: Path, process: str) -> str:
    digest = hashlib.blake2b(os.fsencode(os.path.realpath(file)), digest_size=8).hexdigest()
    return f"{digest}.{process}.sock"


def _make_private(folder: Path) -> None:
    """Make a folder that only this user can use. Raises OSError for one that others own or can use."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if (
        not stat.S_ISDIR(status.st_mode)
        or status.st_uid != os.getuid()
        or status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    ):
        raise PermissionError(0, "the folder is not this user's alone")
