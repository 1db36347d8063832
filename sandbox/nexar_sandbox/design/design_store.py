"""The data of the design services of one sandbox: tables, uploaded files, new ids, members; and the sample data.

The sample workspaces are created at the first request, because most users of a sandbox never request design data, and
project by project, so that other requests are served meanwhile. The same seed and catalog give the same data; all times
are before the current time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from nexar_sandbox import state, user_directory
from nexar_sandbox.catalog import store
from nexar_sandbox.design import components, records, sample_workspaces, tables, workspace_builder
from nexar_sandbox.kit import clock as clocks

# Events that a subscriber may be behind; older ones are dropped.
MAX_QUEUED = 1000
ListMembers = Callable[[], Sequence[records.Record]]


class CommentEvents:
    """Broadcasts comment events to all current subscribers. A slow subscriber loses its oldest events."""

    def __init__(self) -> None:
        self._subscribers: set[asyncio.Queue[records.Record | None]] = set()

    def publish(self, event: records.Record | None) -> None:
        """Send an event to all current subscribers; None ends their streams."""
        for queue in self._subscribers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)

    @contextmanager
    def subscribe(self) -> Iterator[AsyncIterator[records.Record]]:
        """Yield the events from now on, until the block ends or the service stops."""
        queue: asyncio.Queue[records.Record | None] = asyncio.Queue(MAX_QUEUED)
        self._subscribers.add(queue)
        try:
            yield _queued(queue)
        finally:
            self._subscribers.discard(queue)


async def _queued(queue: asyncio.Queue[records.Record | None]) -> AsyncIterator[records.Record]:
    while (event := await queue.get()) is not None:
        yield event


class DesignStore:
    """`members` lists the users of the sandbox: they are in every workspace as long as they exist. Sample users are in
    one workspace only. `files` are name and content of uploaded and generated files, by id."""

    def __init__(
        self,
        catalog: store.Catalog,
        seed: int,
        clock: clocks.Clock,
        members: ListMembers,
        *,
        state_store: state.StateStore | None = None,
    ) -> None:
        self.catalog = catalog
        self.comment_events = CommentEvents()
        self._seed = seed
        self._clock = clock
        self._members = members
        self._state_store = state_store or state.StateStore()
        self._numbers = self._state_store.rows("design_number", int)
        self.files = self._state_store.rows("design_file", tuple[str, bytes])
        self._tables: tables.DesignTables | None = None
        self._sample_users: frozenset[str] = frozenset()
        self._opening = asyncio.Lock()
        self._known_members: dict[str, records.Record] = {}

    async def open(self) -> None:
        """Open the tables, once; concurrent callers wait for the same. Creates the sample data if there is no saved
        data."""
        async with self._opening:
            self._tables = self._tables or await self._open_tables()

    async def _open_tables(self) -> tables.DesignTables:
        """Return the saved tables, or the sample data. That is saved in one transaction when it is complete, because
        other services save theirs meanwhile."""
        data = tables.DesignTables(self._state_store)
        users = data[records.User]
        if not len(data[records.Workspace]):
            new = tables.DesignTables()
            for number, sample in enumerate(sample_workspaces.WORKSPACES):
                builder = workspace_builder.WorkspaceBuilder(sample, new, self.catalog, self._seed, self._clock.now())
                for _ in builder.build(is_default=number == 0):
                    await asyncio.sleep(0)
            with self._state_store.transaction():
                new.copy_into(data)
        # Sample users are in one workspace, members in all of them, former members in none.
        self._sample_users = frozenset(user.id for user in users if len(user.workspace_ids) == 1)
        self._known_members = {
            user.id: msgspec.structs.replace(user, workspace_ids=(), group_ids=())
            for user in users
            if len(user.workspace_ids) > 1
        }
        return data

    def now(self) -> str:
        return records.rfc3339(self._clock.now())

    def new_id(self, kind: str) -> str:
        self._numbers["last"] = number = self._numbers.get("last", 0) + 1
        return components.stable_id(self._seed, "made", kind, number)

    def create(self, record: Any, by: str, **fields: Any) -> records.Record:
        """Store a new record of this class. Raises msgspec.ValidationError."""
        return self.tables.put(self.stamped(record, by, **fields))

    def stamped(self, record: Any, by: str, **fields: Any) -> records.Record:
        """Return a new record of this class, with author and time in the fields that it has for them. Raises
        msgspec.ValidationError."""
        stamps = {**self._change_stamps(by), "created_by_id": by, "created_at": self.now()}
        new: records.Record = msgspec.convert({**_known(record, stamps), **fields}, record)
        return new

    def update(self, row: records.Record, by: str, **fields: Any) -> records.Record:
        """Replace a record by one with these fields, author and time."""
        return self.tables.put(self.changed(row, by, **fields))

    def changed(self, row: records.Record, by: str, **fields: Any) -> records.Record:
        return msgspec.structs.replace(row, **_known(type(row), self._change_stamps(by)), **fields)

    def _change_stamps(self, by: str) -> dict[str, str]:
        now = self.now()
        return {"modified_by_id": by, "modified_at": now, "updated_by_id": by, "updated_at": now}

    def add_file(self, name: str, content: bytes) -> str:
        id_ = self.new_id("file")
        self.files[id_] = (name, content)
        return id_

    def _update_members(self, members: dict[str, records.Record], data: tables.DesignTables) -> None:
        """Update the users for changed members. A former member is in no workspace but remains the author of
        comments."""
        workspaces = tuple(data[records.Workspace])
        for former in self._known_members.keys() - members:
            data.put(self._known_members[former])
        for member in members.values():
            data.put(
                msgspec.structs.replace(
                    member,
                    workspace_ids=tuple(workspace.id for workspace in workspaces),
                    group_ids=tuple(workspace.groups[0].id for workspace in workspaces),
                )
            )
        self._known_members = members

    @property
    def tables(self) -> tables.DesignTables:
        """All tables, with the current members. Raises RuntimeError before `open`."""
        if self._tables is None:
            raise RuntimeError("the design data is not open")
        members = {member.id: member for member in self._members() if member.id not in self._sample_users}
        if members != self._known_members:
            self._update_members(members, self._tables)
        return self._tables


def _known(record: type[records.Record], fields: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name in record.__struct_fields__}


def members_of(users: user_directory.UserDirectory) -> tuple[records.Record, ...]:
    """Return the users who can sign in, as users of workspaces."""
    return tuple(
        records.User(
            id=user.id,
            user_name=user.email.partition("@")[0],
            email=user.email,
            first_name=user.given_name,
            last_name=user.family_name,
        )
        for user in users.all
    )
