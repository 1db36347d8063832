"""Store in an SQLite file: for one machine, shared by its workers, and kept across restarts.

One connection, used in one thread, so that the event loop never waits for the disk. Each operation is one transaction.
What is committed survives the end of the process however it comes; a machine that loses power may lose the last moment.
"""

import asyncio
import contextlib
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from proxy import errors
from proxy.kit.clock import Clock
from proxy.stores import journal, sqlite_schema
from proxy.stores.protocols import (
    DAY,
    MONTH,
    USAGE_SET,
    EntryUsage,
    ExhaustedQuota,
    LedgerEntry,
    ReservationRecord,
    Settlement,
)

R = TypeVar("R")
Connection = sqlite3.Connection

SEQUENCES_KEPT = 7 * 86_400.0  # seconds that the last settlement of a dead owner is remembered: it is booked once


class SqlStore:
    """Store on a connection. How a transaction is carried out is the subclass's."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    async def _transaction(self, begin: str, work: Callable[[Connection], R]) -> R:
        """Return what `work` returns, in a transaction that `begin` begins."""
        raise NotImplementedError

    async def reserve(self, reservations: Sequence[ReservationRecord]) -> list[LedgerEntry | None]:
        return await self._write(lambda rows: _reserve_all(rows, reservations))

    async def settle(self, settlement: Settlement) -> None:
        await self._write(lambda rows: _settle(rows, settlement))

    async def raise_used(self, entry: LedgerEntry, used: int) -> None:
        statement = (
            "INSERT INTO ledger VALUES (?, ?, ?, 0) ON CONFLICT (account, period) "
            "DO UPDATE SET used = max(used, excluded.used)"
        )
        await self._change(statement, *entry, used)

    async def set_usage(self, entry: LedgerEntry, used: int) -> None:
        def work(rows: Connection) -> None:
            rows.execute("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, 0)", (*entry, used))
            rows.execute("DELETE FROM exhausted_quotas WHERE account = ?", (entry.account,))
            note = USAGE_SET, f"{entry.account} {entry.period}", secrets.token_hex(8)
            rows.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", note)

        await self._write(work)

    async def heartbeat(self, owner: str, seconds: float) -> None:
        now = self._now()
        await self._write(lambda rows: _heartbeat(rows, owner, now, now + seconds))

    async def usage(self, entries: Sequence[LedgerEntry]) -> list[EntryUsage]:
        return await self._transaction("BEGIN", lambda rows: [_usage(rows, entry) for entry in entries])

    async def all_usage(self) -> list[EntryUsage]:
        def work(rows: Connection) -> list[EntryUsage]:
            names = rows.execute("SELECT account, period FROM ledger ORDER BY account, period").fetchall()
            return [_usage(rows, LedgerEntry(*name)) for name in names]

        return await self._transaction("BEGIN", work)

    async def prune(self, days: int, months: int) -> None:
        await self._write(lambda rows: _prune(rows, DAY, days) + _prune(rows, MONTH, months))

    async def mark_exhausted(self, quota: ExhaustedQuota) -> None:
        await self._change("INSERT OR REPLACE INTO exhausted_quotas VALUES (?, ?, ?)", *quota)

    async def clear_exhausted(self, account: str) -> None:
        await self._change("DELETE FROM exhausted_quotas WHERE account = ?", account)

    async def exhausted_quotas(self) -> list[ExhaustedQuota]:
        rows = await self._read("SELECT account, until, reason FROM exhausted_quotas WHERE until > ?", self._now())
        return [ExhaustedQuota(*row) for row in rows]

    async def put_note(self, kind: str, owner: str, text: str) -> None:
        statement = "INSERT INTO notes VALUES (?, ?, ?) ON CONFLICT (kind, owner) DO UPDATE SET text = excluded.text"
        await self._change(statement, kind, owner, text)

    async def notes(self, kind: str) -> dict[str, str]:
        return dict(await self._read("SELECT owner, text FROM notes WHERE kind = ? ORDER BY rowid", kind))

    async def drop_note(self, kind: str, owner: str) -> None:
        await self._change("DELETE FROM notes WHERE kind = ? AND owner = ?", kind, owner)

    def _now(self) -> float:
        return self._clock.now()

    async def _read(self, statement: str, *values: Any) -> list[Any]:
        return await self._transaction("BEGIN", lambda rows: rows.execute(statement, values).fetchall())

    async def _change(self, statement: str, *values: Any) -> int:
        """Execute a statement in a transaction; return how many rows it has changed."""
        return await self._write(lambda rows: rows.execute(statement, values).rowcount)

    # Immediate: a transaction that reads first and then writes fails at once, without waiting, if another wrote
    # meanwhile.
    async def _write(self, work: Callable[[Connection], R]) -> R:
        return await self._transaction("BEGIN IMMEDIATE", work)


class SqliteStore(SqlStore):
    """Store in a file. Made by `open`."""

    def __init__(self, path: Path, connection: Connection, thread: ThreadPoolExecutor, clock: Clock) -> None:
        super().__init__(connection, clock)
        self._path = path
        self._file = sqlite_schema.WatchedFile(path)
        self._thread = thread
        self._closed = False

    @classmethod
    async def open(cls, path: Path, clock: Clock, *, reads_only: bool = False) -> "SqliteStore":
        """Open the store in a file, which is made where it is missing. Raises ConfigError."""
        # One thread: SQLite runs one writer at a time anyway, and a connection serves one transaction at a time.
        thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        try:
            connect = partial(sqlite_schema.connect, path, reads_only=reads_only)
            connection = await asyncio.get_running_loop().run_in_executor(thread, connect)
        except BaseException:
            thread.shutdown()
            raise
        store = cls(path, connection, thread, clock)

        # Another process may be writing: the clean-up is optional, because the next start repeats it.
        with contextlib.suppress(errors.StoreUnavailable):
            for file, settlement in journal.left_behind(path):
                await store.settle(settlement)
                file.unlink(missing_ok=True)
        return store

    def journal(self, owner: str) -> journal.FileJournal:
        return journal.FileJournal(self._path, owner)

    async def check_writable(self) -> None:
        await self._write(lambda _: self._file.check_folder())
        await self.put_note("writable", "", str(self._now()))

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
            self._file.close()
            self._thread.shutdown()

    async def _transaction(self, begin: str, work: Callable[[Connection], R]) -> R:
        if self._closed:
            raise errors.StoreUnavailable("the store is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._in_thread, begin, work)
        except (sqlite3.Error, OSError) as error:
            raise errors.StoreUnavailable(f"the store (SQLite) cannot be used: {error}") from error

    def _in_thread(self, begin: str, work: Callable[[Connection], R]) -> R:
        self._file.check()
        return committed(self._connection, begin, work)


def committed(connection: Connection, begin: str, work: Callable[[Connection], R]) -> R:
    """Return what `work` returns, in a transaction."""
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # the first error counts
            connection.execute("ROLLBACK")
        raise
    return result


def _reserve_all(rows: Connection, reservations: Sequence[ReservationRecord]) -> list[LedgerEntry | None]:
    taken: dict[LedgerEntry, int] = {}  # each entry is summed up once for all reservations on it
    return [_reserve(rows, reservation, taken) for reservation in reservations]


def _reserve(rows: Connection, reservation: ReservationRecord, taken: dict[LedgerEntry, int]) -> LedgerEntry | None:
    # Sent again, because the confirmation was lost: it is held once.
    if rows.execute("SELECT 1 FROM reservations WHERE id = ?", (reservation.id,)).fetchone():
        return None
    for entry, limit in reservation.limits:
        if entry not in taken:
            taken[entry] = sum(_usage(rows, entry)[1:])
        if taken[entry] + reservation.parts > limit:
            return entry
    record = reservation.id, reservation.owner, reservation.parts, sqlite_schema.json_text(reservation.entries)
    rows.execute("INSERT INTO reservations (id, owner, parts, entries) VALUES (?, ?, ?, ?)", record)
    for entry, _ in reservation.limits:
        taken[entry] += reservation.parts
        rows.execute("INSERT INTO reserved VALUES (?, ?, ?, ?)", (*entry, reservation.id, reservation.parts))
    return None


def _settle(rows: Connection, settlement: Settlement) -> None:
    """Book a settlement in as few statements as it needs: between two of them, this thread waits for the interpreter
    lock, and on a busy worker that takes longer than the statements."""
    is_new = rows.execute(
        "INSERT INTO owners VALUES (?, 0, ?) ON CONFLICT (name) DO UPDATE SET settled = excluded.settled "
        # no row changes for a number that is booked already
        "WHERE settled < excluded.settled",
        (settlement.owner, settlement.sequence),
    ).rowcount
    if not is_new:
        return
    if settlement.reservations:
        ids = (sqlite_schema.json_text(settlement.reservations),)
        rows.execute("DELETE FROM reserved WHERE id IN (SELECT value FROM json_each(?))", ids)
        overdue = rows.execute(  # of an owner whose lease had ended, but that is still alive
            "SELECT parts, entries FROM reservations WHERE uncertain AND id IN (SELECT value FROM json_each(?))", ids
        ).fetchall()
        for parts, entries in overdue:
            rows.execute(
                "UPDATE ledger SET uncertain = max(0, uncertain - ?) "
                "WHERE (account, period) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
                (parts, entries),
            )
        rows.execute("DELETE FROM reservations WHERE id IN (SELECT value FROM json_each(?))", ids)
    if settlement.increments:
        rows.execute(
            "INSERT INTO ledger "
            # WHERE true: without it SQLite reads ON CONFLICT as the ON of a join.
            "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE true "
            "ON CONFLICT (account, period) "
            "DO UPDATE SET used = used + excluded.used, uncertain = uncertain + excluded.uncertain",
            (sqlite_schema.json_text([(*entry, used, uncertain) for entry, used, uncertain in settlement.increments]),),
        )


def _heartbeat(rows: Connection, owner: str, now: float, until: float) -> None:
    rows.execute(
        "INSERT INTO owners VALUES (?, ?, 0) ON CONFLICT (name) DO UPDATE SET until = excluded.until", (owner, until)
    )
    is_overdue = "owner NOT IN (SELECT name FROM owners WHERE until > ?)"
    rows.execute(
        "INSERT INTO ledger SELECT entry.value ->> 0, entry.value ->> 1, 0, sum(parts) "  # noqa: S608 - no input
        f"FROM reservations, json_each(reservations.entries) AS entry WHERE NOT uncertain AND {is_overdue} "
        "GROUP BY 1, 2 ON CONFLICT (account, period) DO UPDATE SET uncertain = uncertain + excluded.uncertain",
        (now,),
    )
    # After the booking above, whose condition is the same: both happen in this transaction, so none is booked twice.
    rows.execute(f"UPDATE reservations SET uncertain = 1 WHERE {is_overdue}", (now,))  # noqa: S608 - no input
    rows.execute("DELETE FROM reserved WHERE id IN (SELECT id FROM reservations WHERE uncertain)")
    # until = 0: an owner that has settled and never sent a heartbeat, such as one that only settles a journal.
    rows.execute("DELETE FROM owners WHERE until <= ? AND until > 0", (now - SEQUENCES_KEPT,))
    rows.execute("DELETE FROM reservations WHERE uncertain AND owner NOT IN (SELECT name FROM owners)")


def _prune(rows: Connection, length: int, number: int) -> int:
    """Delete all but the last `number` entries of each account whose period's name has this length (DAY or MONTH);
    return how many were deleted."""
    statement = (
        "DELETE FROM ledger WHERE (account, period) IN (SELECT account, period FROM (SELECT account, period, "
        "row_number() OVER (PARTITION BY account ORDER BY period DESC) AS place FROM ledger WHERE length(period) = ?) "
        "WHERE place > ?) AND (account, period) NOT IN (SELECT account, period FROM reserved)"
    )
    return rows.execute(statement, (length, number)).rowcount


def _usage(rows: Connection, entry: LedgerEntry) -> EntryUsage:
    used, uncertain, reserved = rows.execute(
        "SELECT coalesce(max(used), 0), coalesce(max(uncertain), 0), "
        "(SELECT coalesce(sum(parts), 0) FROM reserved WHERE account = ?1 AND period = ?2) "
        "FROM ledger WHERE account = ?1 AND period = ?2",
        (entry.account, entry.period),
    ).fetchone()
    return EntryUsage(entry, used, uncertain, reserved)
