"""Queue of log lines and the thread that writes them, so that a slow stream never stops the event loop.

A full disk or a pipe that nobody reads fails no request: beyond LINES_MAX lines further ones are dropped and counted.
"""

import os
import queue
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, TextIO, cast

LINES_MAX = 20_000  # queued lines: about 5 MB
BATCH_SECONDS = 0.02  # in which lines are gathered: to wake the thread for each costs more than the line
CLOSE_SECONDS = 2.0  # that the end of the process waits for the stream


@contextmanager
def queued(stream: TextIO) -> Iterator[TextIO]:
    """Yield a stream whose lines a thread writes to `stream`; at the end everything is written.

    A stream without a file descriptor, such as one in memory, is yielded itself.
    """
    try:
        descriptor = stream.fileno()
    except OSError:
        yield stream
        return
    stream.flush()  # what was printed before the first log line stays before it
    log = LogQueue(stream.isatty())
    writer = threading.Thread(target=_write_lines, args=(log.lines, descriptor), name="log", daemon=True)
    writer.start()
    try:
        yield cast(TextIO, log)
    finally:
        log.lines.put(None)
        writer.join(CLOSE_SECONDS)


def unqueued(stream: TextIO) -> TextIO:
    """Return a stream whose lines are written at once, for a process without threads: lines are dropped while the
    stream takes none."""
    try:
        return cast(TextIO, _Unqueued(stream.fileno()))
    except OSError:  # in memory
        return stream


class _Unqueued:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def flush(self) -> None:
        """Do nothing: everything is written."""

    def write(self, text: str) -> None:
        if select.select((), (self._descriptor,), (), CLOSE_SECONDS)[1]:
            os.write(self._descriptor, text.encode("utf-8", "backslashreplace"))


class LogQueue:
    """Stream for whole lines. `dropped` counts those of this process that could not be queued or written."""

    dropped: ClassVar[int] = 0

    def __init__(self, at_terminal: bool) -> None:
        # Garbage collection may run a destructor that logs anywhere, also in `put`, which may be called within itself.
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._at_terminal = at_terminal

    def isatty(self) -> bool:
        """Return whether lines go to a terminal, which shows colors."""
        return self._at_terminal

    def flush(self) -> None:
        """Do nothing: a thread writes."""

    def write(self, text: str) -> None:
        if self.lines.qsize() < LINES_MAX:
            self.lines.put(text)
        else:
            LogQueue.dropped += 1


def _write_lines(queued: "queue.SimpleQueue[str | None]", descriptor: int) -> None:
    """Write lines, up to the end (None): each with those that come within BATCH_SECONDS. The thread may be blocked here
    when the process ends, so it has no lock that is needed then."""
    while (line := queued.get()) is not None:
        time.sleep(BATCH_SECONDS)
        gathered = [line]
        for _ in range(queued.qsize()):
            following = queued.get()
            if following is None:
                queued.put(None)
                break
            gathered.append(following)
        data = "".join(gathered).encode("utf-8", "backslashreplace")
        try:
            while data:
                data = data[_write_some(descriptor, data) :]
        except OSError:
            LogQueue.dropped += len(gathered)


def _write_some(descriptor: int, data: bytes) -> int:
    """Write a part, and wait where a descriptor that does not block is full."""
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        select.select((), (descriptor,), ())
        return 0
