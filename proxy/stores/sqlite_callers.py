"""SQL of the callers: functions within a transaction of the SQLite store, which begins and ends it."""

import sqlite3
from collections.abc import Sequence

from proxy.stores.protocols import BATCH_SECONDS
from proxy.telemetry.callers import ADDRESS_KEYS_MAX, DAY_SECONDS, KEYS_MAX, Caller, CallerCount, UnknownKey


def is_new_batch(rows: sqlite3.Connection, batch: str, now: float) -> bool:
    rows.execute("DELETE FROM once WHERE key GLOB 'callers:*' AND until <= ?", (now,))
    mark = f"callers:{batch}", now + BATCH_SECONDS
    return bool(rows.execute("INSERT INTO once VALUES (?, ?) ON CONFLICT DO NOTHING", mark).rowcount)


def add_callers(rows: sqlite3.Connection, counts: Sequence[CallerCount]) -> None:
    rows.executemany(
        "INSERT INTO callers VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "requests = requests + excluded.requests, last = max(last, excluded.last)",
        [(day, *caller, requests, last) for day, caller, requests, last in counts],
    )


def add_unknown_keys(rows: sqlite3.Connection, unknown: Sequence[UnknownKey]) -> None:
    if not unknown:
        return
    rows.executemany(
        "INSERT INTO unknown_keys VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET "
        "address = iif(excluded.last < last, address, excluded.address), "
        "user_agent = iif(excluded.last < last, user_agent, excluded.user_agent), "
        "first = min(first, excluded.first), last = max(last, excluded.last), requests = requests + excluded.requests",
        unknown,
    )
    rows.execute(
        "DELETE FROM unknown_keys WHERE digest IN (SELECT digest FROM (SELECT digest, "
        "row_number() OVER (PARTITION BY address ORDER BY last DESC, digest) AS place FROM unknown_keys) "
        "WHERE place > ?)",
        (ADDRESS_KEYS_MAX,),
    )
    rows.execute(
        "DELETE FROM unknown_keys WHERE digest IN "
        "(SELECT digest FROM unknown_keys ORDER BY last DESC, digest LIMIT -1 OFFSET ?)",
        (KEYS_MAX,),
    )


def callers(rows: sqlite3.Connection, first_day: int) -> list[CallerCount]:
    stored = rows.execute("SELECT * FROM callers WHERE day >= ?", (first_day,))
    return [CallerCount(day, Caller(*caller), requests, last) for day, *caller, requests, last in stored]


def prune(rows: sqlite3.Connection, first_day: int) -> None:
    rows.execute("DELETE FROM callers WHERE day < ?", (first_day,))
    rows.execute("DELETE FROM unknown_keys WHERE last < ?", (first_day * DAY_SECONDS,))
