"""Listening sockets of the service: its own, or those that a service manager holds, and reports to that manager.

Each worker has a socket of its own on the port (SO_REUSEPORT), which the parent opens and keeps open: the kernel
spreads connections over them, and those in the queue of a worker that has died wait for its successor. From a socket
of the service manager, which outlives the program, all workers accept; if there are as many of an address as workers
(ReusePort=yes), each worker gets one. systemd, podman, s6 and others speak sd_listen_fds(3) and sd_notify(3).
"""

import os
import socket
from collections.abc import MutableMapping
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from proxy import config, errors

HTTP, ADMIN = "http", "admin"
FIRST_DESCRIPTOR = 3  # SD_LISTEN_FDS_START: passed sockets follow standard error
BACKLOG = 1024  # connections that wait to be accepted
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


def listen(host: str, port: int, *, shared: bool = False) -> Sockets:
    """Return listening sockets for all addresses of a host, 0 for any free port. Other processes may listen on a
    `shared` port, too. Raises OSError."""
    opened: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, (name, _, *rest) in found:
            address = (name, port, *rest)
            opened.append(socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=shared))
            port = opened[-1].getsockname()[1]
    except OSError:
        for each in opened:
            each.close()
        raise
    return tuple(opened)


def check(host: str, port: int) -> None:
    """Raise OSError if the port cannot be bound. 0 stands for any free port."""
    for each in listen(host, port):
        each.close()


def open_for_one(settings: config.Config) -> WorkerSockets:
    """Open the ports of a configuration for a service in one process. Raises ConfigError."""
    (public,) = open_port(settings.listen.host, settings.listen.port)
    if not settings.admin:
        return WorkerSockets(public)
    return WorkerSockets(public, *open_port(settings.admin.host, settings.admin.port, for_operators=True))


def open_port(host: str, port: int, workers: int = 1, *, for_operators: bool = False) -> list[Sockets]:
    """Return sockets for each worker, of all addresses of a host; port 0 is a free one. Raises ConfigError."""
    opened: list[Sockets] = []
    try:
        check(host, port)  # another program may share its port, so that binding below would succeed
        for _ in range(workers):
            opened.append(listen(host, port, shared=workers > 1))
            port = address(opened[0][0])[1]
    except OSError as error:
        service, options = ("the operators' port ", OPERATORS_OPTIONS) if for_operators else ("", "--host or --port")
        reason = str(error.strerror).partition(" (while")[0]
        raise errors.ConfigError(
            f"{service}cannot listen on {host}:{port}: {reason}; choose another with {options}"
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
    """Return the sockets passed to this process, which its children do not inherit, and remove their environment
    variables. Raises ConfigError."""
    variables = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID")
    pid, count, named, _ = (environ.pop(name, "") for name in variables)
    # Left over from a parent process: the descriptors of these numbers are something else here.
    if pid != str(os.getpid()) or not count.isdecimal():
        return PassedSockets()
    names = named.split(":")
    if count == "1" and names != [ADMIN]:
        names = [HTTP]  # a socket unit without FileDescriptorName= passes on its own name
    if len(names) != int(count) or not {HTTP, ADMIN}.issuperset(names):
        raise errors.ConfigError(
            f"socket activation: {count} sockets are named {named[:60]!r}; name each {HTTP} or {ADMIN}, by "
            "FileDescriptorName= in its socket unit (deploy/v3bridge.socket has an example)"
        )
    opened = [(name, _opened(FIRST_DESCRIPTOR + number, name)) for number, name in enumerate(names)]
    return PassedSockets(*(tuple(each for name, each in opened if name == wanted) for wanted in (HTTP, ADMIN)))


def _opened(descriptor: int, name: str) -> socket.socket:
    """Return the socket of a file descriptor. Raises ConfigError for one that accepts no TCP connections."""
    with suppress(OSError):  # it is not open, or no socket
        os.set_inheritable(descriptor, False)
        opened = socket.socket(fileno=descriptor)
        is_listening = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if is_listening and opened.family in (socket.AF_INET, socket.AF_INET6):
            return opened
        opened.close()
    raise errors.ConfigError(
        f"socket activation: file descriptor {descriptor} ({name}) is no listening TCP socket: its unit needs "
        "ListenStream= with an address and a port, and Accept=no (deploy/v3bridge.socket has an example)"
    )


def address(opened: socket.socket) -> tuple[str, int]:
    """Return host and port of a socket."""
    host, port = opened.getsockname()[:2]
    return host, port


def shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def apply(settings: config.Config, passed: PassedSockets) -> config.Config:
    """Return the settings with the addresses of passed sockets. Raises ConfigError if `admin` is off and has one."""
    if passed.http:
        host, port = address(passed.http[0])
        settings = replace(settings, listen=replace(settings.listen, host=host, port=port))
    if passed.admin:
        if settings.admin is False:
            raise errors.ConfigError(f"admin: false, but the service manager passes a socket named {ADMIN}")
        host, port = address(passed.admin[0])
        settings = replace(settings, admin=replace(settings.admin, host=host, port=port))
    return settings


def notify(manager: str, *assignments: str) -> bool:
    """Report to the service manager at the address NOTIFY_SOCKET (sd_notify(3)), "" for none; never wait for it. Return
    False if it does not take the report: it is gone, or hangs."""
    if not manager.startswith(("/", "@")):  # others, such as vsock of virtual machines, are not supported
        return True
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
            connection.setblocking(False)
            connection.connect(manager.replace("@", "\0", 1) if manager.startswith("@") else manager)
            connection.send("\n".join(assignments).encode())
    except OSError:
        return False
    return True
