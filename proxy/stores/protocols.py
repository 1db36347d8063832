"""Protocols of the shared state of workers, restarts and machines: one for each purpose, and the values they
exchange.

Every operation is atomic over all workers and machines that use the same store. Times are seconds since 1970, by the
clock that the store was made with. Every operation raises errors.StoreUnavailable where the store cannot be reached.
Memory, SQLite and Redis implement all of them (`Store`); tests/service/stores holds the three to one contract.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

# The length of its name says what kind a period is, so that a store needs no other field.
DAY = 10  # characters of the name of a day, such as 2026-11-21
MONTH = 7  # of a month, such as 2026-11


class LedgerEntry(NamedTuple):
    """Name of one entry: a quota account (`demo`, `demo/erp`) and a period (`2026-11-21`, `2026-11`, `lifetime`)."""

    account: str
    period: str


class EntryUsage(NamedTuple):
    """Usage of a ledger entry: parts returned, parts that may have been billed, parts reserved by open requests."""

    entry: LedgerEntry
    used: int
    uncertain: int
    reserved: int


class EntryGroup:
    """Entries that a request is booked on together. Made once for each client and day, and compared by identity: on
    the way of every request, hashing six names would cost more than the booking."""

    # No __eq__: identity is the point, see above.
    __slots__ = ("_json", "entries")

    def __init__(self, entries: tuple[LedgerEntry, ...]) -> None:
        self.entries = entries
        self._json: bytes | None = None

    @property
    def json(self) -> bytes:
        """The entries as a JSON list of pairs, encoded once."""
        if self._json is None:
            self._json = msgspec.json.encode(self.entries)
        return self._json


class QuotaLimit(NamedTuple):
    """Limit on the parts used in a ledger entry."""

    entry: LedgerEntry
    limit: int


class ReservationRecord(NamedTuple):
    """Worst-case cost of a request in parts, held against all its limits until it is settled.

    `owner` is the worker's id, `entries` are those that the request is booked on. A record without limits holds no
    quota: it says what the request may cost, so that a worker that dies leaves no usage unbooked.
    """

    id: str
    owner: str
    parts: int
    limits: tuple[QuotaLimit, ...]
    entries: tuple[LedgerEntry, ...]


class UsageIncrement(NamedTuple):
    """Increment of a ledger entry by a settlement: parts that were returned, and parts that may have been billed."""

    entry: LedgerEntry
    used: int
    uncertain: int


class Settlement(NamedTuple):
    """Result of some requests of an owner: their reservations are released, their usage is added to the ledger.

    An owner numbers its settlements from 1 in `sequence`, and sends them in that order. One that is sent again, because
    its confirmation was lost, is booked once.
    """

    owner: str
    sequence: int
    reservations: tuple[str, ...]
    increments: tuple[UsageIncrement, ...]


class ExhaustedQuota(NamedTuple):
    """A quota that upstream has refused as used up, until a moment."""

    account: str
    until: float
    reason: str


class Journal(Protocol):
    """Usage of one owner that is durable before the store has it, and its intents.

    An intent is the most that a request in flight may cost. Intents that are open when the owner dies are booked as
    uncertain usage by the next process that opens the store.
    """

    def open_intent(self, parts: int, group: EntryGroup) -> int:
        """Record that a request is about to be sent; return the intent's number. Raises OSError: not recorded."""

    def close_intent(self, number: int) -> None:
        """Remove an intent: its request is booked."""

    def hold_usage(self, number: int, group: EntryGroup, parts: int) -> None:
        """Replace an intent with the usage of its request, which is only in memory otherwise, until `release_held`."""

    def release_held(self) -> None:
        """Remove what is held: the store has it."""

    def record_usage(self, sequence: int, group: EntryGroup, used: int, uncertain: int) -> None:
        """Record usage that settlement `sequence` will hold. Raises OSError: not recorded."""

    def settled(self, sequence: int) -> None:
        """Remove what was recorded for a settlement: the store has it."""

    def close(self) -> None:
        """Leave what is not settled to the next process that opens the store."""


class LedgerStore(Protocol):
    """Usage ledger: used, uncertain and reserved parts."""

    async def reserve(self, reservations: Sequence[ReservationRecord]) -> list[LedgerEntry | None]:
        """Hold reservations in the order given: for each return None, or the first entry whose limit it exceeds.

        One that is held already is held once.
        """

    async def settle(self, settlement: Settlement) -> None:
        """Book a settlement. A reservation that has become uncertain usage is taken off that usage again."""

    def journal(self, owner: str) -> Journal | None:
        """Open a journal that is faster than the store and as durable; None where there is none."""

    async def raise_used(self, entry: LedgerEntry, used: int) -> None:
        """Raise the used parts of an entry to at least `used`."""

    async def set_usage(self, entry: LedgerEntry, used: int) -> None:
        """Replace the used parts of an entry, end its uncertain usage and its account's exhausted quota, and note this
        with a new mark (USAGE_SET)."""

    async def heartbeat(self, owner: str, seconds: float) -> None:
        """Extend the lease of the owner's reservations. Those of owners whose lease has ended become uncertain usage.

        An owner sends a heartbeat before its first reservation.
        """

    async def usage(self, entries: Sequence[LedgerEntry]) -> list[EntryUsage]:
        """Return the usage of these entries, in the order given."""

    async def all_usage(self) -> list[EntryUsage]:
        """Return every entry that usage was booked on, by account and period."""

    async def prune(self, days: int, months: int) -> None:
        """Delete old entries. For each account the last `days` days and `months` months with usage are retained
        whatever the clock says, and its lifetime, and entries with open reservations."""


class ExhaustedQuotaStore(Protocol):
    """Quotas that upstream has refused as used up."""

    async def mark_exhausted(self, quota: ExhaustedQuota) -> None:
        """Store an exhausted quota, replacing that of the same account."""

    async def clear_exhausted(self, account: str) -> None:
        """Delete the exhausted quota of an account."""

    async def exhausted_quotas(self) -> list[ExhaustedQuota]:
        """Return the quotas that are exhausted now."""


USAGE_SET = "usage set"  # kind of the notes of `set_usage`; the owner is account and period


class NoteStore(Protocol):
    """Short texts by kind and owner, such as the features that a plan has shown."""

    async def put_note(self, kind: str, owner: str, text: str) -> None:
        """Store an owner's note, replacing its last one of this kind."""

    async def notes(self, kind: str) -> dict[str, str]:
        """Return the notes of a kind by owner."""

    async def drop_note(self, kind: str, owner: str) -> None:
        """Delete an owner's note of a kind."""


class CacheRecord(NamedTuple):
    """Entry of the shared cache. `key` is a digest of 16 bytes, `application` a name that entries are counted and
    deleted by; `stored` and `until` are when it was stored and when it is deleted. By its `aliases`, other keys, it is
    found where none of them has a newer entry of its own; the last entry with an alias counts."""

    key: bytes
    application: str
    stored: float
    until: float
    content: bytes
    aliases: Sequence[bytes] = ()


CACHE_SHARE = 4
"""An entry that would take more than this part of the shared cache is not stored: it would replace too many others."""


class CacheLookup(NamedTuple):
    """Result of looking one key up: the content of its entry, None without one, and whether the caller claimed it."""

    content: bytes | None
    claimed: bool


class CacheUsage(NamedTuple):
    """Entries of one application in the shared cache, and when the oldest and the newest of them were stored."""

    application: str
    entries: int
    bytes: int
    oldest: float
    newest: float


class CacheStore(Protocol):
    """Entries of the shared response cache, and claims on keys whose results are being fetched.

    Apart from `Store`, with a file or connections of its own: trouble with it must not reach the ledger. An owner's
    claims end when it stores or releases them, and some time after its death: at once in a file, after the lease in
    Redis.
    """

    async def look_up(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup]:
        """Return the entry of each key or alias. With `claim`, claim the keys without an entry stored since
        `fresh_from`, unless another owner has claimed them."""

    def look_up_now(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup] | None:
        """Do the same without waiting; None where that is not possible."""

    async def put(self, records: Sequence[CacheRecord]) -> None:
        """Store entries and release the claims on them; delete the oldest beyond the limit. Without records, delete
        all that have expired."""

    async def renew(self, keys: Sequence[bytes]) -> None:
        """Extend the lease of claims whose owner still works on them."""

    async def release(self, keys: Sequence[bytes]) -> None:
        """Release claims whose results are not stored."""

    async def cache_usage(self) -> list[CacheUsage]:
        """Return the usage of every application with entries, by name."""

    async def clear(self, application: str | None) -> int:
        """Delete the entries of an application, or all; return how many."""

    async def aclose(self) -> None:
        """Release all claims, and close connections and files."""


class Store(
    LedgerStore,
    ExhaustedQuotaStore,
    NoteStore,
    Protocol,
):
    """One store for all purposes."""

    async def check_writable(self) -> None:
        """Write to the store, to check that it is writable. Raises StoreUnavailable."""

    async def aclose(self) -> None:
        """Close connections and files."""
