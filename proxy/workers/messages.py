"""Messages between the supervisor and a worker over the worker's standard input and output.

The supervisor sends a StartMessage, with the resolved configuration and its secrets, so that these are in no argument,
environment variable or file; the worker answers with a StartReport. The input stays open: STOP on it stops the worker,
and end of file without STOP means that the supervisor has died.
"""

import os
import pickle
from typing import NamedTuple

import msgspec

from proxy import config
from proxy.telemetry import merging
from proxy.workers import inherited

STOP = b"stop\n"


class StartMessage(NamedTuple):
    """Configuration of the service, the slot of this worker, and sockets of the service manager, which the worker has
    under the same file descriptors."""

    settings: config.Config
    slot: merging.WorkerSlot
    sockets: inherited.InheritedSockets = inherited.NONE


class StartReport(msgspec.Struct, frozen=True):
    """Result of the start, as one line: the worker accepts connections at `url`, and at `admin_url` those
    of the admin interface if there is one, or `mistake` says why it cannot."""

    url: str = ""
    admin_url: str = ""
    mistake: str = ""


def write_start(message: StartMessage) -> bytes:
    """Encode for the worker's standard input: the length in 8 bytes, then the pickled message."""
    content = pickle.dumps(message)
    # The length, because the pipe stays open: its end says that the supervisor is gone.
    return len(content).to_bytes(8, "big") + content


def read_start(pipe: int) -> StartMessage:
    """Read from a file descriptor, no byte beyond the message. Raises EOFError if the supervisor has died.

    Unpickling is safe here: only the supervisor has the other end of the pipe.
    """
    size = int.from_bytes(_exactly(pipe, 8), "big")
    message: StartMessage = pickle.loads(_exactly(pipe, size))  # noqa: S301
    return message


def _exactly(pipe: int, size: int) -> bytes:
    received = b""
    while len(received) < size:
        if not (chunk := os.read(pipe, size - len(received))):
            raise EOFError
        received += chunk
    return received


def write_report(report: StartReport) -> bytes:
    """Encode for the worker's standard output."""
    return msgspec.json.encode(report) + b"\n"


def read_report(line: bytes) -> StartReport | None:
    """Decode a line; None if the worker ended before it wrote one."""
    return msgspec.json.decode(line, type=StartReport) if line.endswith(b"\n") else None
