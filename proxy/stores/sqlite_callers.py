"""SQL of the callers: functions within a transaction of the SQLite store, which begins and ends it."""

import sqlite3
from collections.abc import Sequence

from proxy.stores.protocols import BATCH_SECONDS
from proxy.stores.sqlite_schema import json_text
from proxy.telemetry.callers import (
    ADDRESS_KEYS_MAX,
    KEYS_MAX,
    Caller,
    CallerCount,
    CallerSeen,
    KeyDurations,
    MonthlyRequests,
    UnknownKey,
    UnsupportedUse,
)


def is_new_batch(rows: sqlite3.Connection, batch: str, now: float) -> bool:
    rows.execute("DELETE FROM once WHERE key GLOB 'callers:*' AND until <= ?", (now,))
    mark = f"callers:{batch}", now + BATCH_SECONDS
    return bool(rows.execute("INSERT INTO once VALUES (?, ?) ON CONFLICT DO NOTHING", mark).rowcount)


def add_callers(rows: sqlite3.Connection, seen: Sequence[CallerSeen], counts: Sequence[CallerCount]) -> None:
    rows.execute(
        "INSERT INTO callers (application, key, endpoint, user_agent, first, last) "
        "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each(?) "
        "WHERE true ON CONFLICT (application, key, endpoint, user_agent) "
        "DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)",
        (json_text([(*caller, first, last) for caller, first, last in seen]),),
    )
    rows.execute(
        # CROSS JOIN keeps the order: each added row is looked up in the index of callers.
        "INSERT INTO caller_days SELECT value ->> 4, callers.id, value ->> 5, value ->> 6, value ->> 7, value ->> 8, "
        "value ->> 9 "
        "FROM json_each(?) AS added CROSS JOIN callers ON application = value ->> 0 AND callers.key = value ->> 1 "
        "AND endpoint = value ->> 2 AND user_agent = value ->> 3 WHERE true ON CONFLICT (day, caller) "
        "DO UPDATE SET requests = requests + excluded.requests, errors = errors + excluded.errors, "
        "parts = parts + excluded.parts, hits = hits + excluded.hits, ms = ms + excluded.ms",
        (
            json_text(
                [
                    (*each.caller, each.day, each.requests, each.errors, each.parts, each.hits, each.ms)
                    for each in counts
                ]
            ),
        ),
    )


def add_months(rows: sqlite3.Connection, months: Sequence[MonthlyRequests]) -> None:
    rows.execute(
        "INSERT INTO monthly_requests SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, "
        "value ->> 5, value ->> 6 FROM json_each(?) WHERE true ON CONFLICT (month, application, key) "
        "DO UPDATE SET requests = requests + excluded.requests, hits = hits + excluded.hits, "
        "cached = cached + excluded.cached, coalesced = coalesced + excluded.coalesced",
        (json_text(months),),
    )


def add_unsupported(rows: sqlite3.Connection, unsupported: Sequence[UnsupportedUse]) -> None:
    rows.executemany(
        "INSERT INTO unsupported_uses VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (application, key, name) DO UPDATE SET "
        "requests = requests + excluded.requests, first = min(first, excluded.first), last = max(last, excluded.last)",
        unsupported,
    )


def add_durations(rows: sqlite3.Connection, durations: Sequence[KeyDurations]) -> None:
    rows.executemany(
        # CROSS JOIN keeps the order of the buckets.
        "INSERT INTO durations VALUES (?, ?, ?, ?) ON CONFLICT (day, application, key) DO UPDATE SET buckets = "
        "(SELECT json_group_array(own.value + added.value) FROM json_each(durations.buckets) AS own "
        "CROSS JOIN json_each(excluded.buckets) AS added ON own.key = added.key)",
        ((*names, json_text(buckets)) for *names, buckets in durations),
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


def callers(rows: sqlite3.Connection) -> dict[int, CallerSeen]:
    """Return the callers by their id."""
    stored = rows.execute("SELECT id, application, key, endpoint, user_agent, first, last FROM callers")
    return {id_: CallerSeen(Caller(*names), first, last) for id_, *names, first, last in stored}


def next_caller_counts(rows: sqlite3.Connection, between: tuple[int, int]) -> list[tuple[int, ...]]:
    """Return the counts of the first day of these that has any: day, id of the caller, and the counts."""
    return rows.execute(
        "SELECT * FROM caller_days WHERE day = (SELECT min(day) FROM caller_days WHERE day BETWEEN ? AND ?)",
        between,
    ).fetchall()
