"""Model of the store for test_money.py: what each operation does to usage, reservations, results and parts.

Plain Python values and no code of the store. A reservation stays for ever here; who asks for one later than the store
keeps it does not ask the model.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

from proxy.store.protocol import (
    Account,
    Begin,
    Busy,
    Finish,
    Found,
    Hit,
    Outcome,
    Refused,
    Reserved,
    Result,
    Usage,
)

DAY, EMPTY, FRESH, STORED = 86_400.0, 300.0, 84_600.0, 86_400.0
Pair = tuple[str, str]  # account and period; scope and query key; scope and uid
KINDS = ("used", "uncertain", "reserved")


@dataclasses.dataclass
class Reservation:
    """`counted`: accounts and periods where its parts are, as `reserved` or `uncertain`. Its parts are for a list from
    `start` on. Others may have taken its key since."""

    worker: str
    deadline: float
    begun: list[Pair]
    counted: list[Pair]
    key: Pair | None = None
    parts: int = 0
    start: int = 0
    state: str = "open"
    is_taken: bool = False
    is_lowered: bool = True


@dataclasses.dataclass
class Part:
    id: str | None
    features: int
    fetched: float
    body: bytes


@dataclasses.dataclass
class Model:
    """The store's state; its operations are called at a time in the name of a worker."""

    worker: str = ""
    now: float = 0.0
    counts: Counter[tuple[Pair, str]] = dataclasses.field(default_factory=Counter)
    reservations: dict[str, Reservation] = dataclasses.field(default_factory=dict)
    results: dict[Pair, Result] = dataclasses.field(default_factory=dict)
    parts: dict[Pair, Part] = dataclasses.field(default_factory=dict)

    def usage(self) -> list[Usage]:
        pairs = sorted({pair for (pair, _), parts in self.counts.items() if parts})
        return [Usage(*pair, *(self.counts[pair, kind] for kind in KINDS)) for pair in pairs]

    def view(self, begins: Sequence[Begin]) -> tuple[list[Usage], list[Outcome]]:
        """Return usage, and the quotes of begins with different keys and no accounts."""
        return self.usage(), [self._look_up(begin) for begin in begins]

    def begin(self, begins: Sequence[Begin]) -> list[Outcome]:
        return [self._begin(begin) for begin in begins]

    def _begin(self, begin: Begin) -> Outcome:
        """Reserve, unless it is sent again and has the key already, perhaps for a shorter rest than is missing now."""
        outcome, want, key = self._look_up(begin), begin.want, (begin.scope, begin.want.key)
        if not isinstance(outcome, Reserved):
            return outcome
        start = outcome.stored.asked if outcome.stored else 0
        if self._holder(key) == begin.id:
            return Busy() if start < self.reservations[begin.id].start else outcome
        parts = want.parts * (want.end - start)
        if begin.id in self.reservations:
            return Busy()
        if refused := self._refused(begin.accounts, parts):
            return refused
        for other in self._expired(key):
            other.is_taken = True
        pairs = [(account.account, account.period) for account in begin.accounts]
        ends = self.now + begin.seconds
        self.reservations[begin.id] = Reservation(self.worker, ends, pairs, pairs, key, parts, start)
        self._add(pairs, "reserved", parts)
        return outcome

    def _expired(self, key: Pair | None) -> list[Reservation]:
        return [each for each in self.reservations.values() if each.key == key and each.state == "expired"]

    def _holder(self, key: Pair) -> str | None:
        """Return the id of the open reservation of a key."""
        return next((id for id, each in self.reservations.items() if each.key == key and each.state == "open"), None)

    def _refused(self, accounts: Iterable[Account], parts: int) -> Refused | None:
        for account, period, limit in accounts:
            left = (limit or 0) - sum(self.counts[(account, period), kind] for kind in KINDS)
            if limit is not None and 0 < parts > left:
                return Refused(
                    Account(account, period, limit), max(left, 0), self.counts[(account, period), "reserved"]
                )
        return None

    def finish(self, finishes: Sequence[Finish]) -> None:
        for finish in finishes:
            begin = finish.begin
            unknown = Reservation("", 0.0, [], [], (begin.scope, begin.want.key), is_taken=True)
            reservation = self.reservations.setdefault(begin.id, unknown)
            if reservation.state != "done":
                self._finish(finish, reservation)

    def _finish(self, finish: Finish, reservation: Reservation) -> None:
        """Parts are used in the periods of now, and uncertain in those of the reservation that are others."""
        present = [(account.account, account.period) for account in finish.accounts]
        self._add(reservation.counted, KINDS[1 + (reservation.state == "open")], -reservation.parts)
        self._add(present, "used", finish.used)
        self._add(present, "uncertain", finish.uncertain)
        self._add(
            [pair for pair in reservation.begun if pair not in present], "uncertain", finish.used + finish.uncertain
        )
        is_taken, reservation.state = reservation.is_taken, "done"
        for other in self._expired(reservation.key):
            self._lower(other, reservation, finish)
        for result in finish.results:
            if (finish.begin.scope, result.key) == reservation.key and not is_taken:
                self._store(finish.begin.scope, finish.features, result)

    def _lower(self, other: Reservation, reservation: Reservation, finish: Finish) -> None:
        """What had the key and has expired today may have cost no more than what came now, of no less. A rest of which
        nothing came may be that of another list."""
        came, end = finish.used + finish.uncertain, [each for each in finish.results if each.hits <= each.asked]
        if reservation.start and not finish.results:
            other.is_lowered = False
        is_covered = reservation.start <= other.start and (end or other.parts <= reservation.parts)
        is_today = self.now < other.deadline + STORED
        if is_covered and is_today and other.is_lowered and (finish.results or finish.used) and other.parts > came:
            self._add(other.counted, "uncertain", came - other.parts)
            other.parts = came

    def _store(self, scope: str, features: int, result: Result) -> None:
        """What a beginning has from the future, after the clock was set back, is of now."""
        result = result._replace(fetched=min(result.fetched, self.now))
        self.results[scope, result.key] = result
        for hit, body, part_id in zip(result.items, result.bodies, result.part_ids, strict=True):
            old = self.parts.get((scope, hit.uid))
            if old is None or not self._stays(old, features, result.fetched):
                self.parts[scope, hit.uid] = Part(part_id, features, result.fetched, body)

    def _stays(self, part: Part, features: int, fetched: float) -> bool:
        """Return whether a stored part is fresh and better than another one: more fields, or newer with the same."""
        better = part.fetched > fetched if part.features == features else features | part.features == part.features
        return better and self.now - FRESH <= part.fetched <= self.now

    def _look_up(self, begin: Begin) -> Outcome:
        want, stored, holder = begin.want, self._stored(begin), self._holder((begin.scope, begin.want.key))
        if holder != begin.id and stored and (stored.asked >= want.end or stored.hits <= stored.asked):
            return Found(stored)
        return Reserved(stored) if holder in (None, begin.id) else Busy()

    def _stored(self, begin: Begin) -> Result | None:
        want = begin.want
        fresh = {
            uid: part
            for (scope, uid), part in self.parts.items()
            if scope == begin.scope
            and begin.features | part.features == part.features
            and self._is_fresh(begin, part.fetched)
        }
        for uid, part in fresh.items():
            if want.part is not None and want.part in (uid, part.id):
                return Result(want.key, want.end, 1, (Hit(uid),), (part.body,), (part.id,), None, part.fetched)
        result = self.results.get((begin.scope, want.key))
        if result is None or not self._is_fresh(
            begin, result.fetched, empty=not result.items and result.details is None
        ):
            return None
        if any(hit.uid not in fresh for hit in result.items):
            return None
        parts = [fresh[hit.uid] for hit in result.items]
        return result._replace(
            bodies=tuple(part.body for part in parts),
            part_ids=tuple(part.id for part in parts),
            fetched=min([result.fetched, *(part.fetched for part in parts)]),
        )

    def _is_fresh(self, begin: Begin, fetched: float, *, empty: bool = False) -> bool:
        return max(begin.fresh_from, self.now - EMPTY if empty else 0.0) <= fetched <= self.now

    def sweep(self) -> None:
        self._expire(each for each in self.reservations.values() if each.deadline < self.now)
        self.results = {key: each for key, each in self.results.items() if abs(each.fetched - self.now) < STORED}
        self.parts = {key: each for key, each in self.parts.items() if abs(each.fetched - self.now) < STORED}

    def end_worker(self, worker: str | None) -> None:
        """Expire the reservations of a process, or of all."""
        self._expire(each for each in self.reservations.values() if worker in (None, each.worker))

    def _expire(self, reservations: Iterable[Reservation]) -> None:
        for reservation in reservations:
            if reservation.state == "open":
                self._add(reservation.counted, "reserved", -reservation.parts)
                self._add(reservation.counted, "uncertain", reservation.parts)
                reservation.state, reservation.deadline = "expired", max(reservation.deadline, self.now)

    def set_usage(self, account: Account, used: int) -> None:
        pair = account.account, account.period
        self.counts[pair, "used"], self.counts[pair, "uncertain"] = used, 0
        for reservation in self.reservations.values():
            if reservation.state == "expired":
                reservation.begun = reservation.counted = [each for each in reservation.counted if each != pair]

    def forget(self) -> int:
        parts, self.parts, self.results = len(self.parts), {}, {}
        return parts

    def _add(self, pairs: Iterable[Pair], kind: str, parts: int) -> None:
        for pair in pairs:
            self.counts[pair, kind] += parts
