"""Model of the store for test_money.py: what `begin`, `finish` and the others do to usage, reservations and results.

Plain Python values, one state in memory, and no code of the store. What a client sees of it is `view`.
"""

import dataclasses
import time
from collections.abc import Iterable, Sequence
from typing import Literal

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
    Selection,
    Usage,
    Want,
)

DAY, EMPTY, FRESH, STALE = 86_400.0, 300.0, 84_600.0, 86_400.0
Key = tuple[str, str]  # scope and query key
Entry = tuple[str, str]  # account and period


@dataclasses.dataclass
class Row:
    """Reservation. `uncertain` are the entries where its parts are uncertain since it expired."""

    worker: str
    entries: list[Entry]
    deadline: float
    state: Literal["open", "done", "expired"] = "open"
    parts: int = 0
    keys: list[Key] = dataclasses.field(default_factory=list)
    uncertain: list[Entry] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Part:
    """Stored part."""

    id: str | None
    selection: Selection
    fetched: float
    body: bytes


@dataclasses.dataclass
class Model:
    """The store's state; its operations are called in the name of a worker at a time."""

    worker: str = ""
    now: float = 0.0
    counts: dict[Entry, list[int]] = dataclasses.field(default_factory=dict)  # used, uncertain, reserved
    rows: dict[str, Row] = dataclasses.field(default_factory=dict)
    results: dict[Key, Result] = dataclasses.field(default_factory=dict)
    parts: dict[Key, Part] = dataclasses.field(default_factory=dict)  # by scope and uid

    def usage(self) -> list[Usage]:
        return sorted(Usage(*entry, *counts) for entry, counts in self.counts.items() if any(counts))

    def view(self, begins: Sequence[Begin]) -> tuple[list[Usage], list[list[Outcome]]]:
        """Return usage, and the quote of each begin alone."""
        return self.usage(), [[self._look_up(begin, want) for want in begin.wants] for begin in begins]

    def begin(self, begins: Sequence[Begin]) -> list[list[Outcome]]:
        return [self._begin(begin) for begin in begins]

    def _begin(self, begin: Begin) -> list[Outcome]:
        entries = [(account.account, account.period) for account in begin.accounts]
        repeated = begin.id in self.rows
        row = self.rows.get(begin.id) or Row(self.worker, entries, self.now + begin.seconds)
        outcomes: list[Outcome] = []
        for want in begin.wants:
            outcome = self._look_up(begin, want)
            if isinstance(outcome, Reserved) and (begin.scope, want.key) not in row.keys:
                parts = want.parts * (want.end - (outcome.stored.asked if outcome.stored else 0))
                if refused := self._refused(begin.accounts, parts):
                    outcome = refused
                elif repeated:
                    outcome = Busy()
                else:
                    self._take(row, (begin.scope, want.key), parts)
                    self.rows[begin.id] = row
            outcomes.append(outcome)
        return outcomes

    def finish(self, finishes: Sequence[Finish]) -> None:
        for finish in finishes:
            self._finish(finish)

    def _finish(self, finish: Finish) -> None:
        row = self.rows.get(finish.id)
        if row is not None and row.state == "done":
            return
        present = [(account.account, account.period) for account in finish.accounts]
        if row is None:
            row = self.rows[finish.id] = Row("", [], self.now)
        elif row.state == "open":
            self._add(row.entries, 2, -row.parts)
        else:
            self._add(row.uncertain, 1, -row.parts)
        self._book(row.entries, present, finish)
        for result in finish.results:
            if (finish.scope, result.key) in row.keys:
                self._store(finish.scope, finish.selection, result)
        row.state, row.keys, row.deadline = "done", [], max(row.deadline, self.now + 60)

    def sweep(self) -> None:
        self._expire(row for row in self.rows.values() if row.deadline < self.now)
        self.rows = {id: row for id, row in self.rows.items() if self._is_needed(row)}
        for results in (self.results, self.parts):
            for key in [key for key, each in results.items() if abs(each.fetched - self.now) >= STALE]:
                del results[key]

    def _is_needed(self, row: Row) -> bool:
        """Return whether a finish may still come: until the periods of what has expired end, a day at least."""
        day = time.strftime("%Y-%m-%d", time.gmtime(self.now))
        lasts = any(period in (day, day[:7], "lifetime") for _, period in row.entries)
        return row.deadline > self.now - (DAY if row.state == "expired" else 0) or (row.state == "expired" and lasts)

    def end_worker(self, worker: str | None) -> None:
        """Expire the reservations of a process, or of all."""
        self._expire(row for row in self.rows.values() if worker in (None, row.worker))

    def set_usage(self, account: Account, used: int) -> None:
        entry = (account.account, account.period)
        self.counts.setdefault(entry, [0, 0, 0])[:2] = [used, 0]
        for row in self.rows.values():
            row.uncertain = [each for each in row.uncertain if each != entry]

    def forget(self, scope: str | None) -> int:
        gone = [key for key in self.parts if scope in (None, key[0])]
        self.parts = {key: part for key, part in self.parts.items() if key not in gone}
        self.results = {key: result for key, result in self.results.items() if scope not in (None, key[0])}
        return len(gone)

    def _look_up(self, begin: Begin, want: Want) -> Outcome:
        key = (begin.scope, want.key)
        stored = self._stored(begin, want)
        if stored and (stored.asked >= want.end or stored.hits <= stored.asked):
            return Found(stored)
        busy = any(key in row.keys and row.state == "open" for id, row in self.rows.items() if id != begin.id)
        return Busy() if busy else Reserved(stored)

    def _stored(self, begin: Begin, want: Want) -> Result | None:
        parts = {uid: part for (scope, uid), part in self.parts.items() if scope == begin.scope}
        fresh = {
            uid: part
            for uid, part in parts.items()
            if part.selection.serves(begin.selection) and begin.fresh_from <= part.fetched <= self.now
        }
        for uid, part in fresh.items():
            if uid == want.uid or (part.id is not None and part.id == want.part_id):
                return Result(want.key, want.end, 1, (Hit(uid),), (part.body,), (part.id,), None, part.fetched)
        result = self.results.get((begin.scope, want.key))
        if result is None or not begin.fresh_from <= result.fetched <= self.now:
            return None
        if not result.items and result.fetched < self.now - EMPTY:
            return None
        if any(hit.uid not in fresh for hit in result.items):
            return None
        shown = [fresh[hit.uid] for hit in result.items]
        return result._replace(bodies=tuple(p.body for p in shown), part_ids=tuple(p.id for p in shown))

    def _refused(self, accounts: Iterable[Account], parts: int) -> Refused | None:
        for account in accounts:
            if account.limit is not None and parts:
                left = account.limit - sum(self.counts.get((account.account, account.period), ()))
                if left < parts:
                    return Refused(account, max(left, 0))
        return None

    def _take(self, row: Row, key: Key, parts: int) -> None:
        for other in self.rows.values():
            other.keys = [each for each in other.keys if each != key]
        row.keys.append(key)
        row.parts += parts
        self._add(row.entries, 2, parts)

    def _expire(self, rows: Iterable[Row]) -> None:
        for row in [row for row in rows if row.state == "open"]:
            self._add(row.entries, 2, -row.parts)
            self._add(row.entries, 1, row.parts)
            row.state, row.uncertain = "expired", row.entries

    def _book(self, begun: list[Entry], present: list[Entry], finish: Finish) -> None:
        """Book in the periods of now; in those of the reservation that have ended the parts are uncertain."""
        self._add(present, 0, finish.used)
        self._add(present, 1, finish.uncertain)
        self._add([entry for entry in begun if entry not in present], 1, finish.used + finish.uncertain)

    def _add(self, entries: Iterable[Entry], column: int, parts: int) -> None:
        for entry in entries:
            self.counts.setdefault(entry, [0, 0, 0])[column] += parts

    def _store(self, scope: str, selection: Selection, result: Result) -> None:
        self.results[scope, result.key] = result
        ids = result.part_ids or (None,) * len(result.items)
        for hit, body, part_id in zip(result.items, result.bodies, ids, strict=True):
            old = self.parts.get((scope, hit.uid))
            if old is None or not self._stays(old, selection, result.fetched):
                self.parts[scope, hit.uid] = Part(part_id, selection, result.fetched, body)

    def _stays(self, part: Part, selection: Selection, fetched: float) -> bool:
        """Return whether a stored part is fresh and better than another one: more fields, or newer with the same."""
        better = part.fetched > fetched if part.selection == selection else part.selection.serves(selection)
        return better and self.now - FRESH <= part.fetched <= self.now
