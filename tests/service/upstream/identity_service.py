"""Scripted identity service, for tests of tokens."""

import asyncio
from types import SimpleNamespace
from typing import Any

import aiohttp
import aioresponses
import jwt

from proxy import config
from proxy.upstream.tokens import Credentials

URL = "https://identity.example/connect/token"
DAY = 86_400
CREDENTIALS = Credentials("demo", config.ClientId("the-id"), config.Secret("the-secret"))


def make_jwt(**claims: Any) -> str:
    return jwt.encode(claims, "a key that is long enough for a signature in a test", algorithm="HS256")


class Response(aiohttp.ClientResponse):
    """aioresponses hands over no writer, which aiohttp 3.14 asks for its size."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        writer: Any = SimpleNamespace(output_size=0)
        super().__init__(*args, stream_writer=writer, **kwargs)


class ScriptedIdentityService:
    """Identity service with scripted responses that records its requests. Other hosts are reached."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.mock = aioresponses.aioresponses(passthrough=["http://127.0.0.1"])
        self.requests: list[float] = []  # when each was sent
        self.arrived: list[float] = []

    def grant(self, life: float = DAY, times: int = 1, seconds: float = 0.0, when: asyncio.Event | None = None) -> None:
        """Return tokens, each after so many seconds, and when an event is set."""

        async def make() -> dict[str, Any]:
            self.clock.advance(seconds)
            if when is not None:
                await when.wait()
            token = make_jwt(exp=self.clock.now() + life, jti=str(len(self.requests)))
            return {"payload": {"access_token": token, "expires_in": life, "token_type": "Bearer"}}

        for _ in range(times):
            self.respond(make)

    def refuse(self, status: int, body: Any = None, **headers: str) -> None:
        async def make() -> dict[str, Any]:
            return {"status": status, "payload": body, "headers": headers}

        self.respond(make)

    def respond(self, make: Any) -> None:
        async def callback(url: Any, **request: Any) -> aioresponses.CallbackResult:
            self.requests.append(self.clock.now())
            made = await make()
            self.arrived.append(self.clock.now())
            return aioresponses.CallbackResult(response_class=Response, **made)

        self.mock.post(URL, callback=callback)


async def background() -> None:
    """Run pending background tasks to their end."""
    for _ in range(50):
        await asyncio.sleep(0)
