"""Outcomes of wants: what SQLite has stored of them, and which of them fit the limits. Nothing is written here."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from proxy.store import protocol
from proxy.store.protocol import Begin, Busy, Found, Hit, Outcome, Refused, Reserved, Result, Want

_WANT = """
WITH want AS MATERIALIZED (
    SELECT key AS place, value ->> 0 AS scope, value ->> 1 AS key, value ->> 2 AS id, value ->> 3 AS fresh_from,
        value ->> 4 AS digest, value ->> 5 AS features, value ->> 6 AS uid, value ->> 7 AS part_id FROM json_each(?1)
)
"""
_WANTS = f"""{_WANT}
SELECT place, own.id IS NOT NULL, other.id IS NOT NULL, ifnull(other.id = own.id, false),
    asked, hits, items, details, fetched
FROM want LEFT JOIN reservation AS own ON own.id = want.id
LEFT JOIN busy USING (scope, key) LEFT JOIN reservation AS other ON other.id = reservation AND other.state = 'open'
LEFT JOIN result ON result.scope = want.scope AND result.key = want.key AND fetched BETWEEN
    iif(items = '[]', max(fresh_from, ?2 - {protocol.EMPTY_SECONDS}), fresh_from) AND ?2
"""  # noqa: S608 - constants only
_USABLE = "part.fetched BETWEEN fresh_from AND ?2 AND part.digest = want.digest AND want.features & ~part.features = 0"
# Parts of results, by their places in them, and parts that have the uid or id of a want.
_PARTS = f"""{_WANT}
SELECT place, hit.key AS element, part.uid, part.id, body, part.fetched FROM want CROSS JOIN result USING (scope, key)
CROSS JOIN json_each(items) AS hit CROSS JOIN part ON part.scope = want.scope AND part.uid = hit.value ->> 0
WHERE {_USABLE} UNION ALL
SELECT place, NULL, part.uid, part.id, body, part.fetched FROM want CROSS JOIN part ON part.scope = want.scope AND
    part.uid = ifnull(want.uid, (SELECT uid FROM part WHERE part.scope = want.scope AND part.id = want.part_id))
WHERE {_USABLE}
"""  # noqa: S608
_COUNTED = """
SELECT account, period, used + uncertain + reserved FROM json_each(?) AS wanted
JOIN usage ON account = wanted.value ->> 0 AND period = wanted.value ->> 1
"""
_hits = msgspec.json.Decoder(tuple[Hit, ...])

Pair = tuple[str, str]  # account and period; scope and key


class Decision(NamedTuple):
    """Outcomes of the wants of a `begin`, and the keys to be reserved for it, with the most parts that each costs."""

    outcomes: list[Outcome]
    reserved: list[tuple[str, int]]


class _Wanted(NamedTuple):
    """State of a want: whether its reservation is known; whether its key is busy, and by this reservation; its result,
    if it is fresh and all its parts serve the selection."""

    want: Want
    is_known: bool
    is_busy: bool
    is_own: bool
    stored: Result | None


class _Part(NamedTuple):
    """Part that is fresh and serves the selection."""

    uid: str
    id: str | None
    body: bytes
    fetched: float


def decide(connection: sqlite3.Connection, begins: Sequence[Begin], now: float) -> list[Decision]:
    """Return what each begin finds, and what it has to reserve."""
    wanted = _read(connection, begins, now)
    pairs = json_text((account.account, account.period) for begin in begins for account in begin.accounts)
    counted = defaultdict[Pair, int](int)
    counted.update({(account, period): parts for account, period, parts in connection.execute(_COUNTED, (pairs,))})
    busy: set[Pair] = set()
    return [_decide(begin, [next(wanted) for _ in begin.wants], counted, busy) for begin in begins]


def json_text(values: Iterable[Any]) -> str:
    """Return values as SQLite's json_each takes them."""
    return msgspec.json.encode(list(values)).decode()


def _read(connection: sqlite3.Connection, begins: Sequence[Begin], now: float) -> Iterator[_Wanted]:
    """Yield the state of each want of each begin."""
    wants = [(begin, want) for begin in begins for want in begin.wants]
    text = json_text(
        (begin.scope, want.key, begin.id, begin.fresh_from, *begin.selection, want.uid, want.part_id)
        for begin, want in wants
    )
    rows = {place: row for place, *row in connection.execute(_WANTS, (text, now))}
    parts: defaultdict[int, dict[int | None, _Part]] = defaultdict(dict)
    if any(row[3] is not None for row in rows.values()) or any(want.uid or want.part_id for _, want in wants):
        for place, element, *part in connection.execute(_PARTS, (text, now)):
            parts[place][element] = _Part(*part)
    for place, (_, want) in enumerate(wants):
        is_known, is_busy, is_own, *result = rows[place]
        yield _Wanted(want, is_known, is_busy, is_own, _stored(want, parts[place], result))


def _stored(want: Want, parts: dict[int | None, _Part], row: list[Any]) -> Result | None:
    """Return the part that has the uid or id of a want, else its result if all its parts are there."""
    if (part := parts.get(None)) is not None:
        return Result(want.key, want.end, 1, (Hit(part.uid),), (part.body,), (part.id,), None, part.fetched)
    asked, hits, items, details, fetched = row
    if asked is None:
        return None
    elements = _hits.decode(items)
    if len(elements) != len(parts):
        return None
    found = [parts[place] for place in range(len(elements))]
    bodies, ids = tuple(part.body for part in found), tuple(part.id for part in found)
    oldest = min([fetched, *(part.fetched for part in found)])
    return Result(want.key, asked, hits, elements, bodies, ids, details, oldest)


def _decide(begin: Begin, wanted: list[_Wanted], counted: dict[Pair, int], busy: set[Pair]) -> Decision:
    """Decide on wants in their order; add what is reserved to `counted` and `busy`, for those that follow."""
    decision = Decision([], [])
    for want, is_known, is_busy, is_own, stored in wanted:
        missing = want.end - (0 if stored is None else stored.asked)
        parts = missing * want.parts
        outcome: Outcome
        if is_own:
            outcome = Reserved(stored)
        elif stored is not None and (missing <= 0 or stored.hits <= stored.asked):
            outcome = Found(stored)
        elif is_busy or (begin.scope, want.key) in busy:
            outcome = Busy()
        elif (refused := _refused(begin, parts, counted)) is not None:
            outcome = refused
        elif is_known:
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
