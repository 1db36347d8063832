"""What shadows have gathered, in the store that all workers share, and the switch that all of them look at.

Read by commands and reports. Each worker keeps one note of all that it has added up (`shadow/gathering.py`); a reader
adds up the notes. To forget is to begin a new epoch: what a worker notes of an older one is not read.
"""

import secrets

import msgspec

from proxy.compare.tally import Tally
from proxy.stores.base import Store

GATHERED = "shadow"  # kinds of notes
CONTROL = "shadow control"
SWITCH, EPOCH = "switch", "epoch"  # notes of CONTROL


class Control(msgspec.Struct, frozen=True):
    """What every worker is told: whether to compare, and which epoch it is."""

    on: bool
    epoch: str


class Note(msgspec.Struct, frozen=True):
    """A worker's tally, as JSON, of an epoch."""

    epoch: str
    tally: msgspec.Raw


async def control(store: Store) -> Control:
    """As it stands; on, unless somebody has switched it off. Raises StoreUnavailable, as all here does."""
    notes = await store.notes(CONTROL)
    return Control(notes.get(SWITCH) != "off", notes.get(EPOCH, ""))


async def switch(store: Store, on: bool) -> None:
    """Every worker follows within a second or two."""
    await store.put_note(CONTROL, SWITCH, "on" if on else "off")


async def forget(store: Store) -> None:
    """Begin anew: what was gathered is gone."""
    await store.put_note(CONTROL, EPOCH, secrets.token_hex(8))
    await store.drop_notes(GATHERED)


async def read(store: Store) -> Tally | None:
    """All that workers have gathered, those that are no more included; None where that is nothing."""
    epoch = (await control(store)).epoch
    notes = [msgspec.json.decode(text, type=Note) for text in (await store.notes(GATHERED)).values()]
    found: Tally | None = None
    for note in notes:
        if note.epoch == epoch:
            tally = msgspec.json.decode(note.tally, type=Tally)
            if found is None:
                found = tally
            else:
                found.merge(tally)
    return found
