"""The data of one sandbox's design services, and what they need to change it: the time, new ids, the people.

Made at the first question that is asked, because most who start a sandbox never ask one, and board by board, because
others are waiting.
"""

import asyncio

import msgspec

from proxy.kit import clock as clocks
from proxy.sandbox.catalog import store
from proxy.sandbox.design import choices, moments, records, seeding
from proxy.sandbox.state import store as state


class Holdings:
    """`members` says who may sign in: they are in every workspace, whenever they come, until they go; who is a
    company's own stays in its workspace. `files` are the name and the content of what was uploaded or made, by id."""

    def __init__(
        self,
        catalog: store.Catalog,
        seed: int,
        clock: clocks.Clock,
        members: seeding.Members,
        *,
        kept: state.StateStore | None = None,
    ) -> None:
        self.catalog, self._seed, self._clock, self._members = catalog, seed, clock, members
        self._kept = kept or state.StateStore()
        self._numbers = self._kept.rows("design_number", int)
        self.files = self._kept.rows("design_file", tuple[str, bytes])
        self._made: seeding.Data | None = None
        self._own: frozenset[str] = frozenset()
        self._making = asyncio.Lock()
        self._admitted: dict[str, records.User] = {}

    async def ready(self) -> None:
        """Make the data, if nobody has before. Whoever else comes meanwhile waits for the same."""
        async with self._making:
            if self._made is None:
                self._made = await self._opened()

    async def _opened(self) -> seeding.Data:
        """What is kept, or all of it new. That is kept at once when it is whole, for others keep theirs meanwhile."""
        data = seeding.opened(self._kept)
        if not len(data.workspaces):
            new = seeding.Data()
            for _ in seeding.seeded(new, self.catalog, self._seed, self._clock.now()):
                await asyncio.sleep(0)
            with self._kept.transaction():
                seeding.copied(new, data)
        # A company's own are in its workspace only, members in all of them, and who has gone in none.
        self._own = frozenset(one.id for one in data.users if len(one.workspace_ids) == 1)
        self._admitted = {
            one.id: msgspec.structs.replace(one, workspace_ids=(), group_ids=())
            for one in data.users
            if len(one.workspace_ids) > 1
        }
        return data

    @property
    def data(self) -> seeding.Data:
        """All tables, with everybody in them who may sign in now. Raises RuntimeError before they are made."""
        if self._made is None:
            raise RuntimeError("design data has not been made")
        members = {member.id: member for member in self._members() if member.id not in self._own}
        if members != self._admitted:
            self._admit(members, self._made)
        return self._made

    def now(self) -> str:
        """The time, as records have it."""
        return moments.written(self._clock.now())

    def new_id(self, kind: str) -> str:
        """An id that no record has."""
        self._numbers["last"] = number = self._numbers.get("last", 0) + 1
        return choices.ident(self._seed, "made", kind, number)

    def keep(self, name: str, content: bytes) -> str:
        """Keep a file; its id."""
        id_ = self.new_id("file")
        self.files[id_] = (name, content)
        return id_

    def _admit(self, members: dict[str, records.User], data: seeding.Data) -> None:
        """Who has gone is in no workspace any more, but still the one who wrote what is written."""
        workspaces = tuple(data.workspaces)
        for gone in self._admitted.keys() - members:
            data.users.put(self._admitted[gone])
        for member in members.values():
            data.users.put(
                msgspec.structs.replace(
                    member,
                    workspace_ids=tuple(one.id for one in workspaces),
                    group_ids=tuple(one.groups[0].id for one in workspaces),
                )
            )
        self._admitted = members
