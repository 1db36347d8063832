"""Logging to one stream, for people or as JSON. Configured once by the command line; all modules log with structlog.

Removes whatever could hold an API key from every line: tracebacks, messages of unknown exceptions, and all but the
fixed part of other libraries' messages, because aiohttp and asyncio repeat request lines in theirs. Hides API keys in
warnings and errors of a request, which may repeat what its client sent, and adds the request's id.
"""

import logging
import os
import queue
import re
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor

from proxy import errors, redaction

# Of the request that is being handled, also in the tasks that it starts: the id in its lines and in upstream requests
# made for it, and what hides API keys in its lines.
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


# Fields of the line of a request, in the order of their values.
_NAMES = ("address", "application", "cache", "error", "key", "method", "ms", "parts", "request", "route", "status")


class Output:
    """Stream for whole lines. A line that cannot be written delays and fails nothing: it is dropped, and counted in
    `dropped`. Written at once, or, within `queued`, by a thread."""

    dropped: ClassVar[int] = 0

    def __init__(self, stream: TextIO) -> None:
        stream.flush()  # what was printed before stays before it
        self.at_terminal, self._stream = stream.isatty(), stream
        self._descriptor: int | None = None
        with suppress(OSError):  # a stream in memory has none
            self._descriptor = stream.fileno()
        # Garbage collection may run a destructor that logs anywhere, also in `put`, which may be called within itself.
        self._lines: queue.SimpleQueue[str | None] | None = None

    def write(self, line: str) -> None:
        if self._lines is None:
            self._write(line)
        elif self._lines.qsize() < LINES_MAX:
            self._lines.put(line)
        else:
            Output.dropped += 1

    def flush(self) -> None:
        """Do nothing: all is written, or a thread writes."""

    @contextmanager
    def queued(self) -> Iterator["Output"]:
        """Let a thread write while the block runs, so that a slow stream never stops the event loop; at the end
        everything is written."""
        if self._descriptor is None:
            yield self
            return
        self._lines = queue.SimpleQueue()
        arguments = self._lines, self._descriptor
        writer = threading.Thread(target=self._write_queued, args=arguments, name="log", daemon=True)
        writer.start()
        try:
            yield self
        finally:
            self._lines.put(None)
            writer.join(CLOSE_SECONDS)

    def _write(self, text: str) -> None:
        try:
            if self._descriptor is None:
                self._stream.write(text)
            elif select.select((), (self._descriptor,), (), CLOSE_SECONDS)[1]:
                os.write(self._descriptor, _encoded(text))
        except OSError:
            Output.dropped += 1

    def _write_queued(self, queued: "queue.SimpleQueue[str | None]", descriptor: int) -> None:
        """Write lines, up to the end (None), every BATCH_SECONDS. The thread may be blocked when the process ends, so
        it has no lock that is needed then."""
        is_open = True
        while is_open:
            gathered = [queued.get()]
            time.sleep(BATCH_SECONDS)
            gathered += [queued.get() for _ in range(queued.qsize())]
            lines = [line for line in gathered if line is not None]
            is_open = len(lines) == len(gathered)
            data = _encoded("".join(lines))
            try:
                while data:
                    data = data[_write_some(descriptor, data) :]
            except OSError:
                Output.dropped += len(lines)


def _write_some(descriptor: int, data: bytes) -> int:
    """Write a part, and wait where a descriptor that does not block is full."""
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        select.select((), (descriptor,), ())
        return 0


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


_request_log: tuple[int, Output, Processor | None] | None = None  # least level, stream, renderer of all but plain lines


def configure(level: str, format_: str, stream: TextIO | Output) -> None:
    """Log events from `level` up to `stream`, as `json` or `console` lines. Standard logging follows."""
    global _request_log  # noqa: PLW0603 - like structlog's configuration, which it goes with
    output = stream if isinstance(stream, Output) else Output(stream)
    renderer: Processor = structlog.dev.ConsoleRenderer(colors=output.at_terminal, pad_event_to=0)
    if format_ == "json":
        renderer = structlog.processors.JSONRenderer(separators=(",", ":"), ensure_ascii=False)
    _request_log = LEVELS[level], output, renderer if format_ == "json" or output.at_terminal else None
    structlog.configure(
        processors=[add_context, reduce_exception, hide_keys, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, output)),
        # loggers are made at import, before this is called
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, Bridge)]:
        root.removeHandler(handler)
    root.addHandler(Bridge())
    # Never debug: asyncio and aiohttp log much there, and nothing that an operator needs.
    root.setLevel(max(LEVELS[level], logging.INFO))


def log_uncaught_exceptions() -> None:
    """Log exceptions that end a thread or come out of a destructor, instead of a traceback on standard error."""
    threading.excepthook = lambda uncaught: structlog.get_logger().error("thread failed", exc_info=uncaught.exc_value)
    sys.unraisablehook = lambda uncaught: structlog.get_logger().warning(
        "unraisable exception ignored", exc_info=uncaught.exc_value
    )


def request_completed(level: str, time: float, values: tuple[str | float | None, ...]) -> None:
    """Log the end of a request, with the values of _NAMES, of which none has text of its client; None is left out."""
    if _request_log is None or LEVELS[level] < _request_log[0]:
        return
    _, output, renderer = _request_log
    named = [(name, value) for name, value in zip(_NAMES, values, strict=True) if value is not None]
    if renderer is None:  # what structlog's ConsoleRenderer returns, in an eighth of the time
        fields = " ".join([f"{name}={value}" for name, value in named])
        output.write(f"{_iso(time)} [{level:<9}] request completed {fields}\n")
    else:
        event: EventDict = {**dict(named), "event": "request completed", "level": level, "timestamp": _iso(time)}
        output.write(f"{renderer(None, level, event)!s}\n")


def add_context(logger: Any, method: str, event: EventDict) -> EventDict:  # noqa: ARG001  (structlog's shape)
    """Add level and time, and `request`, the id of the current request, if there is one."""
    event.update(level=method, timestamp=_iso(time.time()))
    if request := REQUEST_ID.get():
        event["request"] = request
    return event


def reduce_exception(logger: Any, method: str, event: EventDict) -> EventDict:  # noqa: ARG001  (structlog's shape)
    """Replace exc_info by `error` (the type; of this service's own exceptions also the message) and `at`."""
    exc_info = event.pop("exc_info", None)
    event.pop("stack_info", None)
    # The three forms that standard logging allows: True, an exception, and the tuple of sys.exc_info().
    exception = sys.exc_info()[1] if exc_info is True else exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if isinstance(exception, BaseException):
        event["error"] = " from ".join(_name(link) for link in _chain(exception))
        event["at"] = _places(exception.__traceback__)
    return event


def hide_keys(logger: Any, method: str, event: EventDict) -> EventDict:  # noqa: ARG001  (structlog's shape)
    """Hide API keys in warnings and errors of the current request. Other events have no text of clients."""
    hiding = REDACTION.get()
    if hiding is not None and LEVELS.get(method, 0) >= LEVELS["warning"]:
        for name, value in event.items():
            if isinstance(value, str):
                event[name] = hiding.text(value)
            elif isinstance(value, list):
                event[name] = [hiding.text(str(each)) for each in value]
    return event


class Bridge(logging.Handler):
    """Passes records of standard logging to structlog, reduced to logger, level and the fixed part of the message."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            record.levelno,
            fixed_words(record.msg),
            logger=record.name,
            exc_info=record.exc_info,
        )


def fixed_words(message: object) -> str:
    """Return the words with which the first line of a message begins, before the first that may be a value: one with a
    digit, a quote, a bracket or an address. `Exception in callback f('x')` ends before `f`."""
    words = _PROSE.match(message.partition("\n")[0]) if isinstance(message, str) else None
    return (words[0].strip() if words else "") or "a message without fixed words"


def _iso(moment: float) -> str:
    seconds = int(moment)
    return f"{_second(seconds)}.{int((moment - seconds) * 1e6):06}Z"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _chain(exception: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its cause, and so on, _FRAMES at most."""
    link: BaseException | None = exception
    for _ in range(_FRAMES):
        if link is None:
            return
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _name(exception: BaseException) -> str:
    kind = type(exception).__name__
    return f"{kind}: {exception}" if isinstance(exception, errors.BridgeError) else kind


def _places(trace: TracebackType | None) -> str:
    """Return file and line of the innermost frames, outermost first: `graphql.py:40 > http_post.py:22`."""
    places = []
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " > ".join(places[-_FRAMES:])
