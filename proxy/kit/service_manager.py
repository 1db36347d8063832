"""The two protocols between a service manager such as systemd and the program that it starts.

sd_listen_fds(3): the manager opens the listening sockets and passes them on, so that they outlive the program.
sd_notify(3): the program reports its state. Both are a few environment variables and one datagram, and are spoken by
systemd, podman, s6 and others; the library of systemd needs a C compiler and its headers.
"""

import os
import socket
import time
from collections.abc import MutableMapping
from typing import NamedTuple

FIRST_DESCRIPTOR = 3  # SD_LISTEN_FDS_START: passed sockets follow standard error
UNNAMED = "unknown"  # the name of a socket where the manager gives no names
PASSING = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID")


class PassedSocket(NamedTuple):
    """File descriptor of a socket that the manager opened, and its name (FileDescriptorName=)."""

    name: str
    descriptor: int


def take_sockets(environ: MutableMapping[str, str]) -> list[PassedSocket]:
    """Return the sockets passed to this process. The variables are removed, and child processes inherit neither them
    nor the sockets. Raises ValueError for variables that contradict each other."""
    pid, count, names, _ = (environ.pop(name, None) for name in PASSING)
    # Left over from a parent process: the descriptors of these numbers are something else here.
    if pid != str(os.getpid()) or count is None:
        return []
    if not count.isdecimal():
        raise ValueError(f"LISTEN_FDS={count!r} is not a number of sockets")
    descriptors = range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + int(count))
    listed = [UNNAMED] * len(descriptors) if names is None else names.split(":")
    if len(listed) != len(descriptors):
        raise ValueError(f"LISTEN_FDNAMES has {len(listed)} names for the {count} sockets of LISTEN_FDS")
    for descriptor in descriptors:
        try:
            os.set_inheritable(descriptor, False)
        except OSError as error:
            raise ValueError(f"LISTEN_FDS={count}, but file descriptor {descriptor} is not open") from error
    return [PassedSocket(name, descriptor) for name, descriptor in zip(listed, descriptors, strict=True)]


class ServiceManager:
    """The manager's end of sd_notify(3). Without one every method does nothing."""

    def __init__(self, address: str | None = None) -> None:
        self._address = address

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> "ServiceManager":
        """Return the manager that the environment names. The variable is removed, so that no child process reports
        in this program's name."""
        address = environ.pop("NOTIFY_SOCKET", "")
        # "@" stands for an abstract address; others, such as vsock of virtual machines, are not supported.
        is_unix = address.startswith(("/", "@")) and hasattr(socket, "AF_UNIX")
        return cls(address if is_unix else None)

    def ready(self, status: str) -> bool:
        """Report that the program serves, after its start or a reload."""
        return self._send("READY=1", f"STATUS={status}")

    def reloading(self) -> bool:
        """Report the beginning of a reload, which `ready` ends. The time lets the manager tell it from the one before
        (Type=notify-reload)."""
        return self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> bool:
        return self._send("STOPPING=1", f"STATUS={status}")

    def _send(self, *assignments: str) -> bool:
        """Send a message; return False if there is a manager, and it does not take it: it is gone, or hangs with a full
        queue."""
        if self._address is None:
            return True
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
                # Never waits: a manager that hangs must not stop the program.
                connection.setblocking(False)
                connection.connect(address)
                connection.send("\n".join(assignments).encode())
        except OSError:
            return False
        return True


NONE = ServiceManager()
