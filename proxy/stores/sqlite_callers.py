"""Callers of the v3 API in the SQLite store, within a transaction of its caller."""

import sqlite3
from collections.abc import Sequence

import msgspec

from proxy.stores.protocols import BATCH_SECONDS
from proxy.telemetry.callers import DAY_SECONDS, Caller, CallerCount, CallerSeen

_SEEN = (
    "INSERT INTO callers (application, key, endpoint, user_agent, first, last) "
    "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each(?) "
    # WHERE true: without it SQLite reads ON CONFLICT as the ON of a join.
    "WHERE true ON CONFLICT (application, key, endpoint, user_agent) "
    "DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)"
)
_COUNTS = (
    "INSERT INTO caller_days SELECT added.value ->> 4, callers.id, added.value ->> 5, added.value ->> 6, "
    # CROSS JOIN keeps the order: each added row is looked up in the index of callers.
    "added.value ->> 7 FROM json_each(?) AS added CROSS JOIN callers ON callers.application = added.value ->> 0 "
    "AND callers.key = added.value ->> 1 AND callers.endpoint = added.value ->> 2 "
    "AND callers.user_agent = added.value ->> 3 WHERE true ON CONFLICT (day, caller) DO UPDATE "
    "SET requests = requests + excluded.requests, errors = errors + excluded.errors, parts = parts + excluded.parts"
)


def add(
    rows: sqlite3.Connection, batch: str, seen: Sequence[CallerSeen], counts: Sequence[CallerCount], now: float
) -> None:
    """Add a batch, unless it is in the store already."""
    rows.execute("DELETE FROM once WHERE key GLOB 'callers:*' AND until <= ?", (now,))
    added = rows.execute(
        "INSERT INTO once VALUES (?, ?) ON CONFLICT DO NOTHING", (f"callers:{batch}", now + BATCH_SECONDS)
    )
    if added.rowcount:
        rows.execute(_SEEN, (_json([(*caller, first, last) for caller, first, last in seen]),))
        rows.execute(_COUNTS, (_json([(*caller, day, *numbers) for day, caller, *numbers in counts]),))


def seen(rows: sqlite3.Connection) -> list[CallerSeen]:
    """Return every caller."""
    stored = rows.execute("SELECT application, key, endpoint, user_agent, first, last FROM callers")
    return [CallerSeen(Caller(*names), first, last) for *names, first, last in stored]


def counts(rows: sqlite3.Connection, first_day: int, last_day: int) -> list[CallerCount]:
    """Return the counts of these days."""
    names = {
        id_: Caller(*texts)
        for id_, *texts in rows.execute("SELECT id, application, key, endpoint, user_agent FROM callers")
    }
    stored = rows.execute(
        "SELECT day, caller, requests, errors, parts FROM caller_days WHERE day BETWEEN ? AND ?", (first_day, last_day)
    )
    return [CallerCount(day, names[id_], *numbers) for day, id_, *numbers in stored]


def prune(rows: sqlite3.Connection, first_day: int) -> None:
    """Delete counts of earlier days, and callers that were last seen before this day."""
    rows.execute("DELETE FROM caller_days WHERE day < ?", (first_day,))
    rows.execute("DELETE FROM callers WHERE last < ?", (first_day * DAY_SECONDS,))


def _json(values: Sequence[object]) -> str:
    return msgspec.json.encode(values).decode()
