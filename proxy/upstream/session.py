"""The one HTTP client of the process: its connections, its limits, and a note of whether a connection was reused."""

from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

import proxy
from proxy import config


class Attempt:
    """One try of one request; `reused` says that it went out over a connection that had been idle."""

    __slots__ = ("reused",)

    def __init__(self) -> None:
        self.reused = False


ATTEMPT: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


def open_session(upstream: config.Upstream) -> aiohttp.ClientSession:
    """A client session, to be closed by whoever opens it. No cookies, nothing from the environment."""
    return aiohttp.ClientSession(
        connector=_Connector(limit=upstream.connections),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=upstream.timeout_seconds),
        headers={"User-Agent": f"v3bridge/{proxy.__version__}"},
    )


class _Connector(aiohttp.TCPConnector):
    """Notes on the attempt under way whether its connection served another before.

    aiohttp's tracing tells the same, at a tenth of the whole cost of a request.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        attempt, protocol = ATTEMPT.get(), connection.protocol
        if protocol is not None:
            if attempt is not None:
                attempt.reused = protocol in self._used
            self._used.add(protocol)
        return connection
