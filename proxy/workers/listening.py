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
    """Base URLs of the running service; `admin` is empty without an operators' port."""

    public: str
    admin: str = ""


class PortOwner(NamedTuple):
    """What listens on a port, and how another is chosen, for error messages."""

    service: str
    options: str


PUBLIC = PortOwner("", "--host or --port")
ADMIN = PortOwner("the operators' port", "admin.port in the configuration, or --admin-port")


def refused(host: str, port: int, error: OSError, owner: PortOwner = PUBLIC) -> errors.ConfigError:
    """Return the error for an address that cannot be bound, with the system's reason: event loops repeat the address in
    theirs."""
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    service = f"{owner.service} " if owner.service else ""
    return errors.ConfigError(f"{service}cannot listen on {host}:{port}: {reason}; choose another with {owner.options}")


def check(host: str, port: int, owner: PortOwner = PUBLIC) -> None:
    """Raise ConfigError if the address cannot be bound."""
    try:
        ports.check(host, port)
    except OSError as error:
        raise refused(host, port, error, owner) from error


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
            raise refused(host, port, error, owner) from error
        yield port
