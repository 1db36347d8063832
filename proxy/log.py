"""Logging with structlog to one stream, for people or as JSON.

Removes whatever could hold an API key from every line: tracebacks, messages of unknown exceptions, and all but the
fixed part of other libraries' messages. Hides API keys in warnings and errors of a request.
"""

import logging
import os
import queue
import re
import select
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor

from proxy import errors, kit, redaction

# Of the request that is being handled, also in the tasks that it starts: its id, and what hides API keys in its lines.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
REDACTION: ContextVar[redaction.Redaction | None] = ContextVar("redaction", default=None)

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
LINES_MAX = 20_000  # queued lines: about 5 MB
BATCH_SECONDS = 0.02  # in which lines are gathered: to wake the thread for each costs more than the line
CLOSE_SECONDS = 2.0  # that the end of the process waits for the stream, and each line of one without threads

# Words, hyphens and abbreviations: no digit, nothing longer than a word, so no key and no id.
_PROSE = re.compile(r"(?:(?:[A-Za-z][a-z]{0,15}(?:-[a-z]{1,15})?|[A-Z]{2,6}|[-–])[,.:]?(?:\s+|\Z))*")
# Also the links of an exception chain: the innermost say where, the outer ones are the framework.
_FRAMES = 8
_second = lru_cache(maxsize=2)(kit.rfc3339)  # of a time: many lines have the same
# Fields of the line of a request, in the order of their values.
_NAMES = ("address", "application", "cache", "error", "key", "method", "ms", "parts", "request", "route", "status")


class Output:
    """Stream for whole lines. A line that cannot be written delays and fails nothing: it is dropped, and counted in
    `dropped`. Written at once, or, within `queued`, by a thread."""

    dropped: ClassVar[int] = 0

    def __init__(self, stream: TextIO) -> None:
        stream.flush()  # what was printed before stays before it
        self.isatty, self._descriptor = stream.isatty, stream.fileno()
        # Garbage collection may run a destructor that logs anywhere, also in `put`, which may be called within itself.
        self._lines: queue.SimpleQueue[str] | None = None

    def write(self, line: str) -> None:
        if self._lines is None:
            self._write([line], CLOSE_SECONDS)
        elif self._lines.qsize() < LINES_MAX:
            self._lines.put(line)
        else:
            Output.dropped += 1

    def flush(self) -> None:
        """Do nothing: all is written, or a thread writes."""

    @contextmanager
    def queued(self) -> Iterator["Output"]:
        """Let a thread write while the block runs, so that a slow stream never stops the event loop."""
        lines = self._lines = queue.SimpleQueue()

        def write() -> None:
            gathered: list[str] = []
            while "" not in gathered:  # the end
                gathered = [lines.get()]
                time.sleep(BATCH_SECONDS)
                gathered += [lines.get() for _ in range(lines.qsize())]
                self._write(gathered, None)

        # It may be blocked when the process ends, so it has no lock that is needed then.
        writer = threading.Thread(target=write, name="log", daemon=True)
        writer.start()
        try:
            yield self
        finally:
            lines.put("")
            writer.join(CLOSE_SECONDS)

    def _write(self, lines: list[str], seconds: float | None) -> None:
        """Write lines, for each part of which the stream has so many seconds; None: as long as it takes."""
        data = "".join(lines).encode("utf-8", "backslashreplace")
        with suppress(OSError):
            while data and select.select((), (self._descriptor,), (), seconds)[1]:
                data = data[os.write(self._descriptor, data) :]
        if data:
            Output.dropped += len(lines)


# Least level, stream, and renderer of all but plain lines.
_request_log: tuple[int, TextIO | Output, Processor | None] | None = None


def configure(level: str, format_: str, stream: TextIO | Output) -> None:
    """Log events from `level` up to `stream`, as `json` or `console` lines. Standard logging follows."""
    global _request_log  # noqa: PLW0603 - like structlog's configuration, which it goes with
    colors = stream.isatty()
    renderer: Processor = structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=0)
    if format_ == "json":
        renderer = structlog.processors.JSONRenderer(separators=(",", ":"), ensure_ascii=False)
    _request_log = LEVELS[level], stream, renderer if format_ == "json" or colors else None
    structlog.configure(
        processors=[complete, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, stream)),
        # loggers are made at import, before this is called
        cache_logger_on_first_use=False,
    )
    logging.getLogger().addHandler(BRIDGE)
    # Never debug: asyncio and aiohttp log much there, and nothing that an operator needs.
    logging.getLogger().setLevel(max(LEVELS[level], logging.INFO))


def log_uncaught_exceptions() -> None:
    """Log exceptions that end a thread or come out of a destructor, instead of a traceback on standard error."""
    log = structlog.get_logger()
    threading.excepthook = lambda uncaught: log.error("thread failed", exc_info=uncaught.exc_value)
    sys.unraisablehook = lambda uncaught: log.warning("unraisable exception ignored", exc_info=uncaught.exc_value)


def request_completed(level: str, time: float, values: tuple[str | float | None, ...]) -> None:
    """Log the end of a request, with the values of _NAMES, of which none has text of its client; None is left out."""
    if _request_log is None or LEVELS[level] < _request_log[0]:
        return
    _, output, renderer = _request_log
    named = zip(_NAMES, values, strict=True)
    if renderer is None:  # as structlog's ConsoleRenderer writes it
        fields = "".join([f" {name}={value}" for name, value in named if value is not None])
        output.write(f"{_iso(time)} [{level:<9}] request completed{fields}\n")
    else:
        event: EventDict = {name: value for name, value in named if value is not None}
        event.update(event="request completed", level=level, timestamp=_iso(time))
        output.write(f"{renderer(None, level, event)!s}\n")


def complete(logger: Any, method: str, event: EventDict) -> EventDict:  # noqa: ARG001  (structlog's shape)
    """Add level, time and the request's id; replace the exception `exc_info` by `error`, its type and those of its
    causes (of this service's own also the message), and `at`, file and line of the innermost frames, such as
    `graphql.py:40 > http_post.py:22`; hide API keys in warnings and errors: others have no text of clients."""
    exception = link = event.pop("exc_info", None)
    if exception is not None:
        names: list[str] = []
        while link is not None and len(names) < _FRAMES:
            own = f": {link}" if isinstance(link, errors.BridgeError) else ""
            names.append(f"{type(link).__name__}{own}")
            link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        frames = [*traceback.walk_tb(exception.__traceback__)][-_FRAMES:]
        at = " > ".join(f"{Path(frame.f_code.co_filename).name}:{line}" for frame, line in frames)
        event["error"], event["at"] = " from ".join(names), at
    hiding = REDACTION.get()
    if hiding is not None and LEVELS.get(method, 0) >= LEVELS["warning"]:
        for name, value in event.items():
            if isinstance(value, str):
                event[name] = hiding.text(value)
            elif isinstance(value, list):
                event[name] = [hiding.text(str(each)) for each in value]
    request = REQUEST_ID.get()
    return {**event, "level": method, "timestamp": _iso(time.time())} | ({"request": request} if request else {})


class Bridge(logging.Handler):
    """Passes records of standard logging to structlog, reduced to logger, level and the words with which the first line
    of the message begins, before the first that may be a value: one with a digit, a quote, a bracket or an address.
    `Exception in callback f('x')` ends before `f`."""

    def emit(self, record: logging.LogRecord) -> None:
        words = _PROSE.match(record.msg.partition("\n")[0]) if isinstance(record.msg, str) else None
        message = (words[0].strip() if words else "") or "a message without fixed words"
        exception = record.exc_info[1] if record.exc_info else None
        structlog.get_logger().log(record.levelno, message, logger=record.name, exc_info=exception)


BRIDGE = Bridge()


def _iso(moment: float) -> str:
    return f"{_second(int(moment))[:-1]}.{int(moment % 1 * 1e6):06}Z"
