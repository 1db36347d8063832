"""Outcomes of wants: what SQLite has stored of them, and which of them fit the limits. Nothing is written."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from proxy.store import protocol
from proxy.store.protocol import Begin, Busy, Found, Hit, Outcome, Refused, Reserved, Result, Selection, Want

_WANTS = """
SELECT want.value ->> 1, own.id IS NOT NULL, busy_by.id IS NOT NULL, busy_by.id = own.id,
    fetched, asked, hits, items, details
FROM json_each(?) AS want
LEFT JOIN reservation AS own ON own.id = want.value ->> 2
LEFT JOIN busy ON busy.scope = want.value ->> 0 AND busy.key = want.value ->> 1
LEFT JOIN reservation AS busy_by ON busy_by.id = busy.reservation AND busy_by.state = 'open'
LEFT JOIN result ON result.scope = want.value ->> 0 AND result.key = want.value ->> 1
ORDER BY want.key
"""
_PARTS = """
SELECT scope, uid, part.id, digest, features, fetched, body FROM json_each(?) AS wanted
JOIN part ON scope = wanted.value ->> 0 AND part.{} = wanted.value ->> 1
"""
_COUNTED = """
SELECT account, period, used + uncertain + reserved FROM json_each(?) AS wanted
JOIN usage ON account = wanted.value ->> 0 AND period = wanted.value ->> 1
"""
_decode_hits = msgspec.json.Decoder(tuple[Hit, ...]).decode

Pair = tuple[str, str]  # scope and key, uid or id; account and period


class Decision(NamedTuple):
    """Outcomes of the wants of a `begin`, and the keys to be reserved for it, with the most parts that each costs."""

    outcomes: list[Outcome]
    reserved: list[tuple[str, int]]


class _Row(NamedTuple):
    """Row of a want: whether its reservation is known, its key busy, and busy by that reservation; then its result."""

    key: str
    is_known: bool
    is_busy: bool
    is_own: bool
    fetched: float | None
    asked: int
    hits: int
    items: bytes
    details: bytes | None


class _Part(NamedTuple):
    """Stored part."""

    scope: str
    uid: str
    id: str | None
    digest: str
    features: int
    fetched: float
    body: bytes

    def serves(self, begin: Begin, now: float) -> bool:
        stored = Selection(self.digest, self.features)
        return begin.fresh_from <= self.fetched <= now and stored.serves(begin.selection)


def decide(connection: sqlite3.Connection, begins: Sequence[Begin], now: float) -> list[Decision]:
    """Return what each begin finds, and what it has to reserve."""
    places = [(begin, want) for begin in begins for want in begin.wants]
    keys = json_text((begin.scope, want.key, begin.id) for begin, want in places)
    rows = [_Row(*row) for row in connection.execute(_WANTS, (keys,))]
    results = iter(_results(connection, places, rows, now))
    wanted = iter(rows)
    counted = _counted(connection, begins)
    busy: set[Pair] = set()
    return [
        _decide(begin, [(want, next(wanted), next(results)) for want in begin.wants], counted, busy) for begin in begins
    ]


def json_text(values: Iterable[Any]) -> str:
    """Return values as SQLite's json_each takes them."""
    return msgspec.json.encode(list(values)).decode()


def _decide(
    begin: Begin, wants: list[tuple[Want, _Row, Result | None]], counted: dict[Pair, int], busy: set[Pair]
) -> Decision:
    """Decide on wants in their order; add what is reserved to `counted` and `busy`, for those that follow."""
    decision = Decision([], [])
    for want, row, stored in wants:
        missing = want.end - (0 if stored is None else stored.asked)
        parts = missing * want.parts
        outcome: Outcome
        if row.is_own:
            outcome = Reserved(stored)
        elif stored is not None and (missing <= 0 or stored.hits <= stored.asked):
            outcome = Found(stored)
        elif row.is_busy or (begin.scope, want.key) in busy:
            outcome = Busy()
        elif (refused := _refused(begin, parts, counted)) is not None:
            outcome = refused
        elif row.is_known:
            outcome = Busy()  # sent again: nothing more is reserved
        else:
            outcome = Reserved(stored)
            decision.reserved.append((want.key, parts))
            busy.add((begin.scope, want.key))
            for account in begin.accounts:
                counted[account.account, account.period] += parts
        decision.outcomes.append(outcome)
    return decision


def _refused(begin: Begin, parts: int, counted: dict[Pair, int]) -> Refused | None:
    """Return the refusal by the first account that so many parts do not fit."""
    for account in begin.accounts:
        if parts and account.limit is not None:
            left = account.limit - counted[account.account, account.period]
            if parts > left:
                return Refused(account, max(0, left))
    return None


def _counted(connection: sqlite3.Connection, begins: Sequence[Begin]) -> dict[Pair, int]:
    """Return the parts of accounts that count against their limits."""
    pairs = {(account.account, account.period) for begin in begins for account in begin.accounts}
    counted = defaultdict[Pair, int](int)
    counted.update(
        ((account, period), parts) for account, period, parts in connection.execute(_COUNTED, (json_text(pairs),))
    )
    return counted


def _results(
    connection: sqlite3.Connection, places: list[tuple[Begin, Want]], rows: list[_Row], now: float
) -> Iterator[Result | None]:
    """Return what is stored of each want, if it is fresh and serves the selection."""
    items = [_fresh_items(begin, row, now) for (begin, _), row in zip(places, rows, strict=True)]
    uids = [(begin.scope, hit.uid) for (begin, _), hits in zip(places, items, strict=True) for hit in hits or ()]
    uids += [(begin.scope, want.uid) for begin, want in places if want.uid is not None]
    ids = [(begin.scope, want.part_id) for begin, want in places if want.part_id is not None]
    by_uid = {(part.scope, part.uid): part for part in _parts(connection, "uid", uids)}
    by_id = {(part.scope, part.id): part for part in _parts(connection, "id", ids)}
    for (begin, want), row, hits in zip(places, rows, items, strict=True):
        part = by_uid.get((begin.scope, want.uid or "")) or by_id.get((begin.scope, want.part_id))
        if part is not None and part.serves(begin, now):
            yield Result(want.key, want.end, 1, (Hit(part.uid),), (part.body,), (part.id,), None, part.fetched)
        else:
            yield _stored_result(begin, row, hits, by_uid, now)


def _fresh_items(begin: Begin, row: _Row, now: float) -> tuple[Hit, ...] | None:
    """Return the elements of a result; None if there is none, or it is out of date."""
    if row.fetched is None or not begin.fresh_from <= row.fetched <= now:
        return None
    hits = _decode_hits(row.items)
    return hits if hits or row.fetched >= now - protocol.EMPTY_SECONDS else None


def _stored_result(
    begin: Begin, row: _Row, hits: tuple[Hit, ...] | None, by_uid: dict[Pair, _Part], now: float
) -> Result | None:
    """Return a result whose parts are all there."""
    if hits is None or row.fetched is None:
        return None
    parts = [by_uid.get((begin.scope, hit.uid)) for hit in hits]
    found = [part for part in parts if part is not None and part.serves(begin, now)]
    if len(found) < len(parts):
        return None
    bodies, ids = tuple(part.body for part in found), tuple(part.id for part in found)
    fetched = min([row.fetched, *(part.fetched for part in found)])
    return Result(row.key, row.asked, row.hits, hits, bodies, ids, row.details, fetched)


def _parts(connection: sqlite3.Connection, column: str, wanted: Sequence[Pair]) -> list[_Part]:
    """Return stored parts by scope and uid, or scope and id."""
    if not wanted:
        return []
    return [_Part(*row) for row in connection.execute(_PARTS.format(column), (json_text(set(wanted)),))]
