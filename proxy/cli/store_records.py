"""Records of the store for people: what `v3bridge store export` prints, from SQLite and Redis alike."""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from proxy.kit.wording import rfc3339

if TYPE_CHECKING:
    from proxy.stores.protocols import Store

DAYS = 400  # more than the service keeps

Kind = Literal["usage", "exhausted", "months", "callers", "days", "unsupported", "unknown-keys", "alerts", "audit"]
Rows = Iterable[Sequence[Any]]


async def _usage(store: "Store") -> Rows:
    return [(*each.entry, each.used, each.uncertain, each.reserved) for each in await store.all_usage()]


async def _exhausted(store: "Store") -> Rows:
    return [(each.account, rfc3339(each.until), each.reason) for each in await store.exhausted_quotas()]


async def _months(store: "Store") -> Rows:
    today = datetime.now(UTC).date()
    months = sorted({f"{today - timedelta(days):%Y-%m}" for days in range(DAYS)})
    return [row for month in months for row in await store.monthly_requests(month)]


async def _callers(store: "Store") -> Rows:
    return [(*each.caller, rfc3339(each.first), rfc3339(each.last)) for each in sorted(await store.callers())]


async def _days(store: "Store") -> Rows:
    today = int(time.time() // 86_400)
    _, counts = await store.caller_usage(today - DAYS, today)
    epoch = date(1970, 1, 1)
    return [
        (f"{epoch + timedelta(each.day)}", *each.caller, each.requests, each.errors, each.parts)
        for each in sorted(counts)
    ]


async def _unsupported(store: "Store") -> Rows:
    return [(*each[:4], rfc3339(each.first), rfc3339(each.last)) for each in await store.unsupported_uses()]


async def _unknown_keys(store: "Store") -> Rows:
    return [
        (each.digest, each.address, each.user_agent, rfc3339(each.first), rfc3339(each.last), each.requests)
        for each in await store.unknown_keys()
    ]


async def _alerts(store: "Store") -> Rows:
    from proxy.alerts import records

    return [
        (record.alert.at, record.alert.event, record.alert.status, record.alert.severity, record.alert.title)
        for record in await records.recent(store)
    ]


async def _audit(store: "Store") -> Rows:
    from proxy.stores.protocols import AUDIT_MAX

    return [(rfc3339(each.at), *each[1:]) for each in await store.audit_entries(0, AUDIT_MAX)]


_CALLER = ("application", "key", "endpoint", "user_agent")

KINDS: dict[Kind, tuple[tuple[str, ...], Callable[["Store"], Awaitable[Rows]]]] = {
    "usage": (("account", "period", "used", "uncertain", "reserved"), _usage),
    "exhausted": (("account", "until", "reason"), _exhausted),
    "months": (("month", "application", "key", "requests", "hits", "cached", "coalesced"), _months),
    "callers": ((*_CALLER, "first_seen", "last_seen"), _callers),
    "days": (("day", *_CALLER, "requests", "errors", "parts"), _days),
    "unsupported": (("application", "key", "name", "requests", "first_seen", "last_seen"), _unsupported),
    "unknown-keys": (("digest", "address", "user_agent", "first_seen", "last_seen", "requests"), _unknown_keys),
    "alerts": (("at", "event", "status", "severity", "title"), _alerts),
    "audit": (("at", "who", "address", "action", "parameters", "result"), _audit),
}
"""Columns and reader of each kind of records."""
