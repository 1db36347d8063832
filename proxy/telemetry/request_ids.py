"""The id of the request that is being handled: on every log line of it, in its reply, and with what is asked for it.

The web edge makes or takes one and sets it; log.py and the upstream client read it. A task that a request starts has
the request's id, also where others wait for the same work.
"""

import re
import secrets
from contextvars import ContextVar
from itertools import count

from proxy import parameters

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")

_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


class RequestIds:
    """Makes ids: eight hex digits of the process and eight of the request, unlike any other process's, at no cost."""

    def __init__(self) -> None:
        self._process = secrets.token_hex(4)
        self._numbers = count()

    def new(self) -> str:
        """One that was never used."""
        return f"{self._process}{next(self._numbers):08x}"

    def taken(self, given: str | None, traceparent: str | None, target: str) -> str:
        """The caller's own id where it is well-formed, or its trace's (W3C Trace Context); else a new one.

        An id that is the apikey of the request `target` is not taken: ids are written to logs.
        """
        if given and _GIVEN.fullmatch(given) and not _is_key(given, target):
            return given
        trace = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
        return self.new() if trace is None or _is_key(trace[1], target) else trace[1]


def _is_key(id_: str, target: str) -> bool:
    """Whether a request target has this apikey, however it is spelled; or one that begins like it."""
    if id_ not in target and "%" not in target:
        return False
    return re.search(rf"apikey(\[\d*\])?={re.escape(id_)}", parameters.decoded(target)) is not None
