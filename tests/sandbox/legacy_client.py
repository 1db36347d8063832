"""v3 client of the sandbox's legacy v3 service."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp
import yarl

import nexar_sandbox

KEY = "EXAMPLE_KEY"


class LegacyResponse(NamedTuple):
    """A response with its body."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class LegacyClient:
    """The sandbox, and a session for requests to its legacy service."""

    sandbox: nexar_sandbox.Sandbox
    session: aiohttp.ClientSession

    async def get(self, target: str, key: str | None = KEY, method: str = "GET") -> LegacyResponse:
        """GET a target under /v3 exactly as given; the API key is appended."""
        path = target if target.startswith("/api") else f"/v3{target}"
        if key is not None:
            path += f"{'&' if '?' in path else '?'}apikey={key}"
        async with self.session.request(method, yarl.URL(self.sandbox.legacy_url + path, encoded=True)) as response:
            return LegacyResponse(response.status, response.headers, await response.read())

    async def read(self, target: str) -> Any:
        """The JSON of a response that must be a 200."""
        reply = await self.get(target)
        assert reply.status == 200, reply.body
        return reply.json

    async def match(self, *queries: dict[str, Any], more: str = "") -> list[Any]:
        """The results of queries."""
        found = await self.read(f"/parts/match?queries={quote(json.dumps(queries))}{more}")
        return list(found["results"])

    async def items(self, query: dict[str, Any], more: str = "") -> list[Any]:
        """The parts of one query."""
        (result,) = await self.match(query, more=more)
        return list(result["items"])


StartLegacy = Callable[..., AbstractAsyncContextManager[LegacyClient]]
