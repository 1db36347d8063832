"""Listening address: checking that it is free, and reserving it for several workers."""

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from proxy import errors
from proxy.kit import ports


def refused(
    host: str, port: int, error: OSError, *, service: str = "", options: str = "--host or --port"
) -> errors.ConfigError:
    """Return the error for an address that cannot be bound. `service` names the owner of the port if there are several.

    Uses the system's reason only, because event loops repeat the address in theirs.
    """
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    owner = f"{service} " if service else ""
    return errors.ConfigError(f"{owner}cannot listen on {host}:{port}: {reason}; choose another with {options}")


def check(host: str, port: int) -> None:
    """Raise ConfigError if the address cannot be bound."""
    try:
        ports.check(host, port)
    except OSError as error:
        raise refused(host, port, error) from error


@contextmanager
def reserved(host: str, port: int) -> Iterator[int]:
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
            raise refused(host, port, error) from error
        yield port
