"""Store in SQLite: a file for the processes of a machine, or memory for one. Each operation is one transaction."""

import contextlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from proxy import errors
from proxy.kit.clock import Clock
from proxy.kit.windows import Window
from proxy.store import protocol, sqlite_lookup
from proxy.store.protocol import Account, Begin, Finish, Outcome, Result, Seen, Usage
from proxy.store.sqlite_file import Database
from proxy.store.sqlite_lookup import Pair, json_text

DONE_SECONDS = 60.0  # for which a reservation is known at least after its end
EVICTED = 8  # parts that are deleted at a time

P = ParamSpec("P")
R = TypeVar("R")

_ADD_USAGE = """
INSERT INTO usage VALUES (?1, ?2, max(0, ?3), max(0, ?4), max(0, ?5)) ON CONFLICT DO UPDATE SET
    used = used + ?3, uncertain = max(0, uncertain + ?4), reserved = max(0, reserved + ?5)
"""
_EXPIRED_USAGE = """
UPDATE usage SET reserved = max(0, usage.reserved - ended.parts), uncertain = usage.uncertain + ended.parts
FROM (
    SELECT account.value ->> 0 AS account, account.value ->> 1 AS period, sum(parts) AS parts
    FROM reservation, json_each(accounts) AS account WHERE state = 'open' AND {} GROUP BY 1, 2
) AS ended WHERE usage.account = ended.account AND usage.period = ended.period
"""
_STORE_PART = """
INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (scope, uid) DO UPDATE SET id = excluded.id,
    digest = excluded.digest, features = excluded.features, fetched = excluded.fetched, body = excluded.body
WHERE NOT (digest = excluded.digest AND excluded.features & ~features = 0 AND fetched BETWEEN ?8 AND ?9
    AND (features <> excluded.features OR fetched > excluded.fetched))
"""
_STORE_RESULT = """
INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET fetched = excluded.fetched,
    asked = excluded.asked, hits = excluded.hits, items = excluded.items, details = excluded.details
"""
_DELETE_OLD = "DELETE FROM {} WHERE fetched <= ?1 - ?2 OR fetched >= ?1 + ?2"
_DELETE_OLDEST_PARTS = "DELETE FROM part WHERE rowid IN (SELECT rowid FROM part ORDER BY fetched, rowid LIMIT ?)"
_DELETE_OLDER_RESULTS = "DELETE FROM result WHERE fetched < ifnull((SELECT min(fetched) FROM part), 9e999)"
_EXPIRE = "UPDATE reservation SET state = 'expired', deadline = max(deadline, ?) WHERE state = 'open' AND {}"
_END_RESERVATION = """
INSERT INTO reservation VALUES (?, ?, '[]', 0, ?, 'done')
ON CONFLICT DO UPDATE SET state = 'done', deadline = max(deadline, excluded.deadline)
"""
_DELETE_RESERVATIONS = """
DELETE FROM reservation WHERE (state = 'done' AND deadline <= ?) OR (state = 'expired' AND deadline <= ?
    AND NOT EXISTS (SELECT 1 FROM json_each(accounts) AS account, json_each(?) AS period
        WHERE account.value ->> 1 = period.value))
"""
_PUT_VALUE = """
INSERT INTO value VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value, since = excluded.since,
    until = excluded.until
"""
# A value that begins later was written before the clock was set back.
_UNLESS_THERE = "WHERE value.value = excluded.value OR excluded.since < value.since OR excluded.since >= value.until"
_ADD_SEEN = """
INSERT INTO seen VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    requests = requests + excluded.requests, last = max(last, excluded.last)
"""
_DELETE_OLDER_SEEN = """
DELETE FROM seen WHERE rowid IN (SELECT rowid FROM seen WHERE kind = ? ORDER BY last DESC LIMIT -1 OFFSET ?)
"""
_decode_accounts = msgspec.json.Decoder(list[tuple[str, str]]).decode
_decode_times = msgspec.json.Decoder(list[float]).decode


def _transaction(
    work: Callable[Concatenate["SqliteStore", P], R],
) -> Callable[Concatenate["SqliteStore", P], Coroutine[Any, Any, R]]:
    """Make a function of the statements of an operation a method that carries them out in a transaction."""

    async def method(self: "SqliteStore", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._database.transaction(lambda: work(self, *args, **kwargs))

    return method


class SqliteStore:
    """Store in a file or in memory (protocol.Store). Made by `open`."""

    def __init__(self, database: Database, clock: Clock, worker: str, cache_bytes: int) -> None:
        self._database = database
        self._rows = database.rows
        self._clock = clock
        self._worker = worker
        self._cache_bytes = cache_bytes

    @classmethod
    async def open(cls, path: Path | None, clock: Clock, worker: str, cache_bytes: int) -> "SqliteStore":
        """Open the store in a file, which is made where it is missing, or in memory (None). If no other process uses
        it, what is reserved becomes uncertain usage. Raises StoreUnavailable."""
        database = Database(path)
        store = cls(database, clock, worker, cache_bytes)
        try:
            await database.prepare(lambda: store._expire("true"))
        except BaseException:
            await database.aclose()
            raise
        return store

    async def aclose(self) -> None:
        with contextlib.suppress(errors.StoreUnavailable):
            await self.end_worker(self._worker)
        await self._database.aclose()

    async def finish(self, finishes: Sequence[Finish]) -> None:
        try:
            await self._finish(finishes)
        except errors.StoreUnavailable:
            if not any(finish.results for finish in finishes):
                raise
            # The disk may have room for the usage, if not for the results.
            await self._finish([finish._replace(results=()) for finish in finishes])

    @_transaction
    def begin(self, begins: Sequence[Begin]) -> list[list[Outcome]]:
        now = self._clock.now()
        decisions = sqlite_lookup.decide(self._rows, begins, now)
        for begin, (_, reserved) in zip(begins, decisions, strict=True):
            if reserved:
                pairs = [(account.account, account.period) for account in begin.accounts]
                parts = sum(parts for _, parts in reserved)
                self._rows.executemany(_ADD_USAGE, [(*pair, 0, 0, parts) for pair in pairs])
                row = begin.id, self._worker, json_text(pairs), parts, now + begin.seconds
                self._rows.execute("INSERT INTO reservation VALUES (?, ?, ?, ?, ?, 'open')", row)
                # The row of a key may be left of a reservation that has expired.
                busy = [(begin.scope, key, begin.id) for key, _ in reserved]
                self._rows.executemany("INSERT OR REPLACE INTO busy VALUES (?, ?, ?)", busy)
        return [decision.outcomes for decision in decisions]

    @_transaction
    def quote(self, begins: Sequence[Begin]) -> list[list[Outcome]]:
        return [decision.outcomes for decision in sqlite_lookup.decide(self._rows, begins, self._clock.now())]

    @_transaction
    def _finish(self, finishes: Sequence[Finish]) -> None:
        now = self._clock.now()
        for finish in finishes:
            row = self._rows.execute(
                "SELECT state, parts, accounts FROM reservation WHERE id = ?", (finish.id,)
            ).fetchone()
            state, parts, accounts = row or ("", 0, "[]")
            if state != "done":
                self._rows.executemany(_ADD_USAGE, _bookings(finish, state, parts, _decode_accounts(accounts)))
                busy = self._rows.execute("DELETE FROM busy WHERE reservation = ? RETURNING scope, key", (finish.id,))
                own = set(busy)
                self._rows.execute(_END_RESERVATION, (finish.id, self._worker, now + DONE_SECONDS))
                for result in finish.results:
                    # After its deadline, others may have reserved a key.
                    if state == "open" or (finish.scope, result.key) in own:
                        self._store(finish, result, now)
        self._evict()

    def _store(self, finish: Finish, result: Result, now: float) -> None:
        fetched = min(result.fetched or now, now)
        ids = result.part_ids or (None,) * len(result.items)
        parts = [
            (finish.scope, hit.uid, id, *finish.selection, fetched, body, now - protocol.FRESH_SECONDS, now)
            for hit, id, body in zip(result.items, ids, result.bodies, strict=True)
        ]
        size = sum(map(len, result.bodies)) + len(result.details or b"")
        if size <= self._cache_bytes:
            self._database.written += size
            self._rows.executemany(_STORE_PART, parts)
            items = json_text(result.items)
            row = finish.scope, result.key, fetched, result.asked, result.hits, items, result.details
            self._rows.execute(_STORE_RESULT, row)

    def _evict(self) -> None:
        """Delete the oldest parts beyond the bound, and the results that have lost theirs."""
        while self._database.used_bytes() > self._cache_bytes:
            parts = self._rows.execute(_DELETE_OLDEST_PARTS, (EVICTED,)).rowcount
            if not self._rows.execute(_DELETE_OLDER_RESULTS).rowcount + parts:
                break

    def _expire(self, condition: str, *values: Any) -> None:
        """Move open reservations to uncertain usage. Their keys are free, and their rows stay for a late finish."""
        self._rows.execute(_EXPIRED_USAGE.format(condition), values)
        self._rows.execute(_EXPIRE.format(condition), (self._clock.now(), *values))

    @_transaction
    def sweep(self) -> None:
        now = self._clock.now()
        self._expire("deadline <= ?", now)
        today = datetime.fromtimestamp(now, UTC).date()
        periods = json_text([today.isoformat(), today.isoformat()[:7], protocol.LIFETIME])
        self._rows.execute(_DELETE_RESERVATIONS, (now, now - protocol.DAY_SECONDS, periods))
        self._rows.execute("DELETE FROM busy WHERE reservation NOT IN (SELECT id FROM reservation)")
        first = (today - timedelta(protocol.DAYS_KEPT)).isoformat()
        self._rows.execute("DELETE FROM usage WHERE length(period) = 10 AND period < ? AND reserved = 0", (first,))
        self._rows.execute("DELETE FROM value WHERE until <= ?", (now,))
        for table in ("part", "result"):
            # A time of tomorrow was written before the clock was set back.
            self._rows.execute(_DELETE_OLD.format(table), (now, protocol.STORED_SECONDS))

    @_transaction
    def end_worker(self, worker: str) -> None:
        self._expire("worker = ?", worker)

    @_transaction
    def usage(self) -> list[Usage]:
        rows = self._rows.execute("SELECT * FROM usage WHERE used OR uncertain OR reserved ORDER BY account, period")
        return [Usage(*row) for row in rows]

    @_transaction
    def set_usage(self, account: Account, used: int) -> None:
        pair = account.account, account.period
        statement = (
            "INSERT INTO usage VALUES (?, ?, ?, 0, 0) ON CONFLICT DO UPDATE SET used = excluded.used, uncertain = 0"
        )
        self._rows.execute(statement, (*pair, used))
        # A late finish must not take off again what is uncertain no more.
        for id, accounts in self._rows.execute(
            "SELECT id, accounts FROM reservation WHERE state = 'expired'"
        ).fetchall():
            pairs = _decode_accounts(accounts)
            if pair in pairs:
                left = json_text(other for other in pairs if other != pair)
                self._rows.execute("UPDATE reservation SET accounts = ? WHERE id = ?", (left, id))

    @_transaction
    def forget(self, scope: str | None) -> int:
        parts = self._rows.execute("DELETE FROM part WHERE scope = ifnull(?, scope)", (scope,)).rowcount
        self._rows.execute("DELETE FROM result WHERE scope = ifnull(?, scope)", (scope,))
        self._rows.execute("UPDATE forgotten SET number = number + 1")
        return parts

    @_transaction
    def forgotten(self) -> int:
        return int(self._rows.execute("SELECT number FROM forgotten").fetchone()[0])

    @_transaction
    def value(self, key: str) -> str | None:
        statement = "SELECT value FROM value WHERE key = ?1 AND since <= ?2 AND ?2 < until"
        row = self._rows.execute(statement, (key, self._clock.now())).fetchone()
        return row[0] if row else None

    @_transaction
    def values(self, prefix: str) -> dict[str, str]:
        statement = "SELECT key, value FROM value WHERE substr(key, 1, length(?1)) = ?1 AND since <= ?2 AND ?2 < until"
        return dict(self._rows.execute(statement, (prefix, self._clock.now())).fetchall())

    @_transaction
    def put_value(self, key: str, value: str, seconds: float, *, absent: bool = False) -> bool:
        now = self._clock.now()
        statement = f"{_PUT_VALUE} {_UNLESS_THERE}" if absent else _PUT_VALUE
        return self._rows.execute(statement, (key, value, now, now + seconds)).rowcount == 1

    @_transaction
    def drop_value(self, key: str, value: str | None = None) -> None:
        self._rows.execute("DELETE FROM value WHERE key = ?1 AND value = ifnull(?2, value)", (key, value))

    @_transaction
    def take(self, key: str, windows: Sequence[Window]) -> float:
        now, key = self._clock.now(), f"taken {key}"
        row = self._rows.execute("SELECT value FROM value WHERE key = ?", (key,)).fetchone()
        # Times ahead were written before the clock was set back.
        times = [min(time, now) for time in (_decode_times(row[0]) if row else ())]
        full = (window for window in windows if len(times) >= window.count)
        wait = max((times[-window.count] + window.seconds - now for window in full), default=0.0)
        if wait > 0.0:
            return wait
        newest = [*times, now][-max(window.count for window in windows) :]
        until = now + max(window.seconds for window in windows)
        self._rows.execute(_PUT_VALUE, (key, json_text(newest), now, until))
        return 0.0

    @_transaction
    def add_seen(self, id: str, rows: Sequence[Seen], first_day: int) -> None:
        now = self._clock.now()
        statement = f"{_PUT_VALUE} WHERE false"
        if not self._rows.execute(statement, (f"seen {id}", "", now, now + protocol.DAY_SECONDS)).rowcount:
            return
        self._rows.executemany(_ADD_SEEN, rows)
        self._rows.execute("DELETE FROM seen WHERE day < ?", (first_day,))
        bounds = [(kind, most) for kind, most in protocol.SEEN_MAX.items() if most]
        self._rows.executemany(_DELETE_OLDER_SEEN, bounds)

    @_transaction
    def seen(self, kind: str, first_day: int) -> list[Seen]:
        statement = "SELECT * FROM seen WHERE kind = ? AND day >= ? ORDER BY last DESC"
        return [Seen(*row) for row in self._rows.execute(statement, (kind, first_day))]

    async def check_writable(self) -> None:
        await self.put_value("writable", "", 1.0)


def _bookings(finish: Finish, state: str, parts: int, begun: list[Pair]) -> Iterator[tuple[str, str, int, int, int]]:
    """Return what to add to usage: account, period, used, uncertain, reserved. `begun` has the periods of `begin`."""
    present = {(account.account, account.period) for account in finish.accounts}
    for pair in present.union(begun):
        # In a period that has ended meanwhile, the upstream may have counted the parts, too.
        used, uncertain = (finish.used, finish.uncertain) if pair in present else (0, finish.used + finish.uncertain)
        ended = parts if pair in begun else 0
        yield (*pair, used, uncertain, -ended) if state == "open" else (*pair, used, uncertain - ended, 0)
