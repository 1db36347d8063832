"""Request ids: in every log line of a request, in its response, and in the upstream requests made for it.

Set by the web layer, read by log.py and the upstream client. A task started during a request has the id of that
request, also where other requests wait for the same work.
"""

import re
import secrets
from contextvars import ContextVar
from itertools import count

from multidict import istr

from proxy import redaction

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
REDACTION: ContextVar[redaction.Redaction | None] = ContextVar("redaction", default=None)  # of what is logged

X_REQUEST_ID, TRACEPARENT = istr("X-Request-Id"), istr("traceparent")  # no case folding at every look-up

# Characters of an id that are percent-encoded although they need not be: only these can hide an id in a target.
_ESCAPED = re.compile(r"%(?:2[DEde]|3[0-9]|[46][1-9A-Fa-f]|5[0-9AFaf]|7[0-9Aa])")
# Ids are written to the log: no line break, nothing long.
_CLIENT_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


class RequestIds:
    """Makes ids of 8 random hex digits of the process and an 8-digit counter; cheaper than a random id each."""

    def __init__(self, keys: redaction.Redaction) -> None:
        self.redaction = keys
        self._process = secrets.token_hex(4)
        self._numbers = count()

    def resolve(self, client_id: str | None, traceparent: str | None, target: str) -> str:
        """Return the client's id if it is well-formed, else that of its trace (W3C Trace Context), else a new one.

        An id that is an API key, or begins the one in the request `target`, is not used: ids are written to logs.
        """
        if client_id and _CLIENT_ID.fullmatch(client_id) and not self._is_key(client_id, target):
            return client_id
        trace = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
        if trace is not None and not self._is_key(trace[1], target):
            return trace[1]
        return f"{self._process}{next(self._numbers):08x}"

    def _is_key(self, id_: str, target: str) -> bool:
        # Without the id in it, plain or encoded, the target need not be decoded.
        if id_ in target or _ESCAPED.search(target):
            return any(key.startswith(id_) for key in redaction.given(target)) or self.redaction.is_key(id_)
        return self.redaction.is_key(id_)
