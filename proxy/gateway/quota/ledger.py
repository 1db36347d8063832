"""What was spent, on its way into the store and as this process knows it. Used by quota.py, which knows the plans.

Bookings that arrive while one is being written go together into the next transaction, summed up by line. They are
numbered, so that one whose answer was lost is sent again and booked once. While the store cannot be reached they are
kept here, in no more room than there are lines, and written when it can.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import structlog

from proxy import errors
from proxy.kit.group_commit import GroupCommit
from proxy.stores.protocols import (
    EntryUsage,
    Journal,
    LedgerEntry,
    ReservationRecord,
    Settlement,
    Store,
    UsageIncrement,
)

PAUSE = 0.2  # seconds from a note beside the store to the settlement that holds it

log = structlog.get_logger()


class RequestUsage(NamedTuple):
    """What one call came to, on which lines, the claim that it held ("" for none), and its intent in the journal."""

    lines: tuple[LedgerEntry, ...]
    used: int
    doubtful: int
    claim: str
    intent: int | None = None


NOTHING = RequestUsage((), 0, 0, "")  # more than what was noted


class Look(NamedTuple):
    """A wish to see how these lines stand, after everything that was wanted before it."""

    lines: tuple[LedgerEntry, ...]


class JournaledUsage:
    """The journal of a worker, if its store has one, and what is only in memory because the journal did not take it."""

    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._writable = True
        self._intents: list[int] = []
        self._missed: dict[LedgerEntry, int] = defaultdict(int)

    def open_intent(self, parts: int, lines: tuple[LedgerEntry, ...]) -> int | None:
        """The number of the intent; None where there is no journal, or it cannot be written."""
        if self._journal is None:
            return None
        try:
            intent = self._journal.open_intent(parts, lines)
        except OSError as error:
            self._refused(error)
            return None
        self._writable = True
        return intent

    def note(self, sequence: int, cost: RequestUsage) -> bool:
        """Whether the cost is noted for the settlement of that number. Its intent is over then."""
        if self._journal is None:
            return False
        try:
            if cost.used or cost.doubtful:
                self._journal.note(sequence, cost.lines, cost.used, cost.doubtful)
                self._writable = True
        except OSError as error:
            self._refused(error)
            return False
        if cost.intent is not None:
            self._journal.close_intent(cost.intent)
        return True

    def missed(self, cost: RequestUsage) -> None:
        """A cost is only in memory until the next settlement; its intent stays open until then."""
        if cost.intent is not None:
            self._intents.append(cost.intent)
        for line in cost.lines:
            self._missed[line] += cost.used + cost.doubtful

    def caught_up(self) -> None:
        """Everything that was only in memory is in the store."""
        if self._journal is not None:
            for intent in self._intents:
                self._journal.close_intent(intent)
        self._intents.clear()
        self._missed.clear()

    def settled(self, sequence: int) -> None:
        """The store has the settlement of that number."""
        if self._journal is not None:
            self._journal.settled(sequence)

    def close(self, *, unsettled: bool) -> None:
        """Leave what is not settled to whoever opens the store next, and say what nobody will find."""
        if self._journal is not None:
            if unsettled:
                log.warning("unsettled usage left in journal")
            self._journal.close()
        if missed := {f"{line.account} {line.period}": parts for line, parts in self._missed.items() if parts}:
            log.error("usage booking failed", parts=missed)

    def _refused(self, error: OSError) -> None:
        """Said once, until it can be written."""
        if self._writable:
            self._writable = False
            log.error("journal write failed", exc_info=error)


class Ledger:
    """The one way to the store's lines and claims. `owner` is this process, as the store knows it."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner
        self._journal = JournaledUsage(store.journal(owner))
        self._timer: asyncio.TimerHandle | None = None
        self._flush: asyncio.Task[None] | None = None
        self._writing: GroupCommit[RequestUsage | Look, None] = GroupCommit("bookings", self._commit)
        self._claiming: GroupCommit[ReservationRecord, LedgerEntry | None] = GroupCommit("claims", self._hold)
        self._standing: dict[LedgerEntry, EntryUsage] = {}
        self._since: dict[int, RequestUsage] = {}
        self._returned: list[str] = []
        self._unsure: Settlement | None = None
        self._sequence = 0
        self._unanswered: set[str] = set()
        self._reachable = True

    def standing(self, line: LedgerEntry) -> EntryUsage:
        """How a line stands, as far as is known here: a moment old for what others spend, exact for its own."""
        return self._standing.get(line) or EntryUsage(line, 0, 0, 0)

    def spent(self, line: LedgerEntry) -> int:
        """Parts used or in doubt, as far as is known here."""
        state = self._standing.get(line)
        return 0 if state is None else state.used + state.doubtful

    async def hold(self, claim: ReservationRecord) -> LedgerEntry | None:
        """None where the claim is held, or the line that has no room for it. Raises StoreUnavailable."""
        self._unanswered.add(claim.id)
        try:
            return await self._claiming.run(claim)
        except BaseException:  # nobody will settle it: whether it is held or not, it is given back
            if claim.id in self._unanswered:
                self._unanswered.remove(claim.id)
            else:
                self._returned.append(claim.id)
            raise

    def open_intent(self, parts: int, lines: tuple[LedgerEntry, ...]) -> int | None:
        """Record in the journal what a request may cost, before it is sent; None where that cannot be."""
        return self._journal.open_intent(parts, lines)

    async def record(self, claim: ReservationRecord) -> bool:
        """Record a claim without budgets, where there is no journal for it. Whether the store has it."""
        if not self._reachable:
            return False
        try:
            return await self.hold(claim) is None
        except errors.StoreUnavailable as error:
            self.lost(error)
            return False

    async def book(self, cost: RequestUsage) -> None:
        """Lasting when this returns: noted beside the store or written, or kept here until the store can be reached.

        What holds a claim is written at once, so that others can have what is left of it.
        """
        if cost.claim or not self._note(cost):
            await self._writing.run(cost)

    async def look(self, lines: Sequence[LedgerEntry]) -> None:
        """Try again to write what could not be written, and see how these lines stand."""
        await self._writing.run(Look(tuple(lines)))

    async def states(self, lines: Sequence[LedgerEntry]) -> list[EntryUsage]:
        """How lines stand in the store at this moment. Raises StoreUnavailable."""
        return await self._store.states(lines)

    def lost(self, error: errors.StoreUnavailable) -> None:
        """The store cannot be reached. Said once, until it can."""
        if self._reachable:
            self._reachable = False
            log.error("store became unavailable", exc_info=error)

    async def close(self) -> None:
        """Write what is left."""
        if self._timer is not None:
            self._timer.cancel()
        if self._flush is not None:
            await asyncio.wait((self._flush,))
        await self.look(())
        await self._claiming.close()
        await self._writing.close()
        self._journal.close(unsettled=bool(self._unsure or self._since))

    def _note(self, cost: RequestUsage) -> bool:
        """Whether a cost is noted; it is written soon."""
        if not self._journal.note(self._sequence + 1, cost):
            return False
        self._count(cost)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._write_soon)
        return True

    def _write_soon(self) -> None:
        self._timer = None
        self._flush = asyncio.create_task(self._writing.run(NOTHING), name="bookings that were noted")

    async def _hold(self, claims: Sequence[ReservationRecord]) -> Sequence[LedgerEntry | None]:
        ids = {claim.id for claim in claims}
        try:
            return await self._store.reserve(claims)
        finally:
            self._returned += ids - self._unanswered  # their callers have gone
            self._unanswered -= ids

    async def _commit(self, pieces: Sequence[RequestUsage | Look]) -> Sequence[None]:
        """One at a time, so that what is looked up holds exactly what was booked before."""
        looks = [piece for piece in pieces if isinstance(piece, Look)]
        for piece in pieces:
            if isinstance(piece, RequestUsage):
                self._count(piece)
                self._journal.missed(piece)
        if self._reachable or looks:
            try:
                await self._write()
                self._journal.caught_up()
                for look in looks:
                    self._standing = {state.line: state for state in await self._store.states(look.lines)}
                    for cost in self._since.values():  # noted in the meantime
                        self._add(cost)
            except errors.StoreUnavailable as error:
                self.lost(error)
            else:
                self._found()
        return [None] * len(pieces)

    def _count(self, cost: RequestUsage) -> None:
        if cost.claim:
            self._returned.append(cost.claim)
        if not (cost.used or cost.doubtful):
            return
        place = id(cost.lines)  # callers hand in the same tuple each time; to hash it would cost more than all the rest
        before = self._since.get(place)
        if before is None:
            self._since[place] = cost
        else:
            self._since[place] = RequestUsage(cost.lines, before.used + cost.used, before.doubtful + cost.doubtful, "")
        self._add(cost)

    def _add(self, cost: RequestUsage) -> None:
        """To how lines stand here."""
        for line in cost.lines:
            if known := self._standing.get(line):
                self._standing[line] = EntryUsage(
                    line, known.used + cost.used, known.doubtful + cost.doubtful, known.reserved
                )

    async def _write(self) -> None:
        """First what was sent before and not answered, then what has come since; what comes meanwhile is another's."""
        if self._unsure is not None:
            await self._settle(self._unsure)
        if settlement := self._collect():
            await self._settle(settlement)

    async def _settle(self, settlement: Settlement) -> None:
        self._unsure = settlement
        await self._store.settle(settlement)
        self._unsure = None
        self._journal.settled(settlement.sequence)

    def _collect(self) -> Settlement | None:
        """All that is not yet in the store, summed up by line."""
        if not (self._since or self._returned):
            return None
        sums: dict[LedgerEntry, list[int]] = defaultdict(lambda: [0, 0])
        for cost in self._since.values():
            for line in cost.lines:
                sums[line][0] += cost.used
                sums[line][1] += cost.doubtful
        bookings = tuple(UsageIncrement(line, used, doubtful) for line, (used, doubtful) in sums.items())
        self._sequence += 1
        settlement = Settlement(self._owner, self._sequence, tuple(self._returned), bookings)
        self._since.clear()
        self._returned.clear()
        return settlement

    def _found(self) -> None:
        if not self._reachable:
            self._reachable = True
            log.info("store became available")
