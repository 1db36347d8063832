"""Checking and binding TCP ports."""

import socket


def check(host: str, port: int) -> None:
    """Raise OSError if the port cannot be bound. 0 stands for any free port."""
    for family, kind, protocol, _, address in addresses(host):
        with socket.socket(family, kind, protocol) as bound_socket:
            bind(bound_socket, address, port)


def addresses(host: str) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
    """Resolve a host name to what getaddrinfo returns. Raises OSError for an unknown host."""
    return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE))


def bind(new_socket: socket.socket, address: tuple[object, ...], port: int) -> None:
    """Bind as a server does: address reusable, IPv6 only for an IPv6 address. Raises OSError."""
    new_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if new_socket.family == socket.AF_INET6:
        new_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    new_socket.bind((address[0], port, *address[2:]))
