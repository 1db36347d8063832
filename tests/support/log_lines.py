"""Captures log lines while a block runs, with logging configured as by the command line."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from proxy import log


@contextmanager
def collected(level: str = "debug", format_: str = "json", stream: Any = None) -> Iterator[Any]:
    """Collect every line from a level up, in a stream that is given or made; logging is restored afterwards."""
    stream = stream or io.StringIO()
    root = logging.getLogger()
    before = root.level
    log.configure(level, format_, stream)
    yield stream
    structlog.reset_defaults()
    root.setLevel(before)
    root.removeHandler(log.BRIDGE)
