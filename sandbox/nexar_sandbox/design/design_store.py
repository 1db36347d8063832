"""The data of the design services of one sandbox: tables, uploaded files, new ids, members, and events of comments.

The sample workspaces are created at the first request, because most users of a sandbox never request design data.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager

from nexar_sandbox import clocks, user_directory
from nexar_sandbox.catalog import store
from nexar_sandbox.design import resources, samples
from nexar_sandbox.design.resources import Record

# Events that a subscriber may be behind; older ones are dropped.
MAX_QUEUED = 1000


class CommentEvents:
    """Broadcasts comment events to all current subscribers. A slow subscriber loses its oldest events."""

    def __init__(self) -> None:
        self._subscribers: set[asyncio.Queue[Record | None]] = set()

    def publish(self, event: Record | None) -> None:
        """Send an event to all current subscribers; None ends their streams."""
        for queue in self._subscribers:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)

    @contextmanager
    def subscribe(self) -> Iterator[AsyncIterator[Record]]:
        """Yield the events from now on, until the block ends or the service stops."""
        queue: asyncio.Queue[Record | None] = asyncio.Queue(MAX_QUEUED)
        self._subscribers.add(queue)
        try:
            yield _queued(queue)
        finally:
            self._subscribers.discard(queue)


async def _queued(queue: asyncio.Queue[Record | None]) -> AsyncIterator[Record]:
    while (event := await queue.get()) is not None:
        yield event


class DesignStore:
    """Records by table and id, in the order of creation. `members` are the users of the sandbox. `files` are name and
    content of uploaded and generated files, by id."""

    def __init__(self, catalog: store.Catalog, clock: clocks.Clock, members: Sequence[Record]) -> None:
        self.catalog, self._clock, self._members = catalog, clock, members
        self.comment_events = CommentEvents()
        self.files: dict[str, tuple[str, bytes]] = {}
        self._numbers = itertools.count(1)
        self._tables: dict[str, dict[str, Record]] = {}

    @property
    def tables(self) -> dict[str, dict[str, Record]]:
        """All tables. The members are in all workspaces, sample users in one only."""
        if not self._tables:
            self._tables = {table: {} for table in resources.TABLES}
            samples.create(self._tables, self.catalog, self._clock.now())
            users, workspaces = self._tables["users"], self._tables["workspaces"].values()
            places = {
                "workspaceIds": [workspace["id"] for workspace in workspaces],
                "groupIds": [workspace["groups"][0]["id"] for workspace in workspaces],
            }
            for member in self._members:
                users.setdefault(member["id"], member | places)
        return self._tables

    def find(self, table: str, id_: str) -> Record:
        """Return the record with this id. Raises LookupError."""
        record = self.tables[table].get(id_)
        if record is None:
            raise LookupError(f"there is no {resources.TABLES[table].noun} {id_}")
        return record

    def where(self, table: str, field: str, values: Sequence[str]) -> list[list[Record]]:
        """For each value, the records that have it in this field, or contain it if the field is a list."""
        matches: dict[str, list[Record]] = {value: [] for value in values}
        # One pass for all values.
        for record in self.tables[table].values():
            own = record.get(field)
            for value in own if isinstance(own, list) else (own,):
                if value in matches:
                    matches[value].append(record)
        return [matches[value] for value in values]

    def new_id(self, kind: str) -> str:
        return samples.stable_id("made", kind, next(self._numbers))

    def create(self, table: str, by: str, fields: Record) -> Record:
        """Store a new record of the user `by`."""
        record = self.stamped(by, {"id": self.new_id(table), **fields})
        self.tables[table][record["id"]] = record
        return record

    def stamped(self, by: str, fields: Record) -> Record:
        """Return fields with author and time."""
        return samples.stamps(by, self._now()) | fields

    def update(self, record: Record, by: str, fields: Record) -> Record:
        """Replace fields of a record, and who has changed it when."""
        now = self._now()
        record |= {"modifiedById": by, "modifiedAt": now, "updatedById": by, "updatedAt": now, **fields}
        return record

    def _now(self) -> str:
        return resources.rfc3339(self._clock.now())

    def add_file(self, name: str, content: bytes) -> str:
        id_ = self.new_id("file")
        self.files[id_] = (name, content)
        return id_


def members_of(users: user_directory.UserDirectory) -> list[Record]:
    """Return the users who can sign in, as users of workspaces."""
    return [
        {
            "id": user.id,
            "userName": user.email.partition("@")[0],
            "email": user.email,
            "firstName": user.given_name,
            "lastName": user.family_name,
        }
        for user in users.all
    ]
