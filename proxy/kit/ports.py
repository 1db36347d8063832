"""Checking and binding TCP ports."""

import socket

BACKLOG = 1024  # connections that wait to be accepted; in the queue of a worker that has died, for its successor


def check(host: str, port: int) -> None:
    """Raise OSError if the port cannot be bound. 0 stands for any free port."""
    for family, kind, protocol, _, address in addresses(host):
        with socket.socket(family, kind, protocol) as bound_socket:
            bind(bound_socket, address, port)


def listen(host: str, port: int, *, shared: bool = False) -> list[socket.socket]:
    """Return listening sockets for all addresses of a host, 0 for any free port. Other processes may listen on a
    `shared` port, too. Raises OSError."""
    opened: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in addresses(host):
            opened.append(socket.socket(family, kind, protocol))
            if shared:
                opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            bind(opened[-1], address, port)
            opened[-1].listen(BACKLOG)
            port = opened[-1].getsockname()[1]
    except OSError:
        for each in opened:
            each.close()
        raise
    return opened


def addresses(host: str) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
    """Resolve a host name to what getaddrinfo returns. Raises OSError for an unknown host."""
    return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE))


def bind(new_socket: socket.socket, address: tuple[object, ...], port: int) -> None:
    """Bind as a server does: address reusable, IPv6 only for an IPv6 address. Raises OSError."""
    new_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if new_socket.family == socket.AF_INET6:
        new_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    new_socket.bind((address[0], port, *address[2:]))
