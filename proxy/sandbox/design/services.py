"""The design services on their sockets: started and stopped with the sandbox.

Each has its own port of the loopback interface, a free one unless a port is set. The credential is generated at start
and known only to the services and to their client.
"""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from proxy.kit import ports
from proxy.sandbox import journal
from proxy.sandbox.design import client, collaboration, design_store, library, projects, rest, tables


class WorkspaceService(rest.DesignService):
    """WorkspaceService, and users by workspace."""

    name = "workspaces"

    def served_tables(self) -> Mapping[str, tables.Table[Any]]:
        """WorkspaceService and users."""
        data = self.store.tables
        return {"workspaces": data.workspaces, "users": data.users}


HOST = "127.0.0.1"
SHUTDOWN_TIMEOUT = 1.0
# In the order of their ports.
NAMES = ("workspaces", "library", "projects", "collaboration")


class PortError(OSError):
    """A service cannot listen on the port that was set for it."""

    def __init__(self, service: str, port: int, error: OSError) -> None:
        super().__init__(error.errno, error.strerror)
        self.service, self.port = service, port


def check(port: int) -> None:
    """Raise PortError if a service cannot have its port; the first has `port`. 0: free ports, nothing to check."""
    for number, name in enumerate(NAMES if port else ()):
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
        comments = collaboration.CommentService(self._store, credential, self._journal)
        services: tuple[rest.DesignService, ...] = (
            WorkspaceService(self._store, credential, self._journal),
            library.LibraryService(self._store, credential, self._journal),
            projects.ProjectService(self._store, credential, self._journal),
            comments,
        )
        async with AsyncExitStack() as stack:
            ports = {name: self._port and self._port + number for number, name in enumerate(NAMES)}
            urls = {one.name: await stack.enter_async_context(_served(one, ports[one.name])) for one in services}
            session = aiohttp.ClientSession(headers={rest.CREDENTIAL: credential})
            self._client = client.DesignClient(await stack.enter_async_context(session), urls)
            stack.callback(comments.events.close)
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
