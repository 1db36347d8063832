"""Log line of a request, rendered from a template instead of through structlog's processors.

Of the fields of a request only its duration, its id and the time differ from those of many others. So the log's own
renderer renders the line once for each combination of the other fields, and the three values are filled in.
"""

import logging
import time
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple

import structlog

from proxy.telemetry import log
from proxy.telemetry.request_ids import REQUEST_ID

TEMPLATES_MAX = 1_000  # combinations of fields whose templates are kept

# Markers of the three values in a rendered line: private-use characters, which no other field holds.
_MS, _REQUEST, _TIME = "\ue000", "\ue001", "\ue002"
_MARKERS = (_MS, "%.1f"), (_REQUEST, "%s"), (_TIME, "%s")


class RequestFields(NamedTuple):
    """Fields of a request's log line without its duration and its id, which is what lines have in common.

    None of them is text from the client, which might be its API key. `is_check` says that an operator's endpoint was
    requested, which is logged at debug, because balancers poll them. `parts` and `cache` are present if parts were
    requested, `error` if the response is one.
    """

    method: str
    route: str
    status: int
    address: str
    application: str | None = None
    key: str | None = None
    parts: int | None = None
    cache: str | None = None
    error: str | None = None
    is_check: bool = False


RequestFieldValues = tuple[str, str, int, str, str | None, str | None, int | None, str | None, str | None, bool]
"""Values of RequestFields: equal to them as a key, and made in a tenth of the time."""


class _Template(NamedTuple):
    """Line with formats for the three values, and the order in which it has them."""

    line: str
    order: "itemgetter[Any]"


class RequestLog:
    """Writes the line of each request, as the log is configured when this is made, or at the last `reset`."""

    def __init__(self) -> None:
        self._second, self._second_text = -1, ""
        self.reset()

    def reset(self) -> None:
        """Follow a changed configuration of the log."""
        self._log = structlog.get_logger().bind()
        self.logs_requests: bool = self._log.is_enabled_for(logging.INFO)
        self._logs_debug: bool = self._log.is_enabled_for(logging.DEBUG)
        self._renderer = log.plain_renderer()
        self._templates: dict[RequestFieldValues, _Template] = {}

    def is_enabled(self, is_check: bool) -> bool:
        return self._logs_debug if is_check else self.logs_requests

    def write(self, fields: RequestFieldValues, seconds: float, request_id: str) -> None:
        """Log a request that took `seconds`, at a level that is enabled."""
        # At a terminal, where lines are colored by structlog and nobody counts microseconds.
        if self._renderer is None:
            self._write_by_structlog(RequestFields._make(fields), round(seconds * 1000, 1), request_id)
            return
        line, order = self._templates.get(fields) or self._template(RequestFields._make(fields), self._renderer)
        self._renderer.write(line % order((seconds * 1000, request_id, self._now())))

    def _now(self) -> str:
        """Return the time in ISO 8601. To format a whole datetime would take half of the time of a line."""
        second, microseconds = divmod(time.time_ns() // 1_000, 1_000_000)
        if second != self._second:
            self._second = second
            self._second_text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._second_text}.{microseconds:06d}Z"

    def _write_by_structlog(self, fields: RequestFields, ms: float, request_id: str) -> None:
        outside = REQUEST_ID.set(request_id)  # an unparsed hit is logged outside of any request
        if fields.is_check:
            self._log.debug("request completed", **_event_fields(fields, ms))
        else:
            self._log.info("request completed", **_event_fields(fields, ms))
        REQUEST_ID.reset(outside)

    def _template(self, fields: RequestFields, renderer: log.PlainRenderer) -> "_Template":
        """Render the line with markers for the values that differ, and keep it as a template."""
        # Cleared rather than evicted one by one, which would cost time at every request.
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        level = "debug" if fields.is_check else "info"
        event = {**_event_fields(fields, _MS), "event": "request completed", "request": _REQUEST}
        line = renderer(None, level, {**event, "level": level, "timestamp": _TIME})
        line = line.replace("%", "%%").replace(f'"{_MS}"', _MS)  # in JSON the duration is a number, without quotes
        order = sorted(range(len(_MARKERS)), key=lambda n: line.index(_MARKERS[n][0]))
        for marker, value in _MARKERS:
            line = line.replace(marker, value)
        template = self._templates[fields] = _Template(line + "\n", itemgetter(*order))
        return template


def _event_fields(fields: RequestFields, ms: float | str) -> dict[str, Any]:
    values = {
        "method": fields.method,
        "route": fields.route,
        "status": fields.status,
        "ms": ms,
        "application": fields.application,
        "key": fields.key,
        "parts": fields.parts,
        "cache": fields.cache,
        "error": fields.error,
        "address": fields.address,
    }
    return {name: value for name, value in values.items() if value is not None}
