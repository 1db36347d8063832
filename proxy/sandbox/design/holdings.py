"""The data of one sandbox's design services, and what they need to change it: the time, new ids, the people.

Made at the first question that is asked, because most who start a sandbox never ask one.
"""

from functools import cached_property

import msgspec

from proxy.kit import clock as clocks
from proxy.sandbox.catalog import store
from proxy.sandbox.design import choices, moments, records, seeding
from proxy.sandbox.state import kept as state


class Holdings:
    """`members` says who may sign in: they are in every workspace, whenever they come. `files` are the name and the
    content of what was uploaded or made, by id."""

    def __init__(
        self,
        catalog: store.Catalog,
        seed: int,
        clock: clocks.Clock,
        members: seeding.Members,
        *,
        kept: state.Kept | None = None,
    ) -> None:
        self.catalog, self._seed, self._clock, self._members = catalog, seed, clock, members
        self._kept = kept or state.Kept()
        self._numbers = self._kept.rows("design_number", int)
        self.files = self._kept.rows("design_file", tuple[str, bytes])

    @cached_property
    def _made(self) -> seeding.Data:
        return seeding.opened(self._kept, self.catalog, self._seed, self._clock.now())

    @property
    def data(self) -> seeding.Data:
        """All tables, with everybody in them who may sign in now."""
        data = self._made
        for member in self._members():
            if data.users.get(member.id) is None:
                data.users.put(self._admitted(member, data))
        return data

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

    @staticmethod
    def _admitted(member: records.User, data: seeding.Data) -> records.User:
        workspaces = tuple(data.workspaces)
        return msgspec.structs.replace(
            member,
            workspace_ids=tuple(one.id for one in workspaces),
            group_ids=tuple(one.groups[0].id for one in workspaces),
        )
