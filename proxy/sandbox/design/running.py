"""The design services on their sockets: started and stopped with the sandbox.

Each has a port of its own of the loopback interface, a free one unless it is chosen. The credential that they want is
made at the start and known to nobody but them and the client that is handed out here.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
from aiohttp import web

from proxy.kit import ports
from proxy.sandbox import journal
from proxy.sandbox.design import client, collaboration, holdings, library, projects, rest, workspaces

HOST = "127.0.0.1"
SHUTDOWN = 1.0
# In the order of their ports.
NAMES = ("workspaces", "library", "projects", "collaboration")


class PortError(OSError):
    """A service cannot have the port that was chosen for it."""

    def __init__(self, service: str, port: int, error: OSError) -> None:
        super().__init__(error.errno, error.strerror)
        self.service, self.port = service, port


def check(port: int) -> None:
    """Raise PortError where a service cannot have its port, the first of them `port`; 0: free ones."""
    for number, name in enumerate(NAMES if port else ()):
        try:
            ports.check(HOST, port + number)
        except OSError as error:
            raise PortError(name, port + number, error) from error


class Design:
    """The services of one sandbox. `client` is there while they run. `port`: the first has it, the others those after
    it; 0: free ones."""

    def __init__(self, held: holdings.Holdings, kept: journal.RequestJournal, port: int = 0) -> None:
        self._held, self._journal, self._port = held, kept, port
        self._client: client.Client | None = None

    @property
    def client(self) -> client.Client:
        """What asks them. Raises RuntimeError before they are started."""
        if self._client is None:
            raise RuntimeError("the design services are not running")
        return self._client

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """From the start of the sandbox to its end. Raises PortError."""
        credential = secrets.token_urlsafe(32)
        talk = collaboration.Collaboration(self._held, credential, self._journal)
        services: tuple[rest.Service, ...] = (
            workspaces.Workspaces(self._held, credential, self._journal),
            library.Library(self._held, credential, self._journal),
            projects.Projects(self._held, credential, self._journal),
            talk,
        )
        async with AsyncExitStack() as stack:
            ports = {name: self._port and self._port + number for number, name in enumerate(NAMES)}
            urls = {one.name: await stack.enter_async_context(_served(one, ports[one.name])) for one in services}
            session = aiohttp.ClientSession(headers={rest.CREDENTIAL: credential})
            self._client = client.Client(await stack.enter_async_context(session), urls)
            stack.callback(talk.events.close)
            yield


@asynccontextmanager
async def _served(service: rest.Service, port: int) -> AsyncIterator[str]:
    # Who stops listening to events ends the request.
    runner = web.AppRunner(service.app(), access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, HOST, port).start()
        except OSError as error:
            raise PortError(service.name, port, error) from error
        yield f"http://{HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
