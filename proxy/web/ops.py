"""For operators and their machines: is it alive, can it answer, what has it counted. No apikey needed, none shown."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from proxy.telemetry.metrics import Metrics


def add_to(app: web.Application, metrics: Metrics, ready: Callable[[], Awaitable[str | None]]) -> None:
    """`/health`, `/ready` and `/metrics`. `ready` gives the reason why not, None where all is well."""

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readiness(_: web.Request) -> web.Response:
        reason = await ready()
        body = {"status": "ready"} if reason is None else {"status": "not ready", "reason": reason}
        return web.json_response(body, status=200 if reason is None else 503)

    async def counted(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    app.router.add_get("/health", health)
    app.router.add_get("/ready", readiness)
    app.router.add_get("/metrics", counted)
