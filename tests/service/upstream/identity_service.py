"""Scripted identity service, and a store that can fail, for tests of tokens."""

import asyncio
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import aiohttp
import aioresponses

from proxy import config, errors
from proxy.store.store import Store
from proxy.upstream import identity

URL = "https://identity.example/connect/token"
DAY = 86_400
CREDENTIALS = identity.Credentials("demo", config.ClientId("the-id"), config.Secret("the-secret"))


class Response(aiohttp.ClientResponse):
    """aioresponses hands over no writer, which aiohttp 3.14 asks for its size."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        writer: Any = SimpleNamespace(output_size=0)
        super().__init__(*args, stream_writer=writer, **kwargs)


class ScriptedIdentityService:
    """Identity service with scripted responses that records its requests."""

    def __init__(self, clock: Any, make_jwt: Any) -> None:
        self.clock = clock
        self._make_jwt = make_jwt
        self.mock = aioresponses.aioresponses()
        self.requests: list[dict[str, list[str]]] = []

    def grant(self, life: float = DAY, times: int = 1) -> None:
        for _ in range(times):
            self.respond(lambda: self._token(life))

    def refuse(self, status: int, body: Any = None, **headers: str) -> None:
        self.respond(lambda: {"status": status, "payload": body, "headers": headers})

    def fail(self, exception: Exception) -> None:
        self.mock.post(URL, exception=exception, repeat=True)

    def respond(self, make: Any) -> None:
        def callback(url: Any, **request: Any) -> aioresponses.CallbackResult:
            self.requests.append(parse_qs(request["data"].decode()))
            return aioresponses.CallbackResult(response_class=Response, **make())

        self.mock.post(URL, callback=callback)

    def grant_when(self, event: asyncio.Event) -> None:
        """One grant, given when the event is set."""

        async def callback(url: Any, **request: Any) -> aioresponses.CallbackResult:
            self.requests.append(parse_qs(request["data"].decode()))
            await event.wait()
            return aioresponses.CallbackResult(response_class=Response, **self._token(DAY))

        self.mock.post(URL, callback=callback)

    def _token(self, life: float) -> dict[str, Any]:
        token = self._make_jwt(exp=self.clock.now() + life, jti=str(len(self.requests)))
        return {"payload": {"access_token": token, "expires_in": life, "token_type": "Bearer"}}


class Away:
    """A store that can be out of reach: then every operation says so."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away = False

    def __getattr__(self, name: str) -> Any:
        async def operation(*arguments: Any, **named: Any) -> Any:
            if self.away:
                raise errors.StoreUnavailable("the store is away")
            return await getattr(self._store, name)(*arguments, **named)

        return operation


async def background() -> None:
    """Run pending background tasks to their end."""
    for _ in range(50):
        await asyncio.sleep(0)


async def until(holds: Any) -> None:
    """Wait for a condition, not for a time."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0)
