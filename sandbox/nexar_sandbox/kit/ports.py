"""Checking TCP ports."""

import socket


def check(host: str, port: int) -> None:
    """Raise OSError if the port cannot be bound as a server does: reusable, IPv6 only for an IPv6 address. 0 stands for
    any free port."""
    for family, kind, protocol, _, address in socket.getaddrinfo(
        host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        with socket.socket(family, kind, protocol) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            server.bind((address[0], port, *address[2:]))
