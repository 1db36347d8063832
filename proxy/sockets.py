"""Listening sockets of the service: its own, or those that a service manager holds, and reports to that manager.

Each worker has a socket of its own on the port (SO_REUSEPORT), which the parent opens and keeps open: the kernel
spreads connections over them, and those in the queue of a worker that has died wait for its successor. From a socket
of the service manager, which outlives the program, all workers accept. systemd, podman, s6 and others speak
sd_listen_fds(3) and sd_notify(3).
"""

import os
import socket
from collections.abc import MutableMapping
from contextlib import ExitStack, suppress
from typing import NamedTuple

from proxy import errors

FIRST_DESCRIPTOR = 3  # SD_LISTEN_FDS_START: passed sockets follow standard error
BACKLOG = 1024  # connections that wait to be accepted
OPERATORS_OPTIONS = "admin.port in the configuration, or --admin-port"

Sockets = tuple[socket.socket, ...]


class WorkerSockets(NamedTuple):
    """Listening sockets of one worker, for clients and for operators."""

    public: Sockets
    operators: Sockets = ()


def listen(host: str, port: int, *, shared: bool = False) -> Sockets:
    """Return listening sockets for all addresses of a host; port 0 is a free one. Raises OSError."""
    opened: list[socket.socket] = []
    with ExitStack() as stack:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, (name, _, *rest) in found:
            server = socket.create_server((name, port, *rest), family=family, backlog=BACKLOG, reuse_port=shared)
            opened.append(stack.enter_context(server))
            port = server.getsockname()[1]
        stack.pop_all()
    return tuple(opened)


def check(host: str, port: int) -> None:
    """Raise OSError if the port cannot be bound. 0 stands for any free port."""
    for each in listen(host, port):
        each.close()


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


def take(environ: MutableMapping[str, str]) -> Sockets:
    """Return the sockets for the public port that a service manager has passed to this process, and remove their
    environment variables. Raises ConfigError."""
    pid, count, *_ = (environ.pop(f"LISTEN_{name}", "") for name in ("PID", "FDS", "FDNAMES", "PIDFDID"))
    # Left over from a parent process: the descriptors of these numbers are something else here.
    if pid != str(os.getpid()) or not count.isdecimal():
        return ()
    passed: list[socket.socket] = []
    for descriptor in range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + int(count)):
        with suppress(OSError):  # it is not open, or no socket
            os.set_inheritable(descriptor, False)
            opened = socket.socket(fileno=descriptor)
            if opened.family != socket.AF_UNIX and opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                passed.append(opened)
                continue
            opened.close()
        raise errors.ConfigError(
            f"socket activation: file descriptor {descriptor} is no listening TCP socket: its unit needs ListenStream= "
            "with an address and a port, and Accept=no (deploy/v3bridge.socket has an example)"
        )
    return tuple(passed)


def address(opened: socket.socket) -> tuple[str, int]:
    host, port = opened.getsockname()[:2]
    return host, port


def shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
