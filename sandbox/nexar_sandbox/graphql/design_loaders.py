"""Loaders of design data for the resolvers of one request, which batch the lookups of many fields into one REST call.

A DataLoader for each table and field batches lookups until no other task can run, and caches the results for the rest
of the request. `clear` it after a mutation.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from aiodataloader import DataLoader

from nexar_sandbox.design import client, records

R = TypeVar("R", bound=records.Record)
# Values in one call, so that the URL does not become too long for a server.
BATCH_SIZE = 200
# Characters; no id has more, so a longer one is not looked up.
MAX_ID_LENGTH = 200


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
        """Return the record with this id, or None."""
        if not 0 < len(id_) <= MAX_ID_LENGTH:
            return None

        async def load(ids: list[str]) -> list[R | None]:
            return await self._client.by_id(source.service, source.table, source.kind, ids, source.key)

        return cast(R | None, await self._loader(source, source.key, load).load(id_))

    async def where(self, source: RecordSource[R], field: str, value: str) -> list[R]:
        """Return the records that have this value in the field."""
        if not 0 < len(value) <= MAX_ID_LENGTH:
            return []

        async def load(values: list[str]) -> list[list[R]]:
            return await self._client.where(source.service, source.table, source.kind, field, values)

        return cast(list[R], await self._loader(source, field, load).load(value))

    async def all(self, source: RecordSource[R]) -> list[R]:
        """Every record."""

        async def load(keys: list[str]) -> list[list[R]]:
            rows = await self._client.all(source.service, source.table, source.kind)
            return [rows for _ in keys]

        return cast(list[R], await self._loader(source, "", load).load(""))

    def clear(self) -> None:
        """Discard cached records after a change."""
        self._loaders.clear()

    def _loader(
        self, source: RecordSource[Any], field: str, load: Callable[[list[str]], Awaitable[Any]]
    ) -> DataLoader[str, Any]:
        key = (source.table, field)
        if key not in self._loaders:
            self._loaders[key] = DataLoader(load, max_batch_size=BATCH_SIZE)  # type: ignore[arg-type]
        return self._loaders[key]


@dataclass(slots=True)
class DesignSession:
    """Access to design data for one request with a user's token. `user_id` is the token's subject, `origin` the origin
    of the request URL."""

    services: client.DesignClient
    user_id: str
    origin: str
    loaders: DesignLoaders = field(init=False)

    def __post_init__(self) -> None:
        self.loaders = DesignLoaders(self.services)
