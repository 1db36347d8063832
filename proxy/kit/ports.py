"""TCP ports: whether a program can listen on one, found out before work is done that would be in vain."""

import socket


def check(host: str, port: int) -> None:
    """Raise OSError where nobody can listen on this port. 0 is any free one."""
    if port:
        for family, kind, protocol, _, address in addresses(host):
            with socket.socket(family, kind, protocol) as one:
                bind(one, address, port)


def addresses(host: str) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
    """Every family, kind, protocol, name and address that a host name stands for. Raises OSError for an unknown one."""
    return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE))


def bind(one: socket.socket, address: tuple[object, ...], port: int) -> None:
    """Bind as a server does. Raises OSError."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if one.family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    one.bind((address[0], port, *address[2:]))
