"""The design services on their sockets, started and stopped with the sandbox; those of workspaces and libraries are
defined here.

Each has its own port of the loopback interface, a free one unless a port is set. The credential is generated at start
and known only to the services and to their client.
"""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from msgspec.structs import replace

from nexar_sandbox import journal
from nexar_sandbox.design import (
    client,
    collaboration,
    components,
    design_store,
    inputs,
    projects,
    records,
    rest,
    tables,
)
from nexar_sandbox.kit import ports


class WorkspaceService(rest.DesignService):
    """Workspaces, and users by workspace. Read-only."""

    name = "workspaces"

    def served_tables(self) -> Mapping[str, tables.Table[Any]]:
        """Workspaces and users."""
        data = self.store.tables
        return {"workspaces": data.workspaces, "users": data.users}


class LibraryService(rest.DesignService):
    """Folders and components; components can be created and their part choices changed."""

    name = "library"

    def served_tables(self) -> Mapping[str, tables.Table[Any]]:
        """Folders and components."""
        data = self.store.tables
        return {"folders": data.folders, "components": data.components}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes: POST a component, PATCH its part choices."""
        router.add_post("/components", self.create_component)
        router.add_patch("/components/{id}", self.update_part_choices)

    async def create_component(self, request: web.Request) -> web.Response:
        """Create a component in its first revision."""
        input_ = await rest.read_input(request, inputs.ComponentInput)
        if not input_.name.strip():
            raise ValueError("a component needs a name")
        existing = self.store.tables.components
        if any(
            component.name == input_.name and component.workspace_id == input_.workspace_id for component in existing
        ):
            raise ValueError(f"there is a component {input_.name} already")
        id_, now = self.store.new_id("component"), self.store.now()
        component = records.Component(
            id=id_,
            workspace_id=input_.workspace_id,
            folder_id=self._folder(input_),
            item_internal_id=components.stable_id(id_, "item"),
            revision_id=components.stable_id(id_, "revision", 1),
            name=input_.name,
            comment=input_.comment,
            description=input_.description,
            footprint_name="",
            created_at=now,
            modified_at=now,
            is_managed=True,
            life_cycle_state=components.life_cycle_state(input_.workspace_id, 0),
            parameters=input_.parameters,
        )
        return rest.json_response(existing.put(component), 201)

    async def update_part_choices(self, request: web.Request) -> web.Response:
        """Add part choices at the end, or remove some."""
        input_ = await rest.read_input(request, inputs.PartChoicesInput)
        existing = self.store.tables.components
        component: records.Component = rest.find_record(existing, request.match_info["id"], "component")
        choices = {(choice.company_name, choice.part_number): choice for choice in component.manufacturer_parts}
        if input_.remove is None:  # all are removed: null stands for the whole list
            choices = {}
        for removed in input_.remove or ():
            choices.pop((removed.company_name, removed.part_number), None)
        for added in input_.add:
            choices.setdefault((added.company_name, added.part_number), self._choice(added))
        ranked = tuple(replace(choice, priority=place) for place, choice in enumerate(choices.values(), 1))
        return rest.json_response(
            existing.put(replace(component, manufacturer_parts=ranked, modified_at=self.store.now()))
        )

    def _choice(self, choice: inputs.PartChoiceInput) -> records.ManufacturerPart:
        """The part of the catalog as part choice; without suppliers if the catalog does not have it."""
        part = components.find_part(self.store.catalog, choice.company_name, choice.part_number)
        if part is None:
            return records.ManufacturerPart(
                company_name=choice.company_name, part_number=choice.part_number, priority=0
            )
        return components.part_choice(part, self.store.catalog, 0)

    def _folder(self, input_: inputs.ComponentInput) -> str | None:
        """The id of the given folder; a missing path is created."""
        folders = self.store.tables.folders
        if input_.folder_id is not None:
            return str(rest.find_record(folders, input_.folder_id, "folder").id)
        if input_.folder_path is None:
            return None
        for existing in folders:
            if existing.path == input_.folder_path and existing.workspace_id == input_.workspace_id:
                return existing.id
        now = self.store.now()
        folder = records.Folder(
            id=self.store.new_id("folder"),
            workspace_id=input_.workspace_id,
            name=input_.folder_path.replace("/", "\\").rpartition("\\")[2],
            path=input_.folder_path,
            description="",
            folder_type="COMPONENT_LIBRARY",
            created_by_id=input_.by,
            updated_by_id=input_.by,
            created_at=now,
            updated_at=now,
        )
        return folders.put(folder).id


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
            LibraryService(self._store, credential, self._journal),
            projects.ProjectService(self._store, credential, self._journal),
            comments,
        )
        async with AsyncExitStack() as stack:
            ports = {name: self._port and self._port + number for number, name in enumerate(NAMES)}
            urls = {
                service.name: await stack.enter_async_context(_served(service, ports[service.name]))
                for service in services
            }
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
