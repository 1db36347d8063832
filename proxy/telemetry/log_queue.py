"""Queue of log lines and the thread that writes them, so that a slow stream never stops the event loop.

A full disk or a pipe that nobody reads fails no request: beyond LINES_MAX lines further ones are dropped and counted.
"""

import logging
import os
import queue
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from logging import handlers
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
    lines = LogQueue(stream.isatty())
    listener = _Batches(lines.lines, _Writer(descriptor))
    listener.start()
    try:
        yield cast(TextIO, lines)
    finally:
        closing = threading.Thread(target=listener.stop, name="end of the log", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)


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


class LogQueue(handlers.QueueHandler):
    """Stream for whole lines. `dropped` counts those of this process that could not be queued or written."""

    dropped: ClassVar[int] = 0

    def __init__(self, at_terminal: bool) -> None:
        # Garbage collection may run a destructor that logs anywhere, also in `put`, which may be called within itself.
        self.lines: queue.SimpleQueue[logging.LogRecord | None] = queue.SimpleQueue()
        super().__init__(self.lines)
        self._at_terminal = at_terminal

    def isatty(self) -> bool:
        """Return whether lines go to a terminal, which shows colors."""
        return self._at_terminal

    def write(self, text: str) -> None:
        self.handle(logging.makeLogRecord({"msg": text}))

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        if self.lines.qsize() < LINES_MAX:
            self.lines.put(record)
        else:
            LogQueue.dropped += 1


class _Batches(handlers.QueueListener):
    """Gathers lines for a moment, and writes them together."""

    def __init__(self, lines: "queue.SimpleQueue[logging.LogRecord | None]", writer: logging.Handler) -> None:
        super().__init__(lines, writer)
        self._lines = lines

    def handle(self, record: logging.LogRecord) -> None:
        """Write a line, with those that come within BATCH_SECONDS."""
        time.sleep(BATCH_SECONDS)
        gathered = [record.msg]
        for _ in range(self._lines.qsize()):
            following = self._lines.get_nowait()
            if following is None:  # the end
                self.enqueue_sentinel()
                break
            gathered.append(following.msg)
        super().handle(logging.makeLogRecord({"msg": "".join(gathered), "lines": len(gathered)}))


class _Writer(logging.Handler):
    """Writes lines to a file descriptor. The thread may be blocked in it when the process ends: it has neither the lock
    of a stream nor that of a handler, which are needed then."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def createLock(self) -> None:  # noqa: N802 - as in logging.NullHandler
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        data = record.msg.encode("utf-8", "backslashreplace")
        try:
            while data:
                data = data[self._write_some(data) :]
        except OSError:
            LogQueue.dropped += record.__dict__.get("lines", 1)

    def _write_some(self, data: bytes) -> int:
        """Write a part, and wait where a descriptor that does not block is full."""
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            select.select((), (self._descriptor,), ())
            return 0
