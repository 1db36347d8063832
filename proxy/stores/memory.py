"""The store of one process, gone when it ends: for trying out, and for tests."""

from collections import defaultdict
from collections.abc import Sequence

from proxy.kit.clock import Clock
from proxy.kit.windows import Window, Windows
from proxy.stores.protocols import DAY, MONTH, EntryUsage, ExhaustedQuota, LedgerEntry, ReservationRecord, Settlement


class MemoryStore:
    """Dicts. Nothing is awaited, so every operation is atomic by itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[str, Windows] = {}
        self._tokens: dict[str, tuple[str, float]] = {}
        self._locks: dict[str, tuple[str, float]] = {}
        self._booked: dict[LedgerEntry, list[int]] = defaultdict(lambda: [0, 0])
        self._settled: dict[str, int] = defaultdict(int)
        self._claims: dict[str, ReservationRecord] = {}
        self._uncertain: dict[str, ReservationRecord] = {}
        self._owners: dict[str, float] = {}
        self._closures: dict[str, ExhaustedQuota] = {}
        self._notes: dict[str, dict[str, str]] = defaultdict(dict)

    async def take(self, key: str, windows: Sequence[Window]) -> float:
        if key not in self._windows:
            self._windows[key] = Windows(windows, self._clock)
        return self._windows[key].try_take()

    async def token(self, key: str) -> tuple[str, float] | None:
        kept = self._tokens.get(key)
        return kept if kept and kept[1] > self._clock.now() else None

    async def keep_token(self, key: str, token: str, expires: float) -> None:
        self._tokens[key] = token, expires

    async def drop_token(self, key: str, token: str) -> None:
        if key in self._tokens and self._tokens[key][0] == token:
            del self._tokens[key]

    async def lock(self, name: str, owner: str, seconds: float) -> bool:
        holder, until = self._locks.get(name, (owner, 0.0))
        if holder != owner and until > self._clock.now():
            return False
        self._locks[name] = owner, self._clock.now() + seconds
        return True

    async def unlock(self, name: str, owner: str) -> None:
        if self._locks.get(name, ("", 0.0))[0] == owner:
            del self._locks[name]

    async def reserve(self, claims: Sequence[ReservationRecord]) -> list[LedgerEntry | None]:
        return [self._reserve(claim) for claim in claims]

    async def settle(self, settlement: Settlement) -> None:
        if settlement.sequence <= self._settled[settlement.owner]:
            return
        self._settled[settlement.owner] = settlement.sequence
        for claim in settlement.claims:
            self._claims.pop(claim, None)
            if late := self._uncertain.pop(claim, None):
                self._doubt(late, -late.parts)
        for line, used, doubtful in settlement.bookings:
            self._booked[line][0] += used
            self._booked[line][1] += doubtful

    def journal(self, owner: str) -> None:  # noqa: ARG002 - nothing here is slow, or lasting
        return None

    async def adjust(self, line: LedgerEntry, used: int, doubtful: int) -> None:
        before = self._booked[line]
        self._booked[line] = [max(used, before[0]), max(0, before[1] - doubtful)]

    async def alive(self, owner: str, seconds: float) -> None:
        now = self._clock.now()
        self._owners[owner] = now + seconds
        self._owners = {name: until for name, until in self._owners.items() if until > now}
        for claim in [claim for claim in self._claims.values() if claim.owner not in self._owners]:
            self._uncertain[claim.id] = self._claims.pop(claim.id)
            self._doubt(claim, claim.parts)

    async def check_writable(self) -> None:
        """Memory always is."""

    async def states(self, lines: Sequence[LedgerEntry]) -> list[EntryUsage]:
        return [self._state(line) for line in lines]

    async def usage(self) -> list[EntryUsage]:
        return await self.states(sorted(self._booked))

    async def prune(self, days: int, months: int) -> None:
        periods: dict[tuple[str, int], list[LedgerEntry]] = defaultdict(list)
        for line in sorted(self._booked, reverse=True):
            periods[line.account, len(line.period)].append(line)
        for (_, length), lines in periods.items():
            for line in lines[{DAY: days, MONTH: months}.get(length, len(lines)) :]:
                if not self._reserved(line):
                    del self._booked[line]

    async def close_account(self, closure: ExhaustedQuota) -> None:
        self._closures[closure.account] = closure

    async def reopen(self, account: str) -> None:
        self._closures.pop(account, None)

    async def closures(self) -> list[ExhaustedQuota]:
        return [closure for closure in self._closures.values() if closure.until > self._clock.now()]

    async def put_note(self, kind: str, owner: str, text: str) -> None:
        self._notes[kind][owner] = text

    async def notes(self, kind: str) -> dict[str, str]:
        return dict(self._notes[kind])

    async def drop_notes(self, kind: str) -> None:
        self._notes[kind].clear()

    async def aclose(self) -> None:
        """Nothing to let go of."""

    def _reserve(self, claim: ReservationRecord) -> LedgerEntry | None:
        if claim.id in self._claims:
            return None
        for line, limit in claim.budgets:
            if sum(self._booked.get(line, (0, 0))) + self._reserved(line) + claim.parts > limit:
                return line
        self._claims[claim.id] = claim
        return None

    def _doubt(self, claim: ReservationRecord, parts: int) -> None:
        for line in claim.lines:
            self._booked[line][1] = max(0, self._booked[line][1] + parts)

    def _state(self, line: LedgerEntry) -> EntryUsage:
        used, doubtful = self._booked.get(line, (0, 0))
        return EntryUsage(line, used, doubtful, self._reserved(line))

    def _reserved(self, line: LedgerEntry) -> int:
        return sum(claim.parts for claim in self._claims.values() if any(b.line == line for b in claim.budgets))
