"""Captures log lines while a block runs, with logging configured as by the command line."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from proxy import log


@contextmanager
def collected(level: str = "debug") -> Iterator[io.StringIO]:
    """Collect every line from a level up, as JSON; logging is restored afterwards."""
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.level
    log.configure(level, "json", stream)
    yield stream
    structlog.reset_defaults()
    root.setLevel(before)
    root.removeHandler(log.BRIDGE)
