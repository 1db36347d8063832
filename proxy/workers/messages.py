"""Messages between the supervisor and a worker over the worker's standard input and output.

The supervisor sends a StartMessage, with the resolved configuration and its secrets, so that these are in no argument,
environment variable or file; the worker responds with a StartReport. Both pipes stay open. A reload calls methods of
the service, and the worker acknowledges each call; STOP stops the worker, and end of file without STOP means that the
supervisor has died.
"""

import os
import pickle
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from proxy import config
from proxy.workers import inherited

LENGTH_BYTES = 8  # of the length of a message to a worker
REPORT_MAX = 1_048_576  # bytes of a report, beyond which its reader fails
MISTAKE_MAX = 100_000  # characters of a mistake, each of which takes 6 bytes of JSON at most


class WorkerSlot(NamedTuple):
    """Position of a worker: the folder that all workers share, and a number that is unique at any time."""

    folder: Path
    number: int

    @property
    def metrics(self) -> Path:
        """Folder in which all workers count."""
        return self.folder / "metrics"

    def sign_life(self) -> None:
        """Show that the event loop of the worker runs."""
        self._file.touch()

    def last_sign(self) -> float | None:
        """Return when the worker last showed that, None if it never did."""
        try:
            return self._file.stat().st_mtime
        except OSError:
            return None

    @property
    def _file(self) -> Path:
        return self.folder / f"worker-{self.number}"


class StartMessage(NamedTuple):
    """Configuration of the service, the slot of this worker, and sockets of the service manager, which the worker has
    under the same file descriptors. `last_reload` is the result that the others know."""

    settings: config.Config
    slot: WorkerSlot
    sockets: inherited.InheritedSockets = inherited.NONE
    last_reload: config.ReloadResult | None = None


class CallMessage(NamedTuple):
    """Call of a method of the worker's service (single_process.ProcessService)."""

    number: int
    method: Literal["prepare", "commit", "drop", "report"]
    arguments: tuple[Any, ...] = ()


class StopMessage(NamedTuple):
    """Finish the requests under way and end."""


Message = CallMessage | StopMessage


class StartReport(msgspec.Struct, frozen=True, tag="started"):
    """Result of the start, as one line: the worker accepts connections at `url`, and at `admin_url` those of operators
    if it has that port, or `mistake` says why it cannot."""

    url: str = ""
    admin_url: str = ""
    mistake: str = ""


class Acknowledgement(msgspec.Struct, frozen=True, tag="acknowledgement"):
    """Acknowledgement of the message of this number. `mistake` is why a configuration cannot be served."""

    number: int
    mistake: str = ""


Report = StartReport | Acknowledgement


def write(message: StartMessage | Message) -> bytes:
    """Encode for the worker's standard input: the length in 8 bytes, then the pickled message."""
    content = pickle.dumps(message)
    # The length, because the pipe stays open: its end says that the supervisor is gone.
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


STOP = write(StopMessage())


def read_start(pipe: int) -> StartMessage:
    """Read from a file descriptor, no byte beyond the message. Raises EOFError if the supervisor has died.

    Unpickling is safe here: only the supervisor has the other end of the pipe.
    """
    size = int.from_bytes(_exactly(pipe, LENGTH_BYTES), "big")
    message: StartMessage = pickle.loads(_exactly(pipe, size))  # noqa: S301
    return message


class MessageReader:
    """Reads the messages after the first, from bytes as they arrive."""

    def __init__(self) -> None:
        self._received = bytearray()

    def read(self, data: bytes) -> list[Message]:
        self._received += data
        complete: list[Message] = []
        while len(self._received) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self._received[:LENGTH_BYTES], "big")
            if len(self._received) < end:
                break
            message: Any = pickle.loads(self._received[LENGTH_BYTES:end])  # noqa: S301 - of the supervisor
            complete.append(message)
            del self._received[:end]
        return complete


def _exactly(pipe: int, size: int) -> bytes:
    received = b""
    while len(received) < size:
        if not (chunk := os.read(pipe, size - len(received))):
            raise EOFError
        received += chunk
    return received


def write_report(report: Report) -> bytes:
    """Encode for the worker's standard output, as one line of at most REPORT_MAX bytes: a configuration with very many
    mistakes names the first ones."""
    if len(report.mistake) > MISTAKE_MAX:
        report = msgspec.structs.replace(report, mistake=_cut(report.mistake))
    return msgspec.json.encode(report) + b"\n"


def _cut(mistake: str) -> str:
    """Return the first MISTAKE_MAX characters, whole lines where there are several, and that there are more."""
    first, line_break, _ = mistake[:MISTAKE_MAX].rpartition("\n")
    return f"{first if line_break else mistake[:MISTAKE_MAX]}\n… and more, {len(mistake):,} characters in all"


def read_report(line: bytes) -> Report | None:
    """Decode a line; None if the worker ended before it wrote one."""
    return _REPORTS.decode(line) if line.endswith(b"\n") else None


_REPORTS: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)
