"""/healthz, /readyz and /metrics: liveness, readiness and metrics for operators. They need no API key and show none.

The operators' port has all of them, the public port `/healthz`, and the others with `listen.metrics: true`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec
from aiohttp import web

from proxy.web import routing

PATHS = frozenset(("/healthz", "/readyz", "/metrics"))
MOVED = "/readyz and /metrics are on the operators' port, admin.port; with `listen.metrics: true` here, too"
CHECK_SECONDS = 5.0  # after which a check has failed

FailureReason = Callable[[], Awaitable[str | None]]  # None: the check passes


class ReadinessCheck(NamedTuple):
    """A condition for serving requests."""

    name: str
    failure: FailureReason


class FailedCheck(msgspec.Struct, frozen=True):
    """Why the service is not ready."""

    check: str
    reason: str


class Monitoring(NamedTuple):
    """Readiness and metrics of a service."""

    checks: Sequence[ReadinessCheck]
    metrics_text: Callable[[], bytes]


def add_health(routes: routing.Routes) -> None:
    """Register `/healthz`."""

    async def health(_: web.BaseRequest) -> web.Response:
        return web.json_response({"status": "ok"})

    routes.add("/healthz", health, *routing.READ)


def add_monitoring(routes: routing.Routes, service: Monitoring) -> None:
    """Register `/readyz`, a 503 with all reasons while a check fails, and `/metrics`."""

    async def readiness(_: web.BaseRequest) -> web.Response:
        if reasons := await failed_checks(service.checks):
            return web.json_response(
                {"status": "not ready", "reasons": [msgspec.to_builtins(each) for each in reasons]}, status=503
            )
        return web.json_response({"status": "ready"})

    async def metrics(_: web.BaseRequest) -> web.Response:
        # The version of the text format: Prometheus chooses its parser by it.
        return web.Response(
            body=service.metrics_text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    routes.add("/readyz", readiness, *routing.READ)
    routes.add("/metrics", metrics, *routing.READ)


async def failed_checks(checks: Sequence[ReadinessCheck]) -> list[FailedCheck]:
    failures = await asyncio.gather(*map(run, checks))
    return [
        FailedCheck(check.name, failure) for check, failure in zip(checks, failures, strict=True) if failure is not None
    ]


async def run(check: ReadinessCheck) -> str | None:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check.failure()
    except TimeoutError:
        return f"no result after {CHECK_SECONDS:.0f} seconds"
