"""Listening sockets of the service: its own, or those that a service manager holds (socket activation).

Each worker has a socket of its own on the port (SO_REUSEPORT), which the parent opens and keeps open: the kernel
spreads connections over them, and those in the queue of a worker that has died wait for its successor. From a socket
of the service manager, which outlives the program, all workers accept; if there are as many of an address as workers
(ReusePort=yes), each worker gets one.
"""

import socket
from collections.abc import Collection, MutableMapping
from contextlib import suppress
from typing import NamedTuple

import msgspec

from proxy import config, errors
from proxy.kit import ports, service_manager

HTTP, ADMIN = "http", "admin"
UNIT = "deploy/v3bridge.socket has an example"
OPERATORS_OPTIONS = "admin.port in the configuration, or --admin-port"

Sockets = tuple[socket.socket, ...]


class PassedSockets(NamedTuple):
    """Sockets of the service manager for the public port and for the operators' port; empty where the program opens its
    own."""

    http: Sockets = ()
    admin: Sockets = ()


class WorkerSockets(NamedTuple):
    """Listening sockets of one worker, for clients and for operators."""

    public: Sockets
    operators: Sockets = ()


def open_for_one(settings: config.Config) -> WorkerSockets:
    """Open the ports of a configuration for a service in one process. Raises ConfigError."""
    listen, admin = settings.listen, settings.admin
    (public,) = open_port(listen.host, listen.port)
    (operators,) = open_port(admin.host, admin.port, for_operators=True) if admin else [()]
    return WorkerSockets(public, operators)


def open_port(host: str, port: int, workers: int = 1, *, for_operators: bool = False) -> list[Sockets]:
    """Return sockets for each worker, of all addresses of a host; port 0 is a free one. Raises ConfigError."""
    opened: list[Sockets] = []
    try:
        ports.check(host, port)  # another program may share its port, so that binding below would succeed
        for _ in range(workers):
            opened.append(tuple(ports.listen(host, port, shared=workers > 1)))
            port = opened[0][0].getsockname()[1]
    except OSError as error:
        service, options = ("the operators' port ", OPERATORS_OPTIONS) if for_operators else ("", "--host or --port")
        raise errors.ConfigError(
            f"{service}cannot listen on {host}:{port}: {error.strerror}; choose another with {options}"
        ) from error
    return opened


def give_out(passed: Sockets, workers: int) -> list[Sockets]:
    """Return the sockets of the service manager for each worker."""
    by_address: dict[object, list[socket.socket]] = {}
    for each in passed:
        by_address.setdefault(each.getsockname(), []).append(each)
    given: list[Sockets] = [()] * workers
    for sockets in by_address.values():
        for number in range(workers):
            given[number] += (sockets[number],) if len(sockets) == workers else tuple(sockets)
    return given


def take(environ: MutableMapping[str, str]) -> PassedSockets:
    """Return the sockets passed to this process, and remove their environment variables. Raises ConfigError."""
    try:
        passed = service_manager.take_sockets(environ)
    except ValueError as error:
        raise errors.ConfigError(f"socket activation: {error}") from error
    if len(passed) == 1 and passed[0].name != ADMIN:
        # A socket unit without FileDescriptorName= passes on its own name.
        passed = [passed[0]._replace(name=HTTP)]
    for each in passed:
        if each.name not in (HTTP, ADMIN):
            raise errors.ConfigError(
                f"socket activation: socket {each.descriptor} is named {each.name[:60]!r}; v3bridge knows {HTTP} and "
                f"{ADMIN}: set FileDescriptorName= in its socket unit ({UNIT})"
            )
    opened = [(each.name, _opened(each)) for each in passed]
    return PassedSockets(*(tuple(each for name, each in opened if name == wanted) for wanted in (HTTP, ADMIN)))


def _opened(passed: service_manager.PassedSocket) -> socket.socket:
    """Return the socket of a file descriptor. Raises ConfigError for one that accepts no TCP connections."""
    with suppress(OSError):  # it is no socket
        opened = socket.socket(fileno=passed.descriptor)
        is_listening = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if is_listening and opened.family in (socket.AF_INET, socket.AF_INET6):
            return opened
        opened.close()
    raise errors.ConfigError(
        f"socket activation: file descriptor {passed.descriptor} ({passed.name}) is no listening TCP socket: its unit "
        f"needs ListenStream= with an address and a port, and Accept=no ({UNIT})"
    )


def address(opened: socket.socket) -> tuple[str, int]:
    """Return host and port of a socket."""
    host, port = opened.getsockname()[:2]
    return host, port


def shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def apply(settings: config.Config, passed: PassedSockets, options: Collection[str] = ()) -> config.Config:
    """Return the settings with the addresses of passed sockets. Raises ConfigError if the command line has `options`
    for such an address, or if `admin` is off and has a socket."""
    if passed.http:
        host, port = address(passed.http[0])
        listen = msgspec.structs.replace(settings.listen, host=host, port=port)
        settings = msgspec.structs.replace(settings, listen=listen)
    if passed.admin:
        if settings.admin is False:
            raise errors.ConfigError(f"admin: false, but the service manager passes a socket named {ADMIN}")
        host, port = address(passed.admin[0])
        admin = msgspec.structs.replace(settings.admin, host=host, port=port)
        settings = msgspec.structs.replace(settings, admin=admin)
    for sockets, names in ((passed.http, {"host", "port"}), (passed.admin, {"admin-port"})):
        for name in names.intersection(options) if sockets else ():
            raise errors.ConfigError(
                f"--{name}: the service manager has opened the socket; leave the option out, or change ListenStream="
            )
    return settings
