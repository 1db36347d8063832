"""An address that several processes listen on, held from the first to the last, and what is said where it is taken."""

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
    """The mistake, with the system's reason alone: the loops put the address into theirs once more. `service`: whose
    port it is, where there are several."""
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    whose = f"{service} " if service else ""
    return errors.ConfigError(f"{whose}cannot listen on {host}:{port}: {reason}; choose another with {options}")


def check(host: str, port: int) -> None:
    """Raise ConfigError where nobody can listen there."""
    try:
        ports.check(host, port)
    except OSError as error:
        raise refused(host, port, error) from error


@contextmanager
def reserved(host: str, port: int) -> Iterator[int]:
    """The port, for workers to share while the block runs; 0 takes a free one. Raises ConfigError.

    The sockets here are bound and never listen, so that no connection comes to them.
    """
    if not hasattr(socket, "SO_REUSEPORT"):
        raise errors.ConfigError("listen.workers: more than 1 needs SO_REUSEPORT, which this system does not have")
    with contextlib.ExitStack() as stack:
        try:
            ports.check(host, port)  # a port shared by another program would not be seen below
            for family, kind, protocol, _, address in ports.addresses(host):
                held = stack.enter_context(socket.socket(family, kind, protocol))
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                ports.bind(held, address, port)
                port = held.getsockname()[1]
        except OSError as error:
            raise refused(host, port, error) from error
        yield port
