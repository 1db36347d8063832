"""Log lines on one stream, for people or for machines. Set up once by the command line; rooms use structlog.

The one place where lines are made harmless, whoever's they are: no tracebacks, no text of unknown exceptions, and of
other libraries' messages only the fixed part. Those of aiohttp and asyncio would repeat request lines, and so apikeys.
What is written while a request is handled has its id.
"""

import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, cast

import orjson
import structlog
from structlog.typing import EventDict, Processor

from proxy import errors
from proxy.telemetry.request_ids import REQUEST_ID

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}

_FIXED = re.compile(r"[^\n<\[({'\":/?=]*")
_PROSE = re.compile(r"(?:(?:[A-Za-z][a-z]{0,15}(?:-[a-z]{1,15})?|[A-Z]{2,6}|[-–])[,.]?(?:\s+|\Z))*")
_FRAMES = 8
_ODD = re.compile(r"[ \t=\r\n\"']")  # in a value that is written in quotes


def configure(level: str, format_: str, stream: TextIO) -> None:
    """Send every line from `level` up to `stream`, as `json` or for a `console`. Standard logging follows."""
    structlog.configure(
        processors=[
            add_request,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            reduce_exception,
            *_renderers(format_, stream),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _Unfailing(stream))),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, Bridge)]:
        root.removeHandler(handler)
    root.addHandler(Bridge())
    root.setLevel(max(LEVELS[level], logging.INFO))


def catch_what_nobody_catches() -> None:
    """Exceptions that end a thread, or come out of a destructor, are log lines too, and no trace on standard error."""
    threading.excepthook = lambda found: structlog.get_logger().error("thread failed", exc_info=found.exc_value)
    sys.unraisablehook = lambda found: structlog.get_logger().warning(
        "unraisable exception ignored", exc_info=found.exc_value
    )


def signal_ignored(name: str) -> None:
    """The line of a signal that has no effect."""
    structlog.get_logger().info("signal ignored", signal=name, reason="the configuration is read at start only")


def add_request(logger: Any, method: str, event: EventDict) -> EventDict:  # noqa: ARG001  (structlog's shape)
    """Add `request`, the id of the request that is being handled, if one is."""
    if request := REQUEST_ID.get():
        event["request"] = request
    return event


def reduce_exception(logger: Any, method: str, event: EventDict) -> EventDict:  # noqa: ARG001  (structlog's shape)
    """Replace exc_info by `error` (the type, and the message where it is this program's own) and `at`."""
    found = event.pop("exc_info", None)
    event.pop("stack_info", None)
    exception = sys.exc_info()[1] if found is True else found[1] if isinstance(found, tuple) else found
    if isinstance(exception, BaseException):
        event["error"] = " from ".join(_name(link) for link in _chain(exception))
        event["at"] = _places(exception.__traceback__)
    return event


class _Unfailing:
    """A stream whose failures, such as a full disk or a terminal that has gone, fail no request."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class Bridge(logging.Handler):
    """Carries a record of standard logging over, reduced to its logger, its level and its fixed words."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            record.levelno,
            fixed_words(record.msg, filled_in=not record.args),
            logger=record.name,
            exc_info=record.exc_info,
        )


def fixed_words(message: object, filled_in: bool) -> str:
    """The first line of a message up to the first thing filled in. Arguments are left out.

    `Error handling request from %s` stays as it is; `Exception in callback f('x')` ends before the bracket. Where
    there were no arguments the text may have been `filled_in` before it came here: then it ends before the first
    word that is no plain word, such as one with a digit.
    """
    words = _FIXED.match(message) if isinstance(message, str) else None
    if words and filled_in:
        words = _PROSE.match(words[0].strip())
    return (words[0].strip() if words else "") or "a message without fixed words"


def _renderers(format_: str, stream: TextIO) -> list[Processor]:
    if format_ == "json":
        return [structlog.processors.JSONRenderer(serializer=_json)]
    return [structlog.dev.ConsoleRenderer(colors=True, pad_event_to=0) if stream.isatty() else console_line]


def console_line(logger: Any, method: str, event: EventDict) -> str:  # noqa: ARG001  (structlog's shape)
    """The line that structlog's ConsoleRenderer makes without colors, in an eighth of its time: one a request."""
    time, level, name = event.pop("timestamp"), event.pop("level"), event.pop("event")
    source = f" [{event.pop('logger')}]" if "logger" in event else ""
    fields = [f" {key}={_quoted(event[key])}" for key in sorted(event)]
    return f"{time} [{level:<9}] {name}{source}{''.join(fields)}".rstrip(" ")


def _quoted(value: object) -> str:
    return value if isinstance(value, str) and not _ODD.search(value) else repr(value)


def _json(event: EventDict, **_: Any) -> str:
    return orjson.dumps(event, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()


def _chain(exception: BaseException) -> Iterator[BaseException]:
    """An exception, what it came from, and so on; a few steps at most."""
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
    """`graphql.py:40 > wire.py:22`, outermost first, the last few."""
    places = []
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " > ".join(places[-_FRAMES:])
