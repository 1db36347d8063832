"""Store in SQLite: a file for the processes of a machine, or memory for one."""
# ruff: noqa: S608 - only names of tables and columns are put into statements

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from proxy import errors
from proxy.kit.clock import Clock
from proxy.store.protocol import Finish
from proxy.store.rows import TABLES, Key, Kind, PartRow, Row, Transaction
from proxy.store.sqlite_file import Database
from proxy.store.store import Store

R = TypeVar("R")

EVICTED = 8  # parts that are deleted at a time
WRITTEN_BYTES = 2**15  # about what a transaction writes beside the bodies of parts

_ADD_USAGE = """
INSERT INTO usage VALUES (?1, ?2, max(0, ?3), max(0, ?4), max(0, ?5)) ON CONFLICT DO UPDATE SET
    used = used + ?3, uncertain = max(0, uncertain + ?4), reserved = max(0, reserved + ?5)
"""
_DELETE_OLDEST_PARTS = "DELETE FROM part WHERE rowid IN (SELECT rowid FROM part ORDER BY fetched, rowid LIMIT ?)"
_DELETE_OLDER_RESULTS = "DELETE FROM result WHERE fetched < ifnull((SELECT min(fetched) FROM part), 9e999)"
_DELETE_OLD = "DELETE FROM {} WHERE fetched <= ? OR fetched >= ?"
_NAME = {kind: name for kind, (name, _) in TABLES.items()}
_KEY = {kind: " AND ".join(f"{column} = ?" for column in kind._fields[:length]) for kind, (_, length) in TABLES.items()}
_READ = {kind: f"SELECT * FROM {_NAME[kind]} WHERE {_KEY[kind]}" for kind in TABLES}
_ALL = {kind: f"SELECT * FROM {_NAME[kind]} WHERE {kind._fields[0]} = ifnull(?, {kind._fields[0]})" for kind in TABLES}
_PUT = {kind: f"INSERT OR REPLACE INTO {_NAME[kind]} VALUES (?{', ?' * (len(kind._fields) - 1)})" for kind in TABLES}
_DROP = {kind: f"DELETE FROM {_NAME[kind]} WHERE {_KEY[kind]}" for kind in TABLES}


class SqliteStore(Store):
    """Store in a file or in memory. Made by `open`."""

    def __init__(self, database: Database, clock: Clock, worker: str, cache_bytes: int) -> None:
        super().__init__(worker, cache_bytes)
        self._database = database
        self._clock = clock

    @classmethod
    async def open(
        cls, path: Path | None, clock: Clock, worker: str, cache_bytes: int, *, reads_only: bool = False
    ) -> "SqliteStore":
        """Open the store in a file, which is made where it is missing, or in memory (None). If no other process uses
        it, what is reserved becomes uncertain usage, unless it `reads_only`. Raises StoreUnavailable."""
        database = Database(path, reads_only=reads_only)
        store = cls(database, clock, worker, cache_bytes)
        try:
            async with database.transaction():
                database.make_tables()
            if database.is_alone and not reads_only:
                await store.end_worker(None)
            database.share()
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
            await super().finish(finishes)
        except errors.StoreUnavailable:
            if not any(finish.results for finish in finishes):
                raise
            # The disk may have room for the usage, if not for the results.
            await super().finish([finish._replace(results=()) for finish in finishes])

    async def _run(self, work: Callable[[Transaction], Awaitable[R]], *, is_kept: bool = True) -> R:
        async with self._database.transaction():
            transaction = _SqliteTransaction(self._database, self._clock.now())
            result = await work(transaction)
            if is_kept and transaction.write():
                self._evict()
        return result

    def _evict(self) -> None:
        """Delete the oldest parts beyond the bound, and the results that have lost theirs."""
        execute = self._database.rows.execute
        while self._database.used_bytes() > self._cache_bytes:
            parts = execute(_DELETE_OLDEST_PARTS, (EVICTED,)).rowcount
            if not execute(_DELETE_OLDER_RESULTS).rowcount + parts:
                break


class _SqliteTransaction(Transaction):
    """Nothing here waits, so that no other task of the process comes between two statements."""

    def __init__(self, database: Database, now: float) -> None:
        super().__init__(now, epoch=0)
        self._database = database
        self._execute = database.rows.execute

    async def read(self, *wanted: tuple[Kind, Iterable[Key]]) -> None:
        for kind, keys in wanted:
            for key in keys:
                if (kind, key) not in self._rows:
                    values = self._execute(_READ[kind], key).fetchone()
                    self._rows[kind, key] = values and kind._make(values)

    async def all(self, kind: type[Row], first: str | None = None) -> list[Row]:
        return [kind._make(values) for values in self._execute(_ALL[kind], (first,))]

    async def drop_old(self, oldest: float, latest: float) -> int:
        self._execute("DELETE FROM value WHERE until <= ?", (oldest,))
        self._execute(_DELETE_OLD.format("result"), (oldest, latest))
        return self._execute(_DELETE_OLD.format("part"), (oldest, latest)).rowcount

    def write(self) -> bool:
        """Write what is changed, and return whether parts are."""
        size = 0
        self._database.rows.executemany(_ADD_USAGE, [(*pair, *added) for pair, added in self._additions.items()])
        for kind, key in self._changed:
            row = self._rows[kind, key]
            if row is None:
                self._execute(_DROP[kind], key)
            else:
                self._execute(_PUT[kind], row)
                size += len(row.body) if kind is PartRow else 0
        self._database.written += size + WRITTEN_BYTES * bool(self._changed)
        return size > 0
