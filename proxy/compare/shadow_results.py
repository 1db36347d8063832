"""What shadows have gathered, in the store that all workers share, and the switch that all of them look at.

Read by commands and reports. Each worker keeps one note of all that it has added up (`shadow/gathering.py`); a reader
adds up the notes. To forget is to begin a new epoch: what a worker notes of an older one is not read.
"""

import secrets

import msgspec

from proxy.compare.tally import Tally
from proxy.stores.protocols import Store

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
    notes = await store.notes(GATHERED)
    tallies = [tally for owner in sorted(notes) if (tally := _tally(notes[owner], epoch)) is not None]
    for other in tallies[1:]:
        tallies[0].merge(other)
    return tallies[0] if tallies else None


def of_epoch(text: str | None, epoch: str) -> str:
    """The JSON of a note's tally; empty where there is none of this epoch, or none that this version can read."""
    return "" if text is None or _tally(text, epoch) is None else bytes(_note(text).tally).decode()


def _tally(text: str, epoch: str) -> Tally | None:
    try:
        note = _note(text)
        return msgspec.json.decode(note.tally, type=Tally) if note.epoch == epoch else None
    except msgspec.DecodeError:  # of a version that counts otherwise
        return None


def _note(text: str) -> Note:
    return msgspec.json.decode(text, type=Note)
