"""Listening addresses: checking that they are free, and reserving them for several workers."""

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from proxy import errors
from proxy.kit import ports


class ServiceUrls(NamedTuple):
    """Base URLs of the running service; `admin` is empty without an admin interface."""

    public: str
    admin: str = ""


class PortOwner(NamedTuple):
    """What listens on a port, and how another is chosen, for error messages."""

    service: str
    options: str


PUBLIC = PortOwner("", "--host or --port")
ADMIN = PortOwner("the admin interface", "admin.port in the configuration, or --admin-port")


def refused(
    host: str, port: int, error: OSError, *, service: str = PUBLIC.service, options: str = PUBLIC.options
) -> errors.ConfigError:
    """Return the error for an address that cannot be bound. `service` names the owner of the port if there are several.

    Uses the system's reason only, because event loops repeat the address in theirs.
    """
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    owner = f"{service} " if service else ""
    return errors.ConfigError(f"{owner}cannot listen on {host}:{port}: {reason}; choose another with {options}")


def check(host: str, port: int, owner: PortOwner = PUBLIC) -> None:
    """Raise ConfigError if the address cannot be bound."""
    try:
        ports.check(host, port)
    except OSError as error:
        raise refused(host, port, error, **owner._asdict()) from error


@contextmanager
def reserved(host: str, port: int, owner: PortOwner = PUBLIC) -> Iterator[int]:
    """Reserve a port for the workers while the block runs; yields it, a free one for 0. Raises ConfigError.

    The sockets are bound with SO_REUSEPORT and never listen, so that the kernel gives them no connections.
    """
    if not hasattr(socket, "SO_REUSEPORT"):
        raise errors.ConfigError("listen.workers: more than 1 needs SO_REUSEPORT, which this system does not have")
    with contextlib.ExitStack() as stack:
        try:
            ports.check(host, port)  # binding with SO_REUSEPORT below would succeed beside another program that uses it
            for family, kind, protocol, _, address in ports.addresses(host):
                held = stack.enter_context(socket.socket(family, kind, protocol))
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                ports.bind(held, address, port)
                port = held.getsockname()[1]
        except OSError as error:
            raise refused(host, port, error, **owner._asdict()) from error
        yield port
