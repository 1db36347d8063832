"""Usage ledger of this process: books usage in the store, and caches the usage of entries.

Bookings that arrive while a transaction is running go together into the next one, summed up by entry. Settlements are
numbered, so that one whose confirmation was lost is sent again and booked once. While the store is unavailable, usage
is kept in memory, in no more room than there are entries, and written when the store is back.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import structlog

from proxy import errors
from proxy.stores.protocols import (
    USAGE_SET,
    EntryGroup,
    EntryUsage,
    Journal,
    LedgerEntry,
    ReservationRecord,
    Settlement,
    Store,
    UsageIncrement,
)

SETTLE_SECONDS = 0.2  # from a record in the journal to the settlement that holds it

T = TypeVar("T")
R = TypeVar("R")

log = structlog.get_logger()


class RequestUsage(NamedTuple):
    """Usage of one request: the entries it counts on, its reservation ("" for none), and its intent in the journal."""

    group: EntryGroup
    used: int
    uncertain: int
    reservation: str
    intent: int | None = None


class _Refresh(NamedTuple):
    """Request to read the usage of entries, after everything that was booked before it. `is_proof`: the store has just
    been written to, so that it is available if this succeeds, too."""

    entries: tuple[LedgerEntry, ...]
    is_proof: bool


_WRITE = RequestUsage(EntryGroup(()), 0, 0, "")  # booked to write what the journal holds


class Ledger:
    """Usage ledger as one process books and sees it. `owner` identifies this process in the store."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner
        self._journal = _UsageJournal(store.journal(owner))
        self._timer: asyncio.TimerHandle | None = None
        self._flush: asyncio.Task[None] | None = None
        self._writing: GroupCommit[RequestUsage | _Refresh, None] = GroupCommit("bookings", self._commit)
        self._reserving: GroupCommit[ReservationRecord, LedgerEntry | None] = GroupCommit(
            "reservations", self._reserve_group
        )
        self._cached: dict[LedgerEntry, EntryUsage] = {}
        self._unwritten: dict[EntryGroup, RequestUsage] = {}
        self._released: list[str] = []
        self._unconfirmed: Settlement | None = None
        self._sequence = 0
        self._awaited: set[str] = set()
        self._available = True
        self._marks: Mapping[str, str] = {}  # of usage that was set, as last seen
        self.changes = 0
        """Number of changes of the usage that is known here."""

    @property
    def is_available(self) -> bool:
        """Whether the last access to the store has succeeded."""
        return self._available

    def usage(self, entry: LedgerEntry) -> EntryUsage:
        """Return the usage of an entry as known here: up to a refresh old for other processes, exact for this one."""
        return self._cached.get(entry) or EntryUsage(entry, 0, 0, 0)

    def counted(self, entry: LedgerEntry) -> int:
        """Return the parts that count against a limit, used or uncertain, as known here."""
        usage = self._cached.get(entry)
        return 0 if usage is None else usage.used + usage.uncertain

    async def reserve(self, reservation: ReservationRecord) -> LedgerEntry | None:
        """Hold a reservation: return None, or the entry whose limit it exceeds. Raises StoreUnavailable."""
        self._awaited.add(reservation.id)
        try:
            return await self._reserving.run(reservation)
        except BaseException:  # the caller gets no reservation to settle: release it in case the store holds it
            if reservation.id in self._awaited:
                self._awaited.remove(reservation.id)
            else:
                self._released.append(reservation.id)
            raise

    def open_intent(self, parts: int, group: EntryGroup) -> int | None:
        """Record in the journal what a request may cost, before it is sent; return None where that is not possible."""
        return self._journal.open_intent(parts, group)

    async def record(self, reservation: ReservationRecord) -> bool:
        """Store a reservation without limits, where there is no journal for it. Return whether the store has it."""
        # Known to be unavailable: a timeout for each request would delay them all. A refresh finds out when it is back.
        if not self._available:
            return False
        try:
            return await self.reserve(reservation) is None
        except errors.StoreUnavailable as error:
            self.store_failed(error)
            return False

    async def book(self, usage: RequestUsage) -> None:
        """Book usage durably: in the journal or in the store, or in memory until the store is available.

        Usage with a reservation is written at once, so that other requests can use the rest of the reservation.
        """
        if usage.reservation or not self._record_in_journal(usage):
            await self._writing.run(usage)

    async def refresh(self, entries: Sequence[LedgerEntry], *, is_proof: bool = False) -> None:
        """Write what is not written yet, and read the usage of these entries. `is_proof`: the caller has just written
        to the store; that it can be read proves nothing where its disk is read-only."""
        await self._writing.run(_Refresh(tuple(entries), is_proof))

    async def stored_usage(self, entries: Sequence[LedgerEntry]) -> list[EntryUsage]:
        """Read the usage of entries from the store. Raises StoreUnavailable."""
        return await self._store.usage(entries)

    def store_failed(self, error: errors.StoreUnavailable) -> None:
        """Note that the store is unavailable. Logged once, until it is available."""
        if self._available:
            self._available = False
            log.error("store became unavailable", exc_info=error)

    async def close(self) -> None:
        """Write all pending usage, and close the journal."""
        if self._timer is not None:
            self._timer.cancel()
        if self._flush is not None:
            await asyncio.wait((self._flush,))
        await self.refresh(())
        await self._reserving.close()
        await self._writing.close()
        self._journal.close(unsettled=bool(self._unconfirmed or self._unwritten))

    def _record_in_journal(self, usage: RequestUsage) -> bool:
        """Record usage in the journal, to be settled soon; return whether it is recorded."""
        # The next settlement will hold it; the number ties the record to it, so that a replay books neither twice.
        if not self._journal.record_usage(self._sequence + 1, usage):
            return False
        self._count(usage)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._write_soon)
        return True

    def _write_soon(self) -> None:
        self._timer = None
        self._flush = asyncio.create_task(self._writing.run(_WRITE), name="settlement of journal")

    async def _reserve_group(self, reservations: Sequence[ReservationRecord]) -> Sequence[LedgerEntry | None]:
        ids = {reservation.id for reservation in reservations}
        try:
            return await self._store.reserve(reservations)
        finally:
            self._released += ids - self._awaited  # their callers have gone
            self._awaited -= ids

    async def _commit(self, group: Sequence[RequestUsage | _Refresh]) -> Sequence[None]:
        """Write one group after another, so that a refresh reads exactly the usage that was booked before it."""
        refreshes = [each for each in group if isinstance(each, _Refresh)]
        for each in group:
            if isinstance(each, RequestUsage):
                self._count(each)
                self._journal.add_unrecorded(each)
        # While the store is down only refreshes try it, once a second; bookings just add to memory.
        if self._available or refreshes:
            try:
                is_proven = await self._write() or any(refresh.is_proof for refresh in refreshes)
                self._journal.clear_unrecorded()
                for refresh in refreshes:
                    stored = await self._store.usage(refresh.entries)
                    known, self._cached = self._cached, {usage.entry: usage for usage in stored}
                    self.changes += 1
                    for usage in self._unwritten.values():  # recorded in the journal meanwhile
                        self._add(usage)
                    await self._restore(known)
            except errors.StoreUnavailable as error:
                self.store_failed(error)
            else:
                if is_proven and not self._available:
                    self._available = True
                    log.info("store became available")
        return [None] * len(group)

    async def _restore(self, known: Mapping[LedgerEntry, EntryUsage]) -> None:
        """Raise entries to what was known: a Redis that came back without its data would begin each limit anew. What
        `v3bridge usage --set` has replaced is not lost."""
        stored = self._cached.copy()
        lost = [before for entry, before in known.items() if entry in stored and stored[entry].used < before.used]
        if not lost:
            return
        marks, self._marks = self._marks, await self._store.notes(USAGE_SET)
        was_set = {name for name, mark in self._marks.items() if marks.get(name) != mark}
        lost = [each for each in lost if f"{each.entry.account} {each.entry.period}" not in was_set]
        self._cached |= {before.entry: before for before in lost}  # found again where the store fails
        for entry, used, uncertain, _ in lost:
            restored = used + max(0, uncertain - stored[entry].uncertain)
            log.error("usage lost by store", quota_account=entry.account, period=entry.period, restored=restored)
            await self._store.raise_used(entry, restored)

    def _count(self, usage: RequestUsage) -> None:
        if usage.reservation:
            self._released.append(usage.reservation)
        if not (usage.used or usage.uncertain):
            return
        before = self._unwritten.get(usage.group)
        if before is None:
            self._unwritten[usage.group] = usage
        else:
            used, uncertain = before.used + usage.used, before.uncertain + usage.uncertain
            self._unwritten[usage.group] = RequestUsage(usage.group, used, uncertain, "")
        self._add(usage)

    def _add(self, usage: RequestUsage) -> None:
        """Add to the cached usage."""
        self.changes += 1
        for entry in usage.group.entries:
            if cached := self._cached.get(entry):
                used, uncertain = cached.used + usage.used, cached.uncertain + usage.uncertain
                self._cached[entry] = EntryUsage(entry, used, uncertain, cached.reserved)

    async def _write(self) -> bool:
        """Send first the settlement that was not confirmed, then all usage that has come since; return whether there
        was any."""
        unconfirmed = self._unconfirmed
        if unconfirmed is not None:
            await self._settle(unconfirmed)
        if settlement := self._collect():
            await self._settle(settlement)
        return unconfirmed is not None or settlement is not None

    async def _settle(self, settlement: Settlement) -> None:
        # Kept until the store confirms it: an error leaves open whether it was booked.
        self._unconfirmed = settlement
        await self._store.settle(settlement)
        self._unconfirmed = None
        self._journal.settled(settlement.sequence)

    def _collect(self) -> Settlement | None:
        """Make a settlement of all usage that is not in the store yet, summed up by entry."""
        if not (self._unwritten or self._released):
            return None
        sums: dict[LedgerEntry, list[int]] = defaultdict(lambda: [0, 0])
        for usage in self._unwritten.values():
            for entry in usage.group.entries:
                sums[entry][0] += usage.used
                sums[entry][1] += usage.uncertain
        increments = tuple(UsageIncrement(entry, used, uncertain) for entry, (used, uncertain) in sums.items())
        # A settlement that is sent again keeps its number, by which the store books it once.
        self._sequence += 1
        settlement = Settlement(self._owner, self._sequence, tuple(self._released), increments)
        self._unwritten.clear()
        self._released.clear()
        return settlement


class _UsageJournal:
    """Journal of the store, if it has one, and the usage that is only in memory because the journal could not be
    written."""

    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._failing: set[str] = set()  # kinds of records whose last write failed
        self._unrecorded: dict[LedgerEntry, int] = defaultdict(int)

    def open_intent(self, parts: int, group: EntryGroup) -> int | None:
        """Return the number of the intent; None where there is no journal, or it cannot be written."""
        if self._journal is None:
            return None
        try:
            intent = self._journal.open_intent(parts, group)
        except OSError as error:
            self._write_failed("intent", error)
            return None
        self._failing.discard("intent")
        return intent

    def record_usage(self, sequence: int, usage: RequestUsage) -> bool:
        """Record usage for settlement `sequence`, and close its intent; return whether it is recorded."""
        if self._journal is None:
            return False
        try:
            if usage.used or usage.uncertain:
                self._journal.record_usage(sequence, usage.group, usage.used, usage.uncertain)
                self._failing.discard("usage")
        except OSError as error:
            self._write_failed("usage", error)
            return False
        if usage.intent is not None:
            self._journal.close_intent(usage.intent)
        return True

    def add_unrecorded(self, usage: RequestUsage) -> None:
        """Note usage that is only in memory until the next settlement; as an intent it outlives the process."""
        if self._journal is not None and usage.intent is not None:
            self._journal.hold_usage(usage.intent, usage.group, usage.used + usage.uncertain)
        for entry in usage.group.entries:
            self._unrecorded[entry] += usage.used + usage.uncertain

    def clear_unrecorded(self) -> None:
        """Note that the store has everything that was only in memory."""
        if self._journal is not None:
            self._journal.release_held()
        self._unrecorded.clear()

    def settled(self, sequence: int) -> None:
        """Remove what was recorded for a settlement: the store has it."""
        if self._journal is not None:
            self._journal.settled(sequence)

    def close(self, *, unsettled: bool) -> None:
        """Leave unsettled usage in the journal to the next process that opens the store; log usage that is lost."""
        if self._journal is not None:
            if unsettled:
                log.warning("unsettled usage left in journal")
            self._journal.close()
        if lost := {f"{entry.account} {entry.period}": parts for entry, parts in self._unrecorded.items() if parts}:
            log.error("usage booking failed", parts=lost)

    def _write_failed(self, kind: str, error: OSError) -> None:
        """Log once until the journal can be written again: on a full disk intents succeed, and usage does not."""
        if not self._failing:
            log.error("journal write failed", exc_info=error)
        self._failing.add(kind)


class GroupCommit(Generic[T, R]):
    """Group commit: items that arrive while a transaction is running are committed together in the next one.

    A lone caller's item is committed at once, in its own task. `commit` is given items in the order they came, and
    returns a result for each. Its error is the error of all.
    """

    def __init__(self, name: str, commit: Callable[[Sequence[T]], Awaitable[Sequence[R]]]) -> None:
        self._name = name
        self._commit = commit
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._task: asyncio.Task[None] | None = None
        self._busy = False

    async def run(self, item: T) -> R:
        """Commit an item, and return its result. Cancelling the caller does not undo the commit."""
        if not self._busy:
            # Without a task: most items come alone.
            return await self._run_alone(item)
        result: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result))
        return await result

    async def close(self) -> None:
        """Wait until every group is committed. A lone item is its caller's to wait for."""
        while self._task is not None:
            await asyncio.wait((self._task,))

    async def _run_alone(self, item: T) -> R:
        self._busy = True
        try:
            return (await self._commit([item]))[0]
        finally:
            # Even after an error or a cancellation: items that arrived meanwhile wait for this.
            self._next()

    def _next(self) -> None:
        self._busy = bool(self._waiting)
        self._task = asyncio.create_task(self._run_group(), name=self._name) if self._busy else None

    async def _run_group(self) -> None:
        group, self._waiting = self._waiting, []
        try:
            results = await self._commit([item for item, _ in group])
        except Exception as error:  # raised to those who wait
            for _, waiting in group:
                if not waiting.done():
                    waiting.set_exception(error)
                    waiting.exception()  # marks it as retrieved: asyncio logs no error if the caller is gone
        else:
            for (_, waiting), result in zip(group, results, strict=True):
                if not waiting.done():
                    waiting.set_result(result)
        self._next()
