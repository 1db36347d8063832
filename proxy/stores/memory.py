"""Store in the memory of one process, lost when it ends: for trials and tests."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from proxy.kit.clock import Clock
from proxy.kit.windows import Window, Windows
from proxy.stores.protocols import (
    BATCH_SECONDS,
    DAY,
    MONTH,
    EntryUsage,
    ExhaustedQuota,
    LedgerEntry,
    ReservationRecord,
    Settlement,
)
from proxy.telemetry.callers import DAY_SECONDS, Caller, CallerCount, CallerSeen


class MemoryStore:
    """Store in dictionaries. Nothing is awaited, so every operation is atomic by itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[str, Windows] = {}
        self._once: dict[str, float] = {}
        self._tokens: dict[str, tuple[str, float]] = {}
        self._cooldowns: dict[str, tuple[str, float]] = {}
        self._locks: dict[str, tuple[str, float]] = {}
        self._booked: dict[LedgerEntry, list[int]] = defaultdict(lambda: [0, 0])
        self._settled: dict[str, int] = defaultdict(int)
        self._reservations: dict[str, ReservationRecord] = {}
        self._uncertain: dict[str, ReservationRecord] = {}
        self._leases: dict[str, float] = {}
        self._exhausted: dict[str, ExhaustedQuota] = {}
        self._notes: dict[str, dict[str, str]] = defaultdict(dict)
        self._callers: dict[Caller, CallerSeen] = {}
        self._counts: dict[tuple[int, Caller], CallerCount] = {}

    async def take(self, key: str, windows: Sequence[Window]) -> float:
        if key not in self._windows:
            self._windows[key] = Windows(windows, self._clock)
        return self._windows[key].try_take()

    async def claim_once(self, key: str, seconds: float) -> bool:
        now = self._clock.now()
        # A time further ahead than `seconds` was written before the clock was set back: it does not count.
        if now < self._once.get(key, 0.0) <= now + seconds:
            return False
        self._once[key] = now + seconds
        return True

    async def token(self, key: str) -> tuple[str, float] | None:
        stored = self._tokens.get(key)
        return stored if stored and stored[1] > self._clock.now() else None

    async def keep_token(self, key: str, token: str, expires: float) -> None:
        self._tokens[key] = token, expires

    async def drop_token(self, key: str, token: str) -> None:
        if key in self._tokens and self._tokens[key][0] == token:
            del self._tokens[key]

    async def cooldown(self, key: str) -> str | None:
        reason, until = self._cooldowns.get(key, ("", 0.0))
        return reason if until > self._clock.now() else None

    async def start_cooldown(self, key: str, reason: str, until: float) -> None:
        self._cooldowns[key] = reason, until

    async def lock(self, name: str, owner: str, seconds: float) -> bool:
        holder, until = self._locks.get(name, (owner, 0.0))
        if holder != owner and until > self._clock.now():
            return False
        self._locks[name] = owner, self._clock.now() + seconds
        return True

    async def unlock(self, name: str, owner: str) -> None:
        if self._locks.get(name, ("", 0.0))[0] == owner:
            del self._locks[name]

    async def reserve(self, reservations: Sequence[ReservationRecord]) -> list[LedgerEntry | None]:
        return [self._reserve(reservation) for reservation in reservations]

    async def settle(self, settlement: Settlement) -> None:
        # A settlement that is sent again, because its confirmation was lost, is booked once.
        if settlement.sequence <= self._settled[settlement.owner]:
            return
        self._settled[settlement.owner] = settlement.sequence
        for id_ in settlement.reservations:
            self._reservations.pop(id_, None)
            # Of an owner whose lease had ended, but that is still alive: its real usage replaces the worst case.
            if overdue := self._uncertain.pop(id_, None):
                self._add_uncertain(overdue, -overdue.parts)
        for entry, used, uncertain in settlement.increments:
            self._booked[entry][0] += used
            self._booked[entry][1] += uncertain

    def journal(self, owner: str) -> None:  # noqa: ARG002 - nothing here is slow, or durable
        return None

    async def adjust(self, entry: LedgerEntry, used: int, uncertain: int) -> None:
        before = self._booked[entry]
        # Never less than before: upstream's count may lag behind what this service has just used.
        self._booked[entry] = [max(used, before[0]), max(0, before[1] - uncertain)]

    async def heartbeat(self, owner: str, seconds: float) -> None:
        now = self._clock.now()
        self._leases[owner] = now + seconds
        self._leases = {name: until for name, until in self._leases.items() if until > now}
        for reservation in [each for each in self._reservations.values() if each.owner not in self._leases]:
            self._uncertain[reservation.id] = self._reservations.pop(reservation.id)
            self._add_uncertain(reservation, reservation.parts)

    async def check_writable(self) -> None:
        """Do nothing: memory is always writable."""

    async def usage(self, entries: Sequence[LedgerEntry]) -> list[EntryUsage]:
        return [self._usage(entry) for entry in entries]

    async def all_usage(self) -> list[EntryUsage]:
        return await self.usage(sorted(self._booked))

    async def prune(self, days: int, months: int) -> None:
        periods: dict[tuple[str, int], list[LedgerEntry]] = defaultdict(list)
        # Names of days and months sort as their dates do; the length of a name tells days from months.
        for entry in sorted(self._booked, reverse=True):
            periods[entry.account, len(entry.period)].append(entry)
        for (_, length), entries in periods.items():
            for entry in entries[{DAY: days, MONTH: months}.get(length, len(entries)) :]:
                if not self._reserved(entry):
                    del self._booked[entry]

    async def mark_exhausted(self, quota: ExhaustedQuota) -> None:
        self._exhausted[quota.account] = quota

    async def clear_exhausted(self, account: str) -> None:
        self._exhausted.pop(account, None)

    async def exhausted_quotas(self) -> list[ExhaustedQuota]:
        return [quota for quota in self._exhausted.values() if quota.until > self._clock.now()]

    async def put_note(self, kind: str, owner: str, text: str) -> None:
        self._notes[kind][owner] = text

    async def notes(self, kind: str) -> dict[str, str]:
        return dict(self._notes[kind])

    async def drop_note(self, kind: str, owner: str) -> None:
        self._notes[kind].pop(owner, None)

    async def drop_notes(self, kind: str) -> None:
        self._notes[kind].clear()

    async def add_callers(self, batch: str, seen: Sequence[CallerSeen], counts: Sequence[CallerCount]) -> None:
        # Each batch leaves a mark, and nothing else would delete it.
        now = self._clock.now()
        self._once = {key: until for key, until in self._once.items() if until > now}
        if await self.claim_once(f"callers:{batch}", BATCH_SECONDS):
            for caller, first, last in seen:
                _, before, after = self._callers.get(caller, (caller, first, last))
                self._callers[caller] = CallerSeen(caller, min(before, first), max(after, last))
            for count in counts:
                place = count.day, count.caller
                earlier = self._counts.get(place)
                self._counts[place] = earlier.plus(count.requests, count.errors, count.parts) if earlier else count

    async def callers(self) -> list[CallerSeen]:
        return list(self._callers.values())

    async def caller_usage(self, first_day: int, last_day: int) -> tuple[list[CallerSeen], list[CallerCount]]:
        seen, counts = dict(self._callers), list(self._counts.values())
        # In a thread: there may be hundreds of thousands.
        wanted = await asyncio.to_thread(
            lambda: [count for count in counts if first_day <= count.day <= last_day and count.caller in seen]
        )
        return list(seen.values()), wanted

    async def prune_callers(self, first_day: int) -> None:
        self._counts = {place: count for place, count in self._counts.items() if count.day >= first_day}
        since = first_day * DAY_SECONDS
        self._callers = {caller: seen for caller, seen in self._callers.items() if seen.last >= since}

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    def _reserve(self, reservation: ReservationRecord) -> LedgerEntry | None:
        # Sent again, because the confirmation was lost: it is held once.
        if reservation.id in self._reservations:
            return None
        for entry, limit in reservation.limits:
            if sum(self._booked.get(entry, (0, 0))) + self._reserved(entry) + reservation.parts > limit:
                return entry
        self._reservations[reservation.id] = reservation
        return None

    def _add_uncertain(self, reservation: ReservationRecord, parts: int) -> None:
        for entry in reservation.entries:
            self._booked[entry][1] = max(0, self._booked[entry][1] + parts)

    def _usage(self, entry: LedgerEntry) -> EntryUsage:
        used, uncertain = self._booked.get(entry, (0, 0))
        return EntryUsage(entry, used, uncertain, self._reserved(entry))

    def _reserved(self, entry: LedgerEntry) -> int:
        return sum(
            each.parts for each in self._reservations.values() if any(limit.entry == entry for limit in each.limits)
        )
