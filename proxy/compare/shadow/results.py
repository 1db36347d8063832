"""Results of shadowing in the store that all workers share, and the switch that they all read.

Each worker saves one note with its tally, in a slot that it holds by a lease; readers add the notes up. A worker that
takes the slot of one that is gone continues its tally, so nothing is counted twice or lost. To forget is to begin a new
epoch: tallies of an older one are not read.
"""

import secrets
from itertools import count

import msgspec

from proxy.compare.judging.tally import Tally
from proxy.stores.protocols import Store

TALLIES = "shadow-2"  # kinds of notes
CONTROL = "shadow control"
SWITCH, EPOCH = "switch", "epoch"  # notes of CONTROL


class ShadowControl(msgspec.Struct, frozen=True):
    """What every worker is told: whether to compare, and which epoch it is."""

    on: bool
    epoch: str


class TallyNote(msgspec.Struct, frozen=True):
    """A worker's tally, as JSON, of an epoch."""

    epoch: str
    tally: msgspec.Raw


async def control(store: Store) -> ShadowControl:
    """As it stands; on, unless somebody has switched it off. Raises StoreUnavailable, as all here does."""
    notes = await store.notes(CONTROL)
    return ShadowControl(notes.get(SWITCH) != "off", notes.get(EPOCH, ""))


async def switch(store: Store, on: bool) -> None:
    """Every worker follows within a second or two."""
    await store.put_note(CONTROL, SWITCH, "on" if on else "off")


async def forget(store: Store) -> None:
    """Begin anew: what was gathered is gone."""
    await store.put_note(CONTROL, EPOCH, secrets.token_hex(8))
    await store.drop_notes(TALLIES)


async def read(store: Store) -> Tally | None:
    """All that workers have gathered, those that are no more included; None where that is nothing."""
    epoch = (await control(store)).epoch
    notes = await store.notes(TALLIES)
    tallies = [tally for owner in sorted(notes) if (tally := _tally(notes[owner], epoch)) is not None]
    for other in tallies[1:]:
        tallies[0].merge(other)
    return tallies[0] if tallies else None


def tally_of_epoch(text: str | None, epoch: str) -> str:
    """The JSON of a note's tally; empty where there is none of this epoch, or none that this version can read."""
    return "" if text is None or _tally(text, epoch) is None else bytes(_note(text).tally).decode()


def _tally(text: str, epoch: str) -> Tally | None:
    try:
        note = _note(text)
        return msgspec.json.decode(note.tally, type=Tally) if note.epoch == epoch else None
    except msgspec.DecodeError:  # of a version that counts otherwise
        return None


def _note(text: str) -> TallyNote:
    return msgspec.json.decode(text, type=TallyNote)


LEASE_SECONDS = 30.0


class ResultSlot:
    """`owner` is this process: no other, before or after, has the same. Raises StoreUnavailable throughout."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner
        self._place: int | None = None
        self._control = ShadowControl(True, "")

    async def look(self) -> ShadowControl:
        """What every worker is told. The place is held on to; where it was lost, `resume` finds another."""
        self._control = await control(self._store)
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
        text = (await self._store.notes(TALLIES)).get(str(self._place))
        return tally_of_epoch(text, self._control.epoch)

    async def put(self, tally: str) -> None:
        """Note the JSON of all that was gathered in this place, the note's own included; without a place, nothing."""
        if self._place is not None:
            note = TallyNote(self._control.epoch, msgspec.Raw(tally.encode()))
            await self._store.put_note(TALLIES, str(self._place), msgspec.json.encode(note).decode())

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
