"""Logging to one stream, for people or as JSON. Configured once by the command line; all modules log with structlog.

Removes whatever could hold an API key from every line: tracebacks, messages of unknown exceptions, and all but the
fixed part of other libraries' messages, because aiohttp and asyncio repeat request lines in theirs. Hides API keys in
warnings and errors of a request, which may repeat what its client sent, and adds the request's id.
"""

import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor

from proxy import errors
from proxy.telemetry.request_ids import REDACTION, REQUEST_ID

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}

# Up to the first character that usually begins a value: a bracket, a quote, an address or a query.
_FIXED = re.compile(r"[^\n<\[({'\":/?=]*")
# Words, hyphens and abbreviations: no digit, nothing longer than a word, so no key and no id.
_PROSE = re.compile(r"(?:(?:[A-Za-z][a-z]{0,15}(?:-[a-z]{1,15})?|[A-Z]{2,6}|[-–])[,.]?(?:\s+|\Z))*")
_PLAIN = re.compile(r"[^\s=\"']*")  # a value that needs no quotes
# Also the links of an exception chain: the innermost say where, the outer ones are the framework.
_FRAMES = 8


def configure(level: str, format_: str, stream: TextIO) -> None:
    """Log events from `level` up to `stream`, as `json` or `console` lines. Standard logging follows."""
    global _request_log  # noqa: PLW0603 - like structlog's configuration, which it goes with
    output, renderer = _Unfailing(stream), _renderer(format_, stream.isatty())
    _request_log = _RequestLog(LEVELS[level], renderer, output)
    structlog.configure(
        processors=[
            add_request,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            reduce_exception,
            hide_keys,
            renderer,
        ],
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


def add_request(logger: Any, method: str, event: EventDict) -> EventDict:  # noqa: ARG001  (structlog's shape)
    """Add `request`, the id of the current request, if there is one."""
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
    redaction = REDACTION.get()
    if redaction is not None and LEVELS.get(method, 0) >= LEVELS["warning"]:
        for name, value in event.items():
            if isinstance(value, str):
                event[name] = redaction.text(value)
            elif isinstance(value, list):
                event[name] = [redaction.text(str(each)) for each in value]
    return event


class _Unfailing:
    """Stream that ignores errors of writing, such as a full disk, so that logging fails no request."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except OSError:
            return

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class _RequestLog(NamedTuple):
    level: int
    renderer: Processor
    output: _Unfailing


_request_log: _RequestLog | None = None


def request_completed(level: str, fields: dict[str, Any]) -> None:
    """Log the end of a request, which has no text of its client: as structlog does, in a third of its time."""
    if _request_log is None or LEVELS[level] < _request_log.level:
        return
    time = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    event = {**fields, "event": "request completed", "level": level, "timestamp": time}
    if request := REQUEST_ID.get():
        event["request"] = request
    _request_log.output.write(str(_request_log.renderer(None, level, event)) + "\n")


class Bridge(logging.Handler):
    """Passes records of standard logging to structlog, reduced to logger, level and the fixed part of the message."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            record.levelno,
            fixed_words(record.msg, filled_in=not record.args),
            logger=record.name,
            exc_info=record.exc_info,
        )


def fixed_words(message: object, filled_in: bool) -> str:
    """Return the first line of a message up to the first value in it; arguments are left out.

    `Error handling request from %s` stays; `Exception in callback f('x')` ends before the bracket. `filled_in`: values
    may have been formatted into the text already; it then ends before the first word that is not a plain word, such as
    one with a digit.
    """
    fixed = _FIXED.match(message) if isinstance(message, str) else None
    if fixed and filled_in:
        fixed = _PROSE.match(fixed[0].strip())
    return (fixed[0].strip() if fixed else "") or "a message without fixed words"


def _renderer(format_: str, at_terminal: bool) -> Processor:
    if format_ == "json":
        return structlog.processors.JSONRenderer(separators=(",", ":"), ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(colors=True, pad_event_to=0) if at_terminal else _line


def _line(logger: Any, method: str, event: EventDict) -> str:  # noqa: ARG001  (structlog's shape)
    """Return a line as structlog's ConsoleRenderer has it without colors, which takes four times as long."""
    words = [f"{event.pop('timestamp')} [{event.pop('level'):<9}] {event.pop('event')}"]
    for key, value in sorted(event.items()):
        words.append(f"{key}={value if isinstance(value, str) and _PLAIN.fullmatch(value) else repr(value)}")
    return " ".join(words)


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
