"""The design services on their sockets, started and stopped with the sandbox.

Each has its own port of the loopback interface, a free one unless a port is set. The credential is generated at start
and known only to the services and to their client.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
from aiohttp import web

from nexar_sandbox import journal
from nexar_sandbox.design import client, collaboration, design_store, library, projects, rest
from nexar_sandbox.kit import ports

HOST = "127.0.0.1"
SHUTDOWN_TIMEOUT = 1.0
# In the order of their ports. Workspaces and users are read-only.
CHANGES: dict[str, rest.Changes] = {
    "workspaces": {},
    "library": library.CHANGES,
    "projects": projects.CHANGES,
    "collaboration": collaboration.CHANGES,
}


class PortError(OSError):
    """A service cannot listen on the port that was set for it."""

    def __init__(self, service: str, port: int, error: OSError) -> None:
        super().__init__(error.errno, error.strerror)
        self.service, self.port = service, port


def check(port: int) -> None:
    """Raise PortError if a service cannot have its port; the first has `port`. 0: free ports, nothing to check."""
    for number, name in enumerate(CHANGES if port else ()):
        try:
            ports.check(HOST, port + number)
        except OSError as error:
            raise PortError(name, port + number, error) from error


class DesignServices:
    """The design services of one sandbox. `port` is that of the first, the others have the following ones; 0: free
    ports."""

    def __init__(self, store: design_store.DesignStore, exchanges: journal.RequestJournal, port: int = 0) -> None:
        self._store, self._journal, self._port = store, exchanges, port
        self._client: client.DesignClient | None = None

    @property
    def client(self) -> client.DesignClient:
        """The client of the running services. Raises RuntimeError before they are started."""
        if self._client is None:
            raise RuntimeError("the design services are not running")
        return self._client

    async def lifespan(self, _app: web.Application) -> AsyncIterator[None]:
        """Run the services while the sandbox runs (aiohttp cleanup context). Raises PortError."""
        credential = secrets.token_urlsafe(32)
        async with AsyncExitStack() as stack:
            urls = {}
            for number, (name, changes) in enumerate(CHANGES.items()):
                service = rest.DesignService(name, changes, self._store, credential, self._journal)
                urls[name] = await stack.enter_async_context(_served(service, self._port and self._port + number))
            session = aiohttp.ClientSession(headers={rest.CREDENTIAL: credential})
            self._client = client.DesignClient(await stack.enter_async_context(session), urls)
            stack.callback(self._store.comment_events.publish, None)
            yield


@asynccontextmanager
async def _served(service: rest.DesignService, port: int) -> AsyncIterator[str]:
    # Without handler_cancellation the handler of an event stream would wait for the next event after its client left.
    runner = web.AppRunner(service.app(), access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_TIMEOUT)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, HOST, port).start()
        except OSError as error:
            raise PortError(service.name, port, error) from error
        yield f"http://{HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
