"""An upstream with scripted responses, which records its requests: a real server on a loopback socket."""

import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from aiohttp import web

TOKEN = jwt.encode({"exp": 4_000_000_000}, "a secret of the tests that is long enough", algorithm="HS256")


@dataclass
class ScriptedResponse:
    """A response to send. A body that is not bytes is sent as JSON; `cut_after` truncates it after so many bytes."""

    body: Any
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None

    @property
    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class ScriptedUpstream:
    """Answers GraphQL requests with the responses of `script` in turn, repeating the last."""

    def __init__(self) -> None:
        self.script: list[ScriptedResponse] = []
        self.choose: Callable[[Any], Any] | None = None  # the body of the response to a request, instead of the script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.tokens = 0
        self.url = ""

    def respond_with(self, *answers: Any) -> None:
        """Set the responses; bare values are bodies."""
        self.script = [
            answer if isinstance(answer, ScriptedResponse) else ScriptedResponse(answer) for answer in answers
        ]

    @property
    def graphql_url(self) -> str:
        return f"{self.url}/graphql"

    @property
    def token_url(self) -> str:
        return f"{self.url}/connect/token"

    async def _token(self, request: web.Request) -> web.Response:
        self.tokens += 1
        return web.json_response({"access_token": TOKEN, "expires_in": 86_400, "token_type": "Bearer"})

    async def _graphql(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.choose is not None:
            return web.json_response(self.choose(self.requests[-1]))
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if answer.cut_after is None:
            return web.Response(
                body=answer.raw,
                status=answer.status,
                content_type=answer.content_type,
                headers=answer.headers,
            )
        response = web.StreamResponse(headers={"Content-Length": str(len(answer.raw))})
        await response.prepare(request)
        await response.write(answer.raw[: answer.cut_after])
        assert request.transport is not None
        request.transport.close()
        return response


@asynccontextmanager
async def running(sock: socket.socket | None = None) -> AsyncIterator[ScriptedUpstream]:
    """Serve while the block runs, on the given socket if there is one."""
    upstream = ScriptedUpstream()
    app = web.Application()
    app.router.add_post("/connect/token", upstream._token)
    app.router.add_post("/graphql", upstream._graphql)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await (web.SockSite(runner, sock) if sock else web.TCPSite(runner, "127.0.0.1", 0)).start()
        upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield upstream
    finally:
        await runner.cleanup()
