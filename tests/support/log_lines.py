"""What the log says while a block runs, set up as the command line sets it up."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from proxy.telemetry import log


@contextmanager
def collected(level: str = "debug") -> Iterator[io.StringIO]:
    """Every line from a level up, as JSON; afterwards logging is as it was."""
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.level
    log.configure(level, "json", stream)
    yield stream
    structlog.reset_defaults()
    root.setLevel(before)
    for handler in [handler for handler in root.handlers if isinstance(handler, log.Bridge)]:
        root.removeHandler(handler)
