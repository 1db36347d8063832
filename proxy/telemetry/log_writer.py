"""Buffered writing of log lines by a thread, so that a slow stream never stops the event loop.

`write` appends to a queue. The thread writes what is queued, up to 20 times a second: a system call for each line took
a tenth of a cache hit. A full disk or a pipe that nobody reads fails no request: when the queue is full, further lines
are counted and dropped, which is logged as soon as the stream accepts lines again. Lines of all sources keep their
order, because all pass the same queue.
"""

import errno
import os
import queue
import select
import stat
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, cast

import structlog

LINES_MAX = 20_000  # queued lines: about 5 MB, two seconds of 10 000 requests a second
WRITE_SECONDS = 0.05  # between two writes: what is lost at most when the process is killed
CLOSE_SECONDS = 2.0  # that the end of the process waits for the stream


@contextmanager
def buffered(stream: TextIO) -> Iterator[TextIO]:
    """Yield a buffered stream in front of `stream`; at the end everything is written.

    A stream without a file descriptor, such as one in memory, is yielded itself.
    """
    try:
        descriptor = stream.fileno()
    except OSError:
        yield stream
        return
    stream.flush()  # what was printed before the first log line stays before it
    writer = LogWriter(descriptor, stream.isatty())
    writer.start()
    try:
        yield cast(TextIO, writer)
    finally:
        writer.close()


class LogWriter:
    """Queue of log lines, and the thread that writes them to a file descriptor."""

    def __init__(self, descriptor: int, at_terminal: bool = False) -> None:
        # Not the stream itself: a thread that is blocked in it at exit would hold the lock that the interpreter needs.
        self._descriptor = descriptor
        self._is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._at_terminal = at_terminal
        self._lines: deque[str] = deque()
        # Garbage collection may run a destructor that logs anywhere, even in this queue's own methods: `put` may be
        # called again from within, while an Event's lock would wait for itself.
        self._wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._is_woken = False
        self._closing = threading.Event()
        self._lock = threading.RLock()  # of the number of dropped lines
        self._dropped = 0
        self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def isatty(self) -> bool:
        """Return whether lines go to a terminal, which shows colors."""
        return self._at_terminal

    def write(self, text: str) -> None:
        """Queue text: one or more whole lines."""
        if len(self._lines) >= LINES_MAX:
            self._drop(1)
            return
        self._lines.append(text)
        if not self._is_woken:
            self._is_woken = True
            self._wakeups.put(None)
            if self._closing.is_set() and not self._thread.is_alive():  # the last lines of a process that ends
                self._write_lines()

    def flush(self) -> None:
        """Do nothing: the thread writes."""

    def close(self) -> None:
        """Write all queued lines, in CLOSE_SECONDS at most. Lines after that are written at once."""
        self._closing.set()
        self._wakeups.put(None)
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._write_lines()  # of other threads, and of the number of dropped lines

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wakeups.get()
            self._closing.wait(WRITE_SECONDS)  # lines of this time are written together
            self._write_lines()

    def _write_lines(self) -> None:
        # Reset first: a line that is queued after the queue was emptied wakes the thread again.
        self._is_woken = False
        pieces = self._pieces([self._lines.popleft() for _ in range(len(self._lines))])
        try:
            while pieces:
                rest = pieces[0][self._write_some(pieces[0]) :]
                pieces[:1] = [rest] if rest else []
        except OSError:
            self._drop(sum(piece.count(b"\n") for piece in pieces))
        else:
            self._report_dropped()

    def _pieces(self, lines: list[str]) -> list[bytes]:
        """Return the bytes of each write. Workers share a pipe, which keeps writes of PIPE_BUF bytes whole only."""
        encoded = [line.encode("utf-8", "backslashreplace") for line in lines]
        if self._is_file:
            return [b"".join(encoded)]
        pieces = [b""]
        for line in encoded:
            if len(pieces[-1]) + len(line) > select.PIPE_BUF:
                pieces.append(b"")
            pieces[-1] += line
        return pieces

    def _write_some(self, data: bytes) -> int:
        """Write a part, and wait where a descriptor that does not block is full."""
        try:
            return os.write(self._descriptor, data)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
            select.select((), (self._descriptor,), ())
            return 0

    def _drop(self, lines: int) -> None:
        with self._lock:
            self._dropped += lines

    def _report_dropped(self) -> None:
        if self._dropped:
            with self._lock:
                lines, self._dropped = self._dropped, 0
            structlog.get_logger().warning("log lines dropped", lines=lines)
