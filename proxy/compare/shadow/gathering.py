"""A worker's place among the notes in the store: which one is its own, and what it is told there.

A place is held by a lease. Who takes that of a worker which is no more goes on from its note, so that there are never
more notes than workers at a time, and nothing is counted twice or lost.
"""

from itertools import count

import msgspec

from proxy.compare import shadow_results
from proxy.compare.shadow_results import GATHERED, Control, Note
from proxy.stores.protocols import Store

LEASE_SECONDS = 30.0


class Gathering:
    """`owner` is this process: no other, before or after, has the same. Raises StoreUnavailable throughout."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner
        self._place: int | None = None
        self._control = Control(True, "")

    async def look(self) -> Control:
        """What every worker is told. The place is held on to; where it was lost, `resume` finds another."""
        self._control = await shadow_results.control(self._store)
        if self._place is not None and not await self._hold(self._place):
            self._place = None
        return self._control

    @property
    def placed(self) -> bool:
        """Whether there is a place."""
        return self._place is not None

    async def resume(self) -> str:
        """The JSON of what the place's note holds of this epoch, empty where that is nothing; a place is taken."""
        if self._place is None:
            self._place = await self._free()
        text = (await self._store.notes(GATHERED)).get(str(self._place))
        return shadow_results.of_epoch(text, self._control.epoch)

    async def put(self, tally: str) -> None:
        """Note the JSON of all that was gathered in this place, the note's own included; without a place, nothing."""
        if self._place is not None:
            note = Note(self._control.epoch, msgspec.Raw(tally.encode()))
            await self._store.put_note(GATHERED, str(self._place), msgspec.json.encode(note).decode())

    async def close(self) -> None:
        """Leave the place to others at once."""
        if self._place is not None:
            await self._store.unlock(_lock(self._place), self._owner)
            self._place = None

    async def _free(self) -> int:
        for place in count(1):
            if await self._hold(place):
                return place
        raise AssertionError

    async def _hold(self, place: int) -> bool:
        return await self._store.lock(_lock(place), self._owner, LEASE_SECONDS)


def _lock(place: int) -> str:
    return f"shadow:{place}"
