"""A scripted service with a token endpoint, and a prober that sends it requests without waiting."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support import comparison_server

from proxy.kit import clock
from proxy.tools.conform import probes

SECRET = "S3CRET-OF-THE-TEST"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2lnbmF0dXJl"


class ScriptedService:
    """Responds to GraphQL requests by their document, and records all requests. `responses` holds a status and a body
    by document; `token` is the response to a token request."""

    HANGS_UP = 0  # as a status: the connection is closed without a response

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], str]] = []
        self.times: list[float] = []
        self.responses: dict[str, tuple[int, Any]] = {}
        self.token: tuple[int, Any] = (200, {"access_token": TOKEN})
        self.clock = clock.ManualClock()

    async def handle(self, request: web.Request) -> web.Response:
        """Respond to one request."""
        text = await request.text()
        self.requests.append((request.path, dict(request.headers), text))
        if request.path == "/token":
            self.times.append(self.clock.now())
            status, body = self.token
        else:
            query = (await request.json()).get("query") if request.content_type == "application/json" else text
            status, body = self.responses.get(query, (200, {"data": {}}))
        if status == self.HANGS_UP and request.transport is not None:
            request.transport.abort()
        if isinstance(body, str):
            return web.Response(text=body, status=status or 200, headers={"X-Twice": "1"})
        return web.json_response(body, status=status)

    @property
    def paths(self) -> list[str]:
        """Paths of the requests, in order."""
        return [path for path, _, _ in self.requests]


Connect = Callable[..., Any]


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
def connect(service: ScriptedService) -> Connect:
    """Opens a prober on the service; further accounts by their condition."""

    async def sleep(seconds: float) -> None:
        service.clock.advance(seconds)

    @asynccontextmanager
    async def connected(**accounts: probes.Account) -> AsyncIterator[probes.Prober]:
        own = probes.Account("our-client", SECRET)
        async with comparison_server.serve(service.handle) as url, aiohttp.ClientSession() as session:
            by_condition: dict[str | None, probes.Account] = {None: own}
            by_condition.update(accounts)
            target = probes.Target(f"{url}/graphql", f"{url}/token", by_condition)
            yield probes.Prober(target, session, service.clock, sleep)

    return connected
