"""Connection pool that records how far each request came, for the decision whether it may be sent again.

The one module that uses private attributes and undocumented behavior of aiohttp. Its test names each of them, and fails
when an aiohttp lacks one; `pyproject.toml` bounds the version.
"""

import asyncio
import math
from contextvars import ContextVar
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey


class Attempt:
    """Progress of one attempt to send a request.

    `sent`: it had a connection. `reused`: that connection had been idle in the pool. `answered`: a response head has
    come. `since`: the loop's time at which the attempt got its connection; infinite while it waits for a free one.
    """

    __slots__ = ("answered", "reused", "sent", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.reused = self.sent = True
        self.answered = False


ATTEMPT: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


class AttemptConnector(aiohttp.TCPConnector):
    """Records in the current `ATTEMPT` that it waits for a free connection, and that it opens a new one.

    Reuse of an idle connection, the usual case, is an attempt's default and costs nothing; aiohttp's own tracing takes
    a tenth of a request's time. `connect_seconds` bounds the whole set-up of a connection: name, TCP, proxy and TLS.
    """

    def __init__(self, connect_seconds: float, **settings: Any) -> None:
        super().__init__(**settings)
        self._connect_seconds = connect_seconds

    def close_idle(self) -> None:
        """Close all connections that no request uses."""
        for idle in self._conns.values():
            for protocol, _ in idle:
                protocol.close()
        self._conns.clear()

    async def _wait_for_available_connection(self, key: ConnectionKey, traces: list[Any]) -> None:
        if attempt := ATTEMPT.get():
            attempt.sent = False
            attempt.since = math.inf
        await super()._wait_for_available_connection(key, traces)
        if attempt:
            attempt.sent = True
            attempt.since = asyncio.get_running_loop().time()

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        if attempt := ATTEMPT.get():
            attempt.reused = attempt.sent = False
        async with asyncio.timeout(self._connect_seconds):  # aiohttp's sock_connect bounds the TCP handshake only
            connection = await super()._create_connection(req, traces, timeout)
        if attempt:
            attempt.sent = True
        return connection
