"""Listening sockets that a service manager holds (socket activation): checked, and used instead of own ones.

Such a socket stays open while the program is replaced: connections wait in its queue, and none is refused.
Two programs on one port by SO_REUSEPORT would lose the connections in the queue of the one that ends.
"""

import socket
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from proxy import config, errors
from proxy.kit import ports, service_manager

HTTP, ADMIN = NAMES = "http", "admin"
UNIT = "deploy/v3bridge.socket has an example"


class InheritedSockets(NamedTuple):
    """File descriptors of the public port and of the operators' port; empty where the program opens its own."""

    http: tuple[int, ...] = ()
    admin: tuple[int, ...] = ()

    def addresses(self) -> list[tuple[str, str]]:
        """Return the name of each socket, and where it listens."""
        return [(name, _shown(*address(each))) for name, those in zip(NAMES, self, strict=True) for each in those]

    def opened_http(self) -> list[socket.socket]:
        return [socket.socket(fileno=each) for each in self.http]

    def opened_admin(self) -> list[socket.socket]:
        return [socket.socket(fileno=each) for each in self.admin]


NONE = InheritedSockets()


def take(environ: MutableMapping[str, str]) -> InheritedSockets:
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
        _check(each)
    by_name = {name: tuple(each.descriptor for each in passed if each.name == name) for name in (HTTP, ADMIN)}
    return InheritedSockets(by_name[HTTP], by_name[ADMIN])


def _check(passed: service_manager.PassedSocket) -> None:
    """Raise ConfigError for a socket that accepts no TCP connections."""
    with _borrowed(passed.descriptor) as received:
        where = f"socket activation: socket {passed.descriptor} ({passed.name})"
        if received.family not in (socket.AF_INET, socket.AF_INET6) or received.type != socket.SOCK_STREAM:
            raise errors.ConfigError(f"{where} is no TCP socket; use ListenStream= with an address and a port")
        if not received.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise errors.ConfigError(f"{where} does not listen; its socket unit needs Accept=no")


def address(descriptor: int) -> tuple[str, int]:
    """Return host and port of a socket."""
    with _borrowed(descriptor) as received:
        host, port = received.getsockname()[:2]
    return host, port


def apply(
    settings: config.Config,
    inherited: InheritedSockets,
    *,
    host: str | None = None,
    port: int | None = None,
    admin_port: int | None = None,
) -> config.Config:
    """Return the settings with the addresses of inherited sockets. Host and ports are those of the command line.

    Raises ConfigError if they contradict the socket, or if `admin` is off and has a socket.
    """
    if inherited.http:
        bound_host, bound_port = address(inherited.http[0])
        if port not in (None, bound_port) or (host is not None and not _includes(host, bound_host)):
            raise _contradiction("--host or --port", bound_host, bound_port)
        listen = msgspec.structs.replace(settings.listen, host=bound_host, port=bound_port)
        settings = msgspec.structs.replace(settings, listen=listen)
    if inherited.admin:
        if settings.admin is False:
            raise errors.ConfigError(f"admin: false, but the service manager passes a socket named {ADMIN}")
        bound_host, bound_port = address(inherited.admin[0])
        if admin_port not in (None, bound_port):
            raise _contradiction("--admin-port", bound_host, bound_port)
        admin = msgspec.structs.replace(settings.admin, host=bound_host, port=bound_port)
        settings = msgspec.structs.replace(settings, admin=admin)
    return settings


def _contradiction(option: str, host: str, port: int) -> errors.ConfigError:
    return errors.ConfigError(
        f"{option} contradicts the socket of the service manager, {_shown(host, port)}: leave it out, or change "
        "ListenStream= of the socket unit"
    )


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _includes(host: str, bound_host: str) -> bool:
    """Return whether a host name stands for an address."""
    try:
        return any(entry[0] == bound_host for *_, entry in ports.addresses(host))
    except OSError:
        return False


@contextmanager
def _borrowed(descriptor: int) -> Iterator[socket.socket]:
    """Give the socket of a file descriptor, which stays open afterwards."""
    try:
        received = socket.socket(fileno=descriptor)
    except OSError as error:
        raise errors.ConfigError(f"socket activation: file descriptor {descriptor} is not a socket") from error
    try:
        yield received
    finally:
        received.detach()
