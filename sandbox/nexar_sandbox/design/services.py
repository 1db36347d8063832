"""The design services on their sockets, started and stopped with the sandbox, and their client, the query service's
resolvers.

Each has a free port of the loopback interface. The credential is generated at start, and known only to the services
and to their client.
"""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from nexar_sandbox import journal
from nexar_sandbox.design import design_store, resources, rest
from nexar_sandbox.design.resources import Record

HOST = "127.0.0.1"
SHUTDOWN_TIMEOUT = 1.0
# An event stream has no total timeout.
STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=5)


class DesignServiceError(Exception):
    """A service rejected a request; the message is for the client."""


class DesignClient:
    """`urls` are the base URLs of the services by name; the session sends the credential."""

    def __init__(self, session: aiohttp.ClientSession, urls: Mapping[str, str]) -> None:
        self._session, self.urls = session, urls

    async def get(self, resource: resources.Resource, field: str, values: Sequence[str]) -> list[Any]:
        """Return for each value the records that have it in this field: one or None for `id`, else a list. Without a
        field, return one list of every record."""
        url = f"{self.urls[resource.service]}/{resource.table}"
        found: list[Any] = await self._request("GET", url, params=[(field, value) for value in values if field])
        return found if field else [found]

    async def change(self, method: str, service: str, path: str, content: object) -> Record:
        """Send POST, PATCH or DELETE; return the resulting record. Raises DesignServiceError."""
        changed: Record = await self._request(method, f"{self.urls[service]}{path}", data=orjson.dumps(content))
        return changed

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[Record]]:
        """Comment events from now on; the stream is open when the block is entered."""
        async with self._session.get(f"{self.urls['collaboration']}/events", timeout=STREAM_TIMEOUT) as response:
            # The empty line says that the subscription has begun.
            await response.content.readline()
            yield (orjson.loads(line) async for line in response.content)

    async def _request(self, method: str, url: str, **options: Any) -> Any:
        async with self._session.request(method, url, **options) as response:
            content = orjson.loads(await response.read())
            if response.status >= 400:
                raise DesignServiceError(content["error"])
            return content


class DesignServices:
    """The design services of one sandbox."""

    def __init__(self, store: design_store.DesignStore, exchanges: journal.RequestJournal) -> None:
        self._store, self._journal = store, exchanges
        self._client: DesignClient | None = None

    @property
    def client(self) -> DesignClient:
        """The client of the running services. Raises RuntimeError before they are started."""
        if self._client is None:
            raise RuntimeError("the design services are not running")
        return self._client

    async def lifespan(self, _app: web.Application) -> AsyncIterator[None]:
        """Run the services while the sandbox runs (aiohttp cleanup context)."""
        credential = secrets.token_urlsafe(32)
        async with AsyncExitStack() as stack:
            urls = {}
            for name in resources.SERVICES:
                service = rest.DesignService(name, self._store, credential, self._journal)
                urls[name] = await stack.enter_async_context(_served(service))
            session = aiohttp.ClientSession(headers={rest.CREDENTIAL: credential})
            self._client = DesignClient(await stack.enter_async_context(session), urls)
            stack.callback(self._store.comment_events.publish, None)
            yield


@asynccontextmanager
async def _served(service: rest.DesignService) -> AsyncIterator[str]:
    # Without handler_cancellation the handler of an event stream would wait for the next event after its client left.
    runner = web.AppRunner(service.app(), access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_TIMEOUT)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0).start()
        yield f"http://{HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
