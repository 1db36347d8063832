"""Store in SQLite: a file for the processes of a machine, or memory for one."""
# ruff: noqa: S608 - only names of tables and columns are put into statements

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from proxy import errors
from proxy.kit.clock import Clock
from proxy.store.protocol import Finish
from proxy.store.rows import TABLES, Key, Kind, Pair, PartRow, ResultRow, Row, Transaction
from proxy.store.sqlite_file import Database
from proxy.store.store import Store

R = TypeVar("R")

EVICTED = 8  # parts that are deleted at a time
READ_MAX = 500  # rows that a statement reads at most
ROW_BYTES = 2**13  # about what a row writes beside its texts

_ADD_USAGE = """
INSERT INTO usage VALUES (?1, ?2, max(0, ?3), max(0, ?4), max(0, ?5)) ON CONFLICT DO UPDATE SET
    used = used + ?3, uncertain = max(0, uncertain + ?4), reserved = max(0, reserved + ?5)
"""
_DELETE_OLDEST_PARTS = "DELETE FROM part WHERE rowid IN (SELECT rowid FROM part ORDER BY fetched, rowid LIMIT ?)"
_DELETE_OLDER_RESULTS = "DELETE FROM result WHERE fetched < ifnull((SELECT min(fetched) FROM part), 9e999)"
_IN_SCOPES = "substr(scope, 1, ?) = ?"
_KEY = {kind: " AND ".join(f"{column} = ?" for column in kind._fields[:keys]) for kind, (_, keys) in TABLES.items()}
_PUT = {
    kind: f"INSERT OR REPLACE INTO {name} VALUES (?{', ?' * (len(kind._fields) - 1)})"
    for kind, (name, _) in TABLES.items()
}
_DROP = {kind: f"DELETE FROM {name} WHERE {_KEY[kind]}" for kind, (name, _) in TABLES.items()}


class SqliteStore(Store):
    """Store in a file or in memory. Made by `open`."""

    def __init__(self, database: Database, clock: Clock, worker: str, cache_bytes: int) -> None:
        super().__init__(worker, cache_bytes)
        self._database = database
        self._clock = clock
        self._room = 0  # bytes that may be written until the used ones are counted again

    @classmethod
    async def open(cls, path: Path | None, clock: Clock, worker: str, cache_bytes: int) -> "SqliteStore":
        """Open the store in a file, which is made where it is missing, or in memory (None). If no other process uses
        it, what is reserved becomes uncertain usage. Raises StoreUnavailable."""
        database = Database(path)
        store = cls(database, clock, worker, cache_bytes)
        try:
            await database.transaction(database.make_tables)
            if database.is_alone:
                await store.end_worker(None)
            database.share()
        except BaseException:
            await database.aclose()
            raise
        return store

    async def _close(self) -> None:
        await self._database.aclose()

    async def finish(self, finishes: Sequence[Finish]) -> None:
        try:
            await super().finish(finishes)
        except errors.StoreUnavailable:
            if not any(finish.results for finish in finishes):
                raise
            # The disk may have room for the usage, if not for the results.
            await super().finish([finish._replace(results=()) for finish in finishes])

    async def _run(self, work: Callable[[Transaction], R], *, is_kept: bool = True) -> R:
        return await self._database.transaction(lambda: self._do(work, is_kept=is_kept), is_kept=is_kept)

    def _do(self, work: Callable[[Transaction], R], *, is_kept: bool) -> R:
        rows = _SqliteTransaction(self._database, self._clock.now())
        result = work(rows)
        if is_kept:
            written = rows.write()
            self._database.written += written
            self._room -= written
            self._evict()
        return result

    def _evict(self) -> None:
        """Delete the oldest parts beyond the bound, and the results that have lost theirs."""
        execute = self._database.rows.execute
        while self._room < 0 and self._database.used_bytes() > self._cache_bytes:
            parts = execute(_DELETE_OLDEST_PARTS, (EVICTED,)).rowcount
            if not execute(_DELETE_OLDER_RESULTS).rowcount + parts:
                break
        if self._room < 0:
            self._room = self._cache_bytes // 64


class _SqliteTransaction(Transaction):
    """Rows are read together where they are known to be needed, and written together at the end."""

    def __init__(self, database: Database, now: float) -> None:
        self.now = now
        self._execute, self._many = database.rows.execute, database.rows.executemany
        self._known: dict[Kind, dict[Key, Any]] = {kind: {} for kind in TABLES}
        self._changed: dict[Kind, dict[Key, Any]] = {kind: {} for kind in TABLES}
        self._added: dict[Pair, tuple[int, int, int]] = {}

    def load(self, kind: Kind, keys: Iterable[Key]) -> None:
        known = self._known[kind]
        lasts: dict[Key, list[Any]] = {}
        for key in keys:
            if key not in known:
                known[key] = None
                lasts.setdefault(key[:-1], []).append(key[-1])
        length = TABLES[kind][1]
        for first, last in lasts.items():
            for place in range(0, len(last), READ_MAX):
                some = last[place : place + READ_MAX]
                for values in self._execute(_select(kind, len(some)), (*first, *some)):
                    row = kind._make(values)
                    known[row[:length]] = row

    def all(self, kind: type[Row]) -> list[Row]:
        rows = map(kind._make, self._execute(f"SELECT * FROM {TABLES[kind][0]}"))
        stored = {row[: TABLES[kind][1]]: row for row in rows} | self._changed[kind]
        return [row for row in stored.values() if row is not None]

    def get(self, kind: type[Row], *key: Any) -> Row | None:
        if key not in self._known[kind]:
            self.load(kind, (key,))
        row: Row | None = self._known[kind][key]
        return row

    def put(self, row: NamedTuple) -> None:
        kind = type(row)
        key = row[: TABLES[kind][1]]
        self._known[kind][key] = self._changed[kind][key] = row

    def drop(self, kind: Kind, *key: Any) -> None:
        self._known[kind][key] = self._changed[kind][key] = None

    def add(self, pair: Pair, used: int, uncertain: int, reserved: int, _: int | None = None) -> None:
        old = self._added.get(pair, (0, 0, 0))
        self._added[pair] = old[0] + used, old[1] + uncertain, old[2] + reserved

    def drop_fetched(self, oldest: float, latest: float, scopes: str = "") -> int:
        chosen = f"WHERE (fetched <= ? OR fetched >= ?) AND {_IN_SCOPES}"
        bounds = (oldest, latest, len(scopes), scopes)
        self._execute(f"DELETE FROM result {chosen}", bounds)
        return self._execute(f"DELETE FROM part {chosen}", bounds).rowcount

    def count_parts(self, scopes: str) -> int:
        found = self._execute(f"SELECT count(*) FROM part WHERE {_IN_SCOPES}", (len(scopes), scopes))
        return int(found.fetchone()[0])

    def drop_ended(self, first_day: str) -> None:
        self._execute("DELETE FROM value WHERE until <= ?", (self.now,))
        self._execute("DELETE FROM usage WHERE length(period) = ? AND period < ?", (len(first_day), first_day))

    def write(self) -> int:
        """Write what was changed; return about how many bytes."""
        written = 0
        for kind, changed in self._changed.items():
            if not changed:
                continue
            puts = [row for row in changed.values() if row is not None]
            if puts:
                self._many(_PUT[kind], puts)
                written += ROW_BYTES * len(puts) + _bytes(kind, puts)
            if len(puts) < len(changed):
                self._many(_DROP[kind], [key for key, row in changed.items() if row is None])
        if self._added:
            self._many(_ADD_USAGE, [(*pair, *parts) for pair, parts in self._added.items() if any(parts)])
        return written


@functools.cache
def _select(kind: Kind, number: int) -> str:
    """Return the statement that reads rows whose keys differ in their last column."""
    name, length = TABLES[kind]
    same = "".join(f"{column} = ? AND " for column in kind._fields[: length - 1])
    return f"SELECT * FROM {name} WHERE {same}{kind._fields[length - 1]} IN (?{', ?' * (number - 1)})"


def _bytes(kind: Kind, rows: Iterable[Any]) -> int:
    """Return the bytes of what may be long in rows."""
    if kind is PartRow:
        return sum(len(row.body) for row in rows)
    return sum(len(row.details or b"") + len(row.items) for row in rows) if kind is ResultRow else 0
