"""Store in SQLite: a file for the processes of a machine, or memory for one."""
# ruff: noqa: S608 - only names of tables and columns are put into statements

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from proxy import errors
from proxy.kit.clock import Clock
from proxy.store.protocol import Finish
from proxy.store.rows import TABLES, Key, Kind, Pair, PartRow, ResultRow, Row, Transaction, json_text
from proxy.store.sqlite_file import APPENDED, Database
from proxy.store.store import Store

R = TypeVar("R")

EVICTED = 8  # parts and results that are deleted at a time
FORGET_ROWS = 20_000  # that are appended before the places of evicted ones are forgotten
ROW_BYTES = 2**10  # about what a row writes beside its texts

_ADD_USAGE = """
INSERT INTO usage VALUES (?1, ?2, max(0, ?3), max(0, ?4), max(0, ?5)) ON CONFLICT DO UPDATE SET
    used = used + ?3, uncertain = max(0, uncertain + ?4), reserved = max(0, reserved + ?5)
"""
# The number of the last one of so many oldest parts and results.
_OLDEST = "SELECT max(n) FROM (SELECT n FROM part UNION ALL SELECT n FROM result ORDER BY n LIMIT ?)"
_IN_SCOPES = "substr(scope, 1, ?) = ?"  # that begin so
_DELETE: dict[Kind, tuple[str, ...]] = {
    PartRow: ("DELETE FROM part WHERE n = ?", "DELETE FROM body WHERE n = ?"),
    ResultRow: ("DELETE FROM result WHERE n = ?",),
}
_KEYED = {kind: table for kind, table in TABLES.items() if kind not in APPENDED}
_KEY = {kind: " AND ".join(f"{column} = ?" for column in kind._fields[:keys]) for kind, (_, keys) in _KEYED.items()}
_PUT = {
    kind: f"INSERT OR REPLACE INTO {name} VALUES (?{', ?' * (len(kind._fields) - 1)})"
    for kind, (name, _) in _KEYED.items()
}
_DROP = {kind: f"DELETE FROM {name} WHERE {_KEY[kind]}" for kind, (name, _) in _KEYED.items()}
# Rows whose keys differ in their last column, of which there is a list; and those with some numbers.
_SELECT = {
    kind: f"SELECT * FROM {name} WHERE {_KEY[kind].removesuffix('= ?')} IN (SELECT value FROM json_each(?))"
    for kind, (name, _) in _KEYED.items()
}
_SELECT[ResultRow] = "SELECT * FROM result WHERE n IN (SELECT value FROM json_each(?))"
_SELECT[PartRow] = (
    "SELECT n, scope, uid, fetched, id, features, body FROM part JOIN body USING (n) "
    "WHERE n IN (SELECT value FROM json_each(?))"
)


class SqliteStore(Store):
    """Store in a file or in memory. Made by `open`."""

    def __init__(self, database: Database, clock: Clock, worker: str, cache_bytes: int) -> None:
        super().__init__(worker, cache_bytes)
        self._database = database
        self._clock = clock
        self._places = _Places(database)
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
        rows = _SqliteTransaction(self._database, self._places, self._clock.now())
        result = work(rows)
        if is_kept:
            written = rows.write()
            self._database.written += written
            self._room -= written
            self._evict()
        return result

    def _evict(self) -> None:
        """Delete the oldest parts and results beyond the bound."""
        execute = self._database.rows.execute
        while self._room < 0:
            over = self._database.used_bytes() - self._cache_bytes
            if over <= 0:
                self._room = min(-over, self._cache_bytes // 64)
                break
            (last,) = execute(_OLDEST, (EVICTED,)).fetchone()
            if last is None:
                break
            for table in ("body", "part", "result"):
                execute(f"DELETE FROM {table} WHERE n <= ?", (last,))


class _Places:
    """Numbers of the parts and results in the file by what they are asked for. Both are appended to tables without an
    index; what was appended, by any process, is read before it is looked for."""

    def __init__(self, database: Database) -> None:
        self._execute = database.rows.execute
        self._last = self._read = 0  # number, and rows since evicted ones were forgotten
        self.numbers: dict[Kind, dict[Key, int]] = {PartRow: {}, ResultRow: {}}

    def refresh(self) -> None:
        """Read what has been appended."""
        parts, results = self.numbers[PartRow], self.numbers[ResultRow]
        appended = self._execute("SELECT n, scope, key FROM result WHERE n > ?", (self._last,)).fetchall()
        if not appended:
            return
        for n, scope, key in appended:
            results[sys.intern(scope), key] = n
        for n, scope, uid, id in self._execute("SELECT n, scope, uid, id FROM part WHERE n > ?", (self._last,)):
            parts[sys.intern(scope), uid] = n
            if id is not None:
                parts[sys.intern(scope), id] = n
        last = appended[-1][0]  # a part has a lower number than its result
        self._read += last - self._last
        self._last = last
        if self._read > FORGET_ROWS:
            self._read = 0
            (first,) = self._execute(_OLDEST, (1,)).fetchone()
            for kind, numbers in self.numbers.items():
                self.numbers[kind] = {key: n for key, n in numbers.items() if n >= first}

    def next(self) -> int:
        """Return the number of the next row to be appended."""
        return 1 + (self._execute("SELECT max(seq) FROM sqlite_sequence").fetchone()[0] or 0)


class _SqliteTransaction(Transaction):
    """Rows are read together where they are known to be needed, and written together at the end."""

    def __init__(self, database: Database, places: _Places, now: float) -> None:
        super().__init__()
        self.now = now
        self._execute, self._many = database.rows.execute, database.rows.executemany
        self._places = places
        self._is_refreshed = False
        self._added: dict[Pair, tuple[int, int, int]] = {}

    def load(self, kind: Kind, keys: Iterable[Key]) -> None:
        read = self.read[kind]
        if kind in APPENDED:
            self._load_appended(kind, [key for key in keys if key not in read])
            return
        lasts: dict[Key, list[Any]] = {}
        for key in keys:
            if key not in read:
                read[key] = None
                lasts.setdefault(key[:-1], []).append(key[-1])
        length = TABLES[kind][1]
        for first, last in lasts.items():
            for values in self._execute(_SELECT[kind], (*first, json_text(last))):
                row = kind._make(values)
                read[row[:length]] = row

    def _load_appended(self, kind: Kind, keys: Sequence[Key]) -> None:
        if not self._is_refreshed:
            self._places.refresh()
            self._is_refreshed = True
        read, numbers = self.read[kind], self._places.numbers[kind]
        found: dict[int, list[Key]] = {}
        for key in keys:
            read[key] = None
            if (number := numbers.get(key)) is not None:
                found.setdefault(number, []).append(key)
        if found:
            for number, *values in self._execute(_SELECT[kind], (json_text(found),)):
                read |= dict.fromkeys(found[number], kind._make(values))

    def stored(self, kind: type[Row]) -> Iterable[Row]:
        return map(kind._make, self._execute(f"SELECT * FROM {TABLES[kind][0]}"))

    def part(self, scope: str, name: str) -> PartRow | None:
        return self.get(PartRow, scope, name)

    def add(self, pair: Pair, used: int, uncertain: int, reserved: int, _: int | None = None) -> None:
        old = self._added.get(pair, (0, 0, 0))
        self._added[pair] = old[0] + used, old[1] + uncertain, old[2] + reserved

    def drop_fetched(self, oldest: float, latest: float, scopes: str = "") -> int:
        chosen = f"WHERE (fetched <= ? OR fetched >= ?) AND {_IN_SCOPES}"
        bounds = (oldest, latest, len(scopes), scopes)
        self._execute(f"DELETE FROM result {chosen}", bounds)
        self._execute(f"DELETE FROM body WHERE n IN (SELECT n FROM part {chosen})", bounds)
        return self._execute(f"DELETE FROM part {chosen}", bounds).rowcount

    def count_parts(self, scopes: str) -> int:
        found = self._execute(f"SELECT count(*) FROM part WHERE {_IN_SCOPES}", (len(scopes), scopes))
        return int(found.fetchone()[0])

    def drop_ended(self, first_day: str) -> None:
        self._execute("DELETE FROM value WHERE until <= ?", (self.now,))
        self._execute("DELETE FROM usage WHERE length(period) = ? AND period < ?", (len(first_day), first_day))

    def write(self) -> int:
        """Write what was changed; return about how many bytes."""
        rows = sum(map(len, self.changed.values()))
        for kind, changed in self.changed.items():
            if kind in APPENDED or not changed:
                continue
            puts = [row for row in changed.values() if row is not None]
            if puts:
                self._many(_PUT[kind], puts)
            if len(puts) < len(changed):
                self._many(_DROP[kind], [key for key, row in changed.items() if row is None])
        if self._added:
            self._many(_ADD_USAGE, [(*pair, *parts) for pair, parts in self._added.items() if any(parts)])
        results = self.changed[ResultRow]
        return rows * ROW_BYTES + (self._append() if results else 0)

    def _append(self) -> int:
        """Append parts and results, and delete those that they replace; return about how many bytes."""
        for kind in APPENDED:
            numbers = self._places.numbers[kind]
            if replaced := [(numbers[key],) for key in self.changed[kind] if key in numbers]:
                for statement in _DELETE[kind]:
                    self._many(statement, replaced)
        first = self._places.next()
        parts = [*enumerate(self.changed[PartRow].values(), first)]
        results = [*enumerate(self.changed[ResultRow].values(), first + len(parts))]
        self._many("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", [(n, *row[:-1]) for n, row in parts])
        self._many("INSERT INTO body VALUES (?, ?)", [(n, row.body) for n, row in parts])
        self._many(f"INSERT INTO result VALUES (?{', ?' * len(ResultRow._fields)})", [(n, *row) for n, row in results])
        return sum(len(row.body) for _, row in parts) + sum(len(row.details or b"") for _, row in results)
