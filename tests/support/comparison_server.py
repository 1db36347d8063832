"""Scripted services for tests of comparisons, and requests to send them."""

import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from proxy.traffic.v3_request import V3Request, parse_target


def request_from_target(target: str, **fields: Any) -> V3Request:
    path, query, _ = parse_target(target)
    return V3Request(path, query, **fields)


class ComparisonServer:
    """Responds with a function of the query parameter `q`, and records its requests."""

    def __init__(self, answer: Callable[[str], Any], parts: int | None = None) -> None:
        self.answer = answer
        self.parts = parts
        self.requests: list[str] = []
        self.keys: list[str | None] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        q = request.query.get("q", "")
        self.requests.append(q)
        self.keys.append(request.query.get("apikey"))
        made = self.answer(q)
        if isinstance(made, web.StreamResponse):
            return made
        headers = {} if self.parts is None else {"X-Parts-Cost": str(self.parts)}
        return web.Response(body=json.dumps(made).encode(), content_type="application/json", headers=headers)
