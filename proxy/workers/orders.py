"""What passes between the supervisor and a worker: an order down the worker's standard input, a report up its output.

The order holds the configuration as it was resolved, secrets included; it is in no argument, environment or file. The
input then stays open without a word: its end tells the worker that the supervisor wants it to stop, or is no more.
"""

import pickle
from typing import BinaryIO, NamedTuple

import msgspec

from proxy import config
from proxy.telemetry import merging


class Order(NamedTuple):
    """What to serve, and where among the others. `supervisor` is its process id."""

    settings: config.Config
    place: merging.Place
    supervisor: int


class Report(msgspec.Struct, frozen=True):
    """One line: the worker accepts connections at `url`, or cannot start for a mistake in the set-up."""

    url: str = ""
    mistake: str = ""


def write_order(order: Order) -> bytes:
    """For a worker's standard input."""
    return pickle.dumps(order)


def read_order(stream: BinaryIO) -> Order:
    """From standard input, where nobody but the supervisor writes. Raises EOFError where it is gone already."""
    try:
        order: Order = pickle.load(stream)  # noqa: S301
    except pickle.UnpicklingError as error:
        raise EOFError("the order is cut") from error
    return order


def write_report(report: Report) -> bytes:
    """For a worker's standard output."""
    return msgspec.json.encode(report) + b"\n"


def read_report(line: bytes) -> Report | None:
    """None where the worker ended without one."""
    return msgspec.json.decode(line, type=Report) if line.endswith(b"\n") else None
