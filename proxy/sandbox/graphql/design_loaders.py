"""Design data for the resolvers of one request: what many fields ask at once is one REST call.

A loader for each table and field gathers what is asked until nothing else can run, and keeps what came for the rest of
the request. `forget` after a change.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from aiodataloader import DataLoader

from proxy.sandbox.design import client, records

R = TypeVar("R", bound=records.Record)
# Values in one call: the address must not be too long for a server.
AT_ONCE = 200
# Characters; no id has more, and a longer one need not be asked for.
LONGEST = 200


@dataclass(frozen=True, slots=True)
class RecordSource(Generic[R]):
    """A table of a design service."""

    service: str
    table: str
    kind: type[R]
    key: str = "id"


WORKSPACES = RecordSource("workspaces", "workspaces", records.Workspace)
USERS = RecordSource("workspaces", "users", records.DesignUser)
FOLDERS = RecordSource("library", "folders", records.Folder)
COMPONENTS = RecordSource("library", "components", records.Component)
PROJECTS = RecordSource("projects", "projects", records.Project)
BOMS = RecordSource("projects", "boms", records.Bom)
RELEASES = RecordSource("projects", "releases", records.Release)
ITEMS = RecordSource("projects", "items", records.DesignItem)
JOBS = RecordSource("projects", "jobs", records.ProjectJob)
DEFINITIONS = RecordSource("projects", "definitions", records.WorkflowDefinition, "workflow_definition_id")
WORKFLOWS = RecordSource("projects", "workflows", records.Workflow, "workflow_id")
THREADS = RecordSource("collaboration", "threads", records.CommentThread)
TASKS = RecordSource("collaboration", "tasks", records.Task)


class DesignLoaders:
    """The loaders of one request."""

    def __init__(self, services: client.DesignClient) -> None:
        self._client = services
        self._loaders: dict[tuple[str, str], DataLoader[str, Any]] = {}

    async def one(self, source: RecordSource[R], id_: str) -> R | None:
        """The record with this id, or None."""
        if not 0 < len(id_) <= LONGEST:
            return None

        async def load(ids: list[str]) -> list[R | None]:
            return await self._client.by_id(source.service, source.table, source.kind, ids, source.key)

        return cast(R | None, await self._loader(source, source.key, load).load(id_))

    async def having(self, source: RecordSource[R], field: str, value: str) -> list[R]:
        """The records that have this value in the field."""
        if not 0 < len(value) <= LONGEST:
            return []

        async def load(values: list[str]) -> list[list[R]]:
            return await self._client.where(source.service, source.table, source.kind, field, values)

        return cast(list[R], await self._loader(source, field, load).load(value))

    async def all(self, source: RecordSource[R]) -> list[R]:
        """Every record."""

        async def load(keys: list[str]) -> list[list[R]]:
            found = await self._client.all(source.service, source.table, source.kind)
            return [found for _ in keys]

        return cast(list[R], await self._loader(source, "", load).load(""))

    def forget(self) -> None:
        """Something has changed."""
        self._loaders.clear()

    def _loader(
        self, source: RecordSource[Any], field: str, load: Callable[[list[str]], Awaitable[Any]]
    ) -> DataLoader[str, Any]:
        place = (source.table, field)
        if place not in self._loaders:
            self._loaders[place] = DataLoader(load, max_batch_size=AT_ONCE)  # type: ignore[arg-type]
        return self._loaders[place]


@dataclass(slots=True)
class DesignSession:
    """`user_id` is the token's subject, `origin` the address that the request came to."""

    services: client.DesignClient
    user_id: str
    origin: str
    lookups: DesignLoaders = field(init=False)

    def __post_init__(self) -> None:
        self.lookups = DesignLoaders(self.services)
