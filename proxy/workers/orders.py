"""What passes between the supervisor and a worker: an order down the worker's standard input, a report up its output.

The order holds the configuration as it was resolved, secrets included; it is in no argument, environment or file. The
input then stays open. The word STOP on it ends the worker; its end without that word says that the supervisor is no
more.
"""

import os
import pickle
from typing import NamedTuple

import msgspec

from proxy import config
from proxy.telemetry import merging

STOP = b"stop\n"


class Order(NamedTuple):
    """What to serve, and where among the others."""

    settings: config.Config
    place: merging.Place


class Report(msgspec.Struct, frozen=True):
    """One line: the worker accepts connections at `url`, or cannot start for a mistake in the set-up."""

    url: str = ""
    mistake: str = ""


def write_order(order: Order) -> bytes:
    """For a worker's standard input: its length in eight bytes, and the order."""
    content = pickle.dumps(order)
    return len(content).to_bytes(8, "big") + content


def read_order(pipe: int) -> Order:
    """From a file descriptor, and not a byte beyond it. Raises EOFError where nobody is there to write it.

    Nobody but the supervisor writes there, so that what is unpickled is its own.
    """
    size = int.from_bytes(_exactly(pipe, 8), "big")
    order: Order = pickle.loads(_exactly(pipe, size))  # noqa: S301
    return order


def _exactly(pipe: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        if not (more := os.read(pipe, size - len(found))):
            raise EOFError
        found += more
    return found


def write_report(report: Report) -> bytes:
    """For a worker's standard output."""
    return msgspec.json.encode(report) + b"\n"


def read_report(line: bytes) -> Report | None:
    """None where the worker ended without one."""
    return msgspec.json.decode(line, type=Report) if line.endswith(b"\n") else None
