"""Results of shadowing in the shared store, and the switch that all workers read.

Each worker saves one note with its tally, in a slot that it holds by a lease; readers add the notes up. A worker that
takes over an expired slot continues its tally, so nothing is counted twice or lost. A reset begins a new epoch: tallies
of an older one are ignored.
"""

import secrets
from itertools import count

import msgspec

from proxy.stores.protocols import NoteStore, Store

TALLIES = "shadow-2"  # kinds of notes
CONTROL = "shadow control"
SWITCH, EPOCH = "switch", "epoch"  # keys of the CONTROL notes


class ShadowControl(msgspec.Struct, frozen=True):
    """State shared by all workers: whether shadowing is on, and the current epoch."""

    on: bool
    epoch: str


class TallyNote(msgspec.Struct, frozen=True):
    """Tally of one worker as JSON, with its epoch."""

    epoch: str
    tally: msgspec.Raw


async def control(store: NoteStore) -> ShadowControl:
    """Read the shared state; the default is on. Raises StoreUnavailable, as all functions here do."""
    notes = await store.notes(CONTROL)
    return ShadowControl(notes.get(SWITCH) != "off", notes.get(EPOCH, ""))


async def switch(store: NoteStore, on: bool) -> None:
    """Switch shadowing on or off; workers follow within two seconds."""
    await store.put_note(CONTROL, SWITCH, "on" if on else "off")


async def reset(store: NoteStore) -> None:
    """Discard the results by beginning a new epoch."""
    await store.put_note(CONTROL, EPOCH, secrets.token_hex(8))
    await store.drop_notes(TALLIES)


async def tallies(store: NoteStore) -> list[msgspec.Raw]:
    """Read the tallies of all workers, including workers that have ended, as JSON."""
    epoch = (await control(store)).epoch
    notes = await store.notes(TALLIES)
    read = (msgspec.json.decode(notes[owner], type=TallyNote) for owner in sorted(notes))
    return [note.tally for note in read if note.epoch == epoch]


LEASE_SECONDS = 30.0


class ResultSlot:
    """Slot of a worker's note, held by a lease. `owner` identifies this process uniquely. Raises StoreUnavailable
    throughout."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner
        self._place: int | None = None
        self._control = ShadowControl(True, "")

    async def refresh(self) -> ShadowControl:
        """Read the shared state and renew the lease; a lost slot is replaced by `resume`."""
        self._control = await control(self._store)
        if self._place is not None and not await self._hold(self._place):
            self._place = None
        return self._control

    @property
    def placed(self) -> bool:
        return self._place is not None

    async def resume(self) -> str:
        """Take a slot if necessary, and return the tally in its note as JSON; empty where there is none of this
        epoch."""
        if self._place is None:
            self._place = await self._free()
        text = (await self._store.notes(TALLIES)).get(str(self._place))
        note = None if text is None else msgspec.json.decode(text, type=TallyNote)
        return bytes(note.tally).decode() if note is not None and note.epoch == self._control.epoch else ""

    async def put(self, tally: str) -> None:
        """Save the whole tally of this slot, as JSON; without a slot, do nothing."""
        if self._place is not None:
            note = TallyNote(self._control.epoch, msgspec.Raw(tally.encode()))
            await self._store.put_note(TALLIES, str(self._place), msgspec.json.encode(note).decode())

    async def close(self) -> None:
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
