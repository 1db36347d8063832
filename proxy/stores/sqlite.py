"""The store in a file: for one machine, shared by its workers, and there again after a restart.

One connection, used in one thread, so that the event loop never waits for the disk. Each operation is one transaction.
What is committed survives the end of the process however it comes; a machine that loses power may lose the last moment.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from proxy import errors
from proxy.kit.clock import Clock
from proxy.kit.windows import Window
from proxy.stores import journal, sqlite_file
from proxy.stores.protocols import DAY, MONTH, EntryUsage, ExhaustedQuota, LedgerEntry, ReservationRecord, Settlement

R = TypeVar("R")
Rows = sqlite3.Connection

MARKS_KEPT = 7 * 86_400.0  # seconds that an owner which is gone is remembered, lest it books twice


class SqliteStore:
    """Made by `open`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, thread: ThreadPoolExecutor, clock: Clock) -> None:
        self._path = path
        self._file = _identity(path)
        self._connection = connection
        self._thread = thread
        self._clock = clock
        self._closed = False

    @classmethod
    async def open(cls, path: Path, clock: Clock) -> "SqliteStore":
        """The store in a file, which is made where it is missing. Raises ConfigError."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        try:
            connection = await asyncio.get_running_loop().run_in_executor(thread, sqlite_file.connect, path)
        except BaseException:
            thread.shutdown()
            raise
        store = cls(path, connection, thread, clock)
        with contextlib.suppress(errors.StoreUnavailable):  # others write just now; what is old can be forgotten later
            await store._change("DELETE FROM requests WHERE until <= ?", clock.now())
            for file, settlement in journal.left_behind(path):
                await store.settle(settlement)
                file.unlink(missing_ok=True)
        return store

    async def take(self, key: str, windows: Sequence[Window]) -> float:
        now = self._clock.now()
        return await self._write(lambda rows: _take(rows, key, windows, now))

    async def token(self, key: str) -> tuple[str, float] | None:
        found = await self._read("SELECT token, expires FROM tokens WHERE key = ? AND expires > ?", key, self._now())
        return found[0] if found else None

    async def keep_token(self, key: str, token: str, expires: float) -> None:
        await self._change("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?)", key, token, expires)

    async def drop_token(self, key: str, token: str) -> None:
        await self._change("DELETE FROM tokens WHERE key = ? AND token = ?", key, token)

    async def lock(self, name: str, owner: str, seconds: float) -> bool:
        now = self._now()
        statement = (
            "INSERT INTO locks VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, "
            "until = excluded.until WHERE owner = excluded.owner OR until <= ?"
        )
        return await self._change(statement, name, owner, now + seconds, now) == 1

    async def unlock(self, name: str, owner: str) -> None:
        await self._change("DELETE FROM locks WHERE name = ? AND owner = ?", name, owner)

    async def reserve(self, claims: Sequence[ReservationRecord]) -> list[LedgerEntry | None]:
        return await self._write(lambda rows: _reserve_all(rows, claims))

    async def settle(self, settlement: Settlement) -> None:
        rows = [(*line, used, doubtful) for line, used, doubtful in settlement.bookings]
        values = settlement.owner, settlement.sequence, _json(settlement.claims), _json(rows)
        await self._run(lambda: self._connection.execute("INSERT INTO settling VALUES (?, ?, ?, ?)", values))

    def journal(self, owner: str) -> journal.Journal:
        return journal.Journal(self._path, owner)

    async def adjust(self, line: LedgerEntry, used: int, doubtful: int) -> None:
        statement = (
            "INSERT INTO lines VALUES (?, ?, ?, 0) ON CONFLICT (account, period) "
            "DO UPDATE SET used = max(used, excluded.used), doubtful = max(0, doubtful - ?)"
        )
        await self._change(statement, *line, used, doubtful)

    async def alive(self, owner: str, seconds: float) -> None:
        now = self._now()
        await self._write(lambda rows: _alive(rows, owner, now, now + seconds))

    async def check_writable(self) -> None:
        await self.put_note("writable", "", str(self._now()))

    async def states(self, lines: Sequence[LedgerEntry]) -> list[EntryUsage]:
        return await self._transaction("BEGIN", lambda rows: [_state(rows, line) for line in lines])

    async def usage(self) -> list[EntryUsage]:
        def work(rows: Rows) -> list[EntryUsage]:
            lines = rows.execute("SELECT account, period FROM lines ORDER BY account, period").fetchall()
            return [_state(rows, LedgerEntry(*line)) for line in lines]

        return await self._transaction("BEGIN", work)

    async def prune(self, days: int, months: int) -> None:
        await self._write(lambda rows: _prune(rows, DAY, days) + _prune(rows, MONTH, months))

    async def close_account(self, closure: ExhaustedQuota) -> None:
        await self._change("INSERT OR REPLACE INTO closures VALUES (?, ?, ?)", *closure)

    async def reopen(self, account: str) -> None:
        await self._change("DELETE FROM closures WHERE account = ?", account)

    async def closures(self) -> list[ExhaustedQuota]:
        found = await self._read("SELECT account, until, reason FROM closures WHERE until > ?", self._now())
        return [ExhaustedQuota(*row) for row in found]

    async def put_note(self, kind: str, owner: str, text: str) -> None:
        await self._change("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", kind, owner, text)

    async def notes(self, kind: str) -> dict[str, str]:
        return dict(await self._read("SELECT owner, text FROM notes WHERE kind = ?", kind))

    async def drop_notes(self, kind: str) -> None:
        await self._change("DELETE FROM notes WHERE kind = ?", kind)

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
            self._thread.shutdown()

    def _now(self) -> float:
        return self._clock.now()

    async def _read(self, statement: str, *values: Any) -> list[Any]:
        return await self._transaction("BEGIN", lambda rows: rows.execute(statement, values).fetchall())

    async def _change(self, statement: str, *values: Any) -> int:
        """How many rows a statement has changed."""
        return await self._write(lambda rows: rows.execute(statement, values).rowcount)

    async def _write(self, work: Callable[[Rows], R]) -> R:
        return await self._transaction("BEGIN IMMEDIATE", work)

    async def _transaction(self, begin: str, work: Callable[[Rows], R]) -> R:
        return await self._run(lambda: self._in_thread(begin, work))

    async def _run(self, work: Callable[[], R]) -> R:
        if self._closed:
            raise errors.StoreUnavailable("the store is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._while_there, work)
        except sqlite3.Error as error:
            raise errors.StoreUnavailable(f"the store (SQLite) cannot be used: {error}") from error

    def _while_there(self, work: Callable[[], R]) -> R:
        """SQLite goes on with a file that was deleted: what it writes then is lost when the process ends."""
        if _identity(self._path) != self._file:
            raise sqlite3.OperationalError(f"{self._path} was deleted or replaced; restart to begin a new file")
        return work()

    def _in_thread(self, begin: str, work: Callable[[Rows], R]) -> R:
        self._connection.execute(begin)
        try:
            result = work(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # the first error counts
                self._connection.execute("ROLLBACK")
            raise
        return result


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _take(rows: Rows, key: str, windows: Sequence[Window], now: float) -> float:
    """Exact: for each window the request that must have left it first. A clock put back makes none wait for ever."""
    rows.execute("DELETE FROM requests WHERE key = ? AND until <= ?", (key, now))
    rows.execute("UPDATE requests SET at = ? WHERE key = ? AND at > ?", (now, key, now))
    wait = 0.0
    for window in windows:
        oldest = rows.execute(
            "SELECT at FROM requests WHERE key = ? ORDER BY at DESC LIMIT 1 OFFSET ?", (key, window.count - 1)
        ).fetchone()
        if oldest is not None:
            wait = max(wait, oldest[0] + window.seconds - now)
    if wait <= 0.0:
        until = now + max((window.seconds for window in windows), default=0.0)
        rows.execute("INSERT INTO requests VALUES (?, ?, ?)", (key, now, until))
    return max(wait, 0.0)


def _reserve_all(rows: Rows, claims: Sequence[ReservationRecord]) -> list[LedgerEntry | None]:
    taken: dict[LedgerEntry, int] = {}  # each line is summed up once for all claims on it
    return [_reserve(rows, claim, taken) for claim in claims]


def _reserve(rows: Rows, claim: ReservationRecord, taken: dict[LedgerEntry, int]) -> LedgerEntry | None:
    if rows.execute("SELECT 1 FROM intents WHERE id = ?", (claim.id,)).fetchone():
        return None
    for line, limit in claim.budgets:
        if line not in taken:
            taken[line] = sum(_state(rows, line)[1:])
        if taken[line] + claim.parts > limit:
            return line
    for line, _ in claim.budgets:
        taken[line] += claim.parts
        rows.execute("INSERT INTO claims VALUES (?, ?, ?, ?, ?)", (*line, claim.id, claim.owner, claim.parts))
    intent = claim.id, claim.owner, claim.parts, _json(claim.lines)
    rows.execute("INSERT INTO intents (id, owner, parts, lines) VALUES (?, ?, ?, ?)", intent)
    return None


def _json(values: Sequence[Any]) -> str:
    return msgspec.json.encode(values).decode()


_OVERDUE = """
INSERT INTO lines SELECT line.value ->> 0, line.value ->> 1, 0, sum(parts)
    FROM intents, json_each(intents.lines) AS line
    WHERE NOT uncertain AND owner NOT IN (SELECT name FROM owners WHERE until > ?) GROUP BY 1, 2
    ON CONFLICT (account, period) DO UPDATE SET doubtful = doubtful + excluded.doubtful
"""


def _alive(rows: Rows, owner: str, now: float, until: float) -> None:
    rows.execute(
        "INSERT INTO owners VALUES (?, ?, 0) ON CONFLICT (name) DO UPDATE SET until = excluded.until", (owner, until)
    )
    rows.execute(_OVERDUE, (now,))
    rows.execute(
        "UPDATE intents SET uncertain = 1 WHERE owner NOT IN (SELECT name FROM owners WHERE until > ?)", (now,)
    )
    rows.execute("DELETE FROM claims WHERE owner NOT IN (SELECT name FROM owners WHERE until > ?)", (now,))
    rows.execute("DELETE FROM owners WHERE until <= ? AND until > 0", (now - MARKS_KEPT,))
    rows.execute("DELETE FROM intents WHERE uncertain AND owner NOT IN (SELECT name FROM owners)")


def _prune(rows: Rows, length: int, kept: int) -> int:
    """How many lines have gone of those whose periods have this length."""
    statement = (
        "DELETE FROM lines WHERE (account, period) IN (SELECT account, period FROM (SELECT account, period, "
        "row_number() OVER (PARTITION BY account ORDER BY period DESC) AS place FROM lines WHERE length(period) = ?) "
        "WHERE place > ?) AND (account, period) NOT IN (SELECT account, period FROM claims)"
    )
    return rows.execute(statement, (length, kept)).rowcount


def _state(rows: Rows, line: LedgerEntry) -> EntryUsage:
    used, doubtful, reserved = rows.execute(
        "SELECT coalesce(max(used), 0), coalesce(max(doubtful), 0), "
        "(SELECT coalesce(sum(parts), 0) FROM claims WHERE account = ?1 AND period = ?2) "
        "FROM lines WHERE account = ?1 AND period = ?2",
        (line.account, line.period),
    ).fetchone()
    return EntryUsage(line, used, doubtful, reserved)
