"""The one HTTP client of the process: its connections, its limits, and a note of which connection was reused.

Opened by the composition root, used by wire.py.
"""

from types import SimpleNamespace

import aiohttp

import proxy
from proxy import config


class Attempt:
    """One try of one request; `reused` says that it went out over a connection that had been idle."""

    __slots__ = ("reused",)

    def __init__(self) -> None:
        self.reused = False


def open_session(upstream: config.Upstream) -> aiohttp.ClientSession:
    """A client session, to be closed by whoever opens it. No cookies, nothing from the environment."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=upstream.connections),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=upstream.timeout_seconds),
        headers={"User-Agent": f"v3bridge/{proxy.__version__}"},
        trace_configs=[_reuse()],
    )


def _reuse() -> aiohttp.TraceConfig:
    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(_note_reuse)
    return trace


async def _note_reuse(
    _: aiohttp.ClientSession, context: SimpleNamespace, __: aiohttp.TraceConnectionReuseconnParams
) -> None:
    if isinstance(context.trace_request_ctx, Attempt):
        context.trace_request_ctx.reused = True
