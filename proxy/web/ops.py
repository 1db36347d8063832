"""For operators and their machines: is it alive, can it answer, what has it counted. No apikey needed, none shown."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from aiohttp import web

PATHS = ("/healthz", "/readyz", "/metrics")
CHECK_SECONDS = 5.0  # until a check that does not come back counts as failed


class Check(NamedTuple):
    """Something that must be well before requests can be answered. `trouble` gives the reason why it is not."""

    name: str
    trouble: Callable[[], Awaitable[str | None]]


def add_to(app: web.Application, metrics_text: Callable[[], bytes], checks: Sequence[Check]) -> None:
    """`/healthz`: the process answers. `/readyz`: so can the service, or every reason why not. `/metrics`."""

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readiness(_: web.Request) -> web.Response:
        troubles = await asyncio.gather(*map(_trouble, checks))
        reasons = [
            {"check": check.name, "reason": trouble}
            for check, trouble in zip(checks, troubles, strict=True)
            if trouble is not None
        ]
        if reasons:
            return web.json_response({"status": "not ready", "reasons": reasons}, status=503)
        return web.json_response({"status": "ready"})

    async def counted(_: web.Request) -> web.Response:
        return web.Response(body=metrics_text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    app.router.add_get("/healthz", health)
    app.router.add_get("/readyz", readiness)
    app.router.add_get("/metrics", counted)


async def _trouble(check: Check) -> str | None:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check.trouble()
    except TimeoutError:
        return f"not known after {CHECK_SECONDS:.0f} seconds"
