"""What `begin` and `finish` do, and the end of reservations without it.

`begin` finds what is stored of each want, and reserves the rest as far as it fits the limits. `finish` books usage,
stores results, and frees the key.
"""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from proxy import errors
from proxy.store import protocol
from proxy.store.protocol import Begin, Busy, Finish, Found, Hit, Outcome, Refused, Reserved, Result, Usage
from proxy.store.rows import (
    Pair,
    PartRow,
    Reservation,
    ReservationsRow,
    ResultRow,
    Transaction,
    Value,
    json_text,
)

Reservations = dict[str, Reservation]  # of a query key, by id

DONE_SECONDS = 60.0  # for which the end of a reservation is known at least
LATE_SECONDS = 32 * 86_400.0  # for which an expired reservation may be finished: its month has ended then
SWEPT = 1_000  # rows of a kind that are looked at in one transaction: others wait for it
MOVED = -1  # start of an expired reservation whose list may be another one since
LOST = "Redis has lost usage of parts; set it as the vendor's portal shows it: v3bridge usage --set APPLICATION=N"
_reservations = msgspec.json.Decoder(tuple[Reservation, ...])
_hits = msgspec.json.Decoder(tuple[Hit, ...])


def begin(rows: Transaction, begins: Sequence[Begin], worker: str) -> list[Outcome]:
    """Reserve in their order, each seeing what those before it have reserved; return the outcomes."""
    return [_begin(rows, each, worker) for each in begins]


def _begin(rows: Transaction, begin: Begin, worker: str) -> Outcome:
    want, others, stored = begin.want, _of_key(rows, begin.scope, begin.want.key), _stored(rows, begin)
    own, is_busy = others.get(begin.id), _open(others) is not None
    start = stored.asked if stored else 0
    if own and own.state == "open":  # sent again: nothing more is reserved, perhaps too little for what is stored now
        return Reserved(stored) if own.start <= start else Busy()
    if stored and (want.end <= start or stored.hits <= start):
        return Found(stored)
    if own or is_busy:  # own: sent again, and ended meanwhile
        return Busy()
    parts = want.parts * (want.end - start)
    if parts and (refusal := _refusal(rows, begin, parts)):
        return refusal
    for account in begin.accounts if parts else ():
        rows.add(account, 0, 0, parts)
    late = {id: each._replace(state="taken") for id, each in others.items() if each.state == "expired"}
    pairs = tuple(account[:2] for account in begin.accounts)
    own = Reservation(begin.id, worker, pairs, parts, start, rows.now + begin.seconds)
    _put(rows, begin.scope, want.key, others | late | {own.id: own})
    return Reserved(stored)


def _refusal(rows: Transaction, begin: Begin, parts: int) -> Refused | errors.StoreUnavailable | None:
    """Return why so many parts are not reserved. After a loss of data, usage has to be set for the application, and for
    each account with a limit."""
    if rows.epoch:
        lost = [each for each in begin.accounts if rows.text(f"epoch {each.account}") != str(rows.epoch)]
        if len(lost) == len(begin.accounts) or any(account.limit is not None for account in lost):
            return errors.StoreUnavailable(LOST)
    for account in begin.accounts:
        if account.limit is not None:
            usage = rows.usage(account[:2])
            left = account.limit - usage.used - usage.uncertain - usage.reserved
            if parts > left:
                return Refused(account, max(0, left), usage.reserved)
    return None


def _stored(rows: Transaction, begin: Begin) -> Result | None:
    """Return the first candidate that is fresh and has all its parts."""
    for row in _candidates(rows, begin):
        items, fresh_from = _hits.decode(row.items), begin.fresh_from + rows.ahead
        if not items and row.details is None:
            fresh_from = max(fresh_from, rows.now - protocol.EMPTY_SECONDS)
        parts = [part for hit in items if (part := rows.get(PartRow, begin.scope, hit.uid)) is not None]
        is_whole = len(parts) == len(items) and not any(begin.features & ~part.features for part in parts)
        times = [row.fetched, *(part.fetched for part in parts)]
        if is_whole and fresh_from <= min(times) and max(times) <= rows.now:
            bodies, ids = tuple(part.body for part in parts), tuple(part.id for part in parts)
            return Result(row.key, row.asked, row.hits, items, bodies, ids, row.details, min(times) - rows.ahead)
    return None


def _candidates(rows: Transaction, begin: Begin) -> Iterator[ResultRow]:
    """Yield what may serve a want: a result of the part that it names, and the stored result of its key."""
    scope, want = begin.scope, begin.want
    if want.part is not None and (part := rows.part(scope, want.part)) is not None:
        yield ResultRow(scope, want.key, rows.now, want.end, 1, json_text([Hit(part.uid)]), None)
    if (row := rows.get(ResultRow, scope, want.key)) is not None:
        yield row


def finish(rows: Transaction, finish: Finish, cache_bytes: int) -> None:
    id, scope, key = finish.begin.id, finish.begin.scope, finish.begin.want.key
    reservations = _of_key(rows, scope, key)
    own = reservations.pop(id, None)
    if own is None:
        # It is late; or was booked when it was sent before; or was begun before Redis lost data, and is part of the
        # usage that is set.
        if finish.is_repeated or rows.epoch:
            return
        own = Reservation(id, "", (), 0, 0, rows.now, "taken")
    elif own.state == "done":
        return
    _book(rows, finish, own)
    reservations = {other: _lowered(rows, each, own, finish) for other, each in reservations.items()}
    until = max(rows.now + DONE_SECONDS, own.until if own.state == "open" else 0.0)
    reservations[id] = Reservation(id, "", (), 0, 0, until, "done")
    _put(rows, scope, key, reservations)
    for result in finish.results:
        # After its deadline, others may have taken the key. Before, a result may answer another key than was reserved.
        is_kept = own.state == "open" or (own.state == "expired" and result.key == key)
        if is_kept and sum(map(len, result.bodies)) + len(result.details or b"") <= cache_bytes:
            _store(rows, finish, result)


def _book(rows: Transaction, finish: Finish, own: Reservation) -> None:
    present = {account[:2] for account in finish.accounts}
    for pair in present.union(own.accounts):
        # In a period that has ended meanwhile, the upstream may have counted the parts, too.
        used, uncertain = (finish.used, finish.uncertain) if pair in present else (0, finish.used + finish.uncertain)
        parts = own.parts if pair in own.accounts else 0
        if own.state == "open":
            rows.add(pair, used, uncertain, -parts)
        else:
            rows.add(pair, used, uncertain - parts, 0)


def _lowered(rows: Transaction, other: Reservation, own: Reservation, finish: Finish) -> Reservation:
    """Lower what is uncertain since today to what has come of the same query: a reservation that has expired may have
    cost no more than this one if this one began where it did, and was as long or has the end of the list. The rest of a
    list without a result may show that it is another list now."""
    if not _is_uncertain(other):
        return other
    if own.start and not finish.results:
        return other._replace(start=MOVED)
    came = finish.used + finish.uncertain
    is_as_long = own.parts >= other.parts or any(result.hits <= result.asked for result in finish.results)
    is_today = rows.now < other.until - LATE_SECONDS + protocol.STORED_SECONDS
    if not ((finish.results or finish.used) and is_today and is_as_long and own.start <= other.start):
        return other
    for pair in other.accounts:
        rows.add(pair, 0, min(0, came - other.parts), 0)
    return other._replace(parts=min(came, other.parts))


def _store(rows: Transaction, finish: Finish, result: Result) -> None:
    scope, now = finish.begin.scope, rows.now
    fetched = min(result.fetched + rows.ahead, now) if result.fetched else now
    ids = result.part_ids or (None,) * len(result.items)
    for hit, id, body in zip(result.items, ids, result.bodies, strict=True):
        part = PartRow(scope, hit.uid, fetched, id, finish.features, body)
        if not _stays(rows.get(PartRow, scope, hit.uid), part, now):
            rows.put(part)
    items = json_text(result.items)
    rows.put(ResultRow(scope, result.key, fetched, result.asked, result.hits, items, result.details))


def _stays(old: PartRow | None, new: PartRow, now: float) -> bool:
    """Return whether a stored part is fresh and has more features than a new one, or the same and is newer."""
    if old is None or not now - protocol.FRESH_SECONDS <= old.fetched <= now or new.features & ~old.features:
        return False
    return old.features != new.features or old.fetched > new.fetched


def _of_key(rows: Transaction, scope: str, key: str) -> Reservations:
    row = rows.get(ReservationsRow, scope, key)
    return _decoded(row) if row else {}


def _decoded(row: ReservationsRow) -> Reservations:
    return {each.id: each for each in _reservations.decode(row.text)}


def _put(rows: Transaction, scope: str, key: str, reservations: Reservations) -> None:
    first = _open(reservations)
    left = [each for each in reservations.values() if each.until > rows.now or each is first]
    until = first.until if first else max((each.until for each in left), default=rows.now)
    rows.put(ReservationsRow(scope, key, until, json_text(left)))


def _open(reservations: Reservations) -> Reservation | None:
    return next((each for each in reservations.values() if each.state == "open"), None)


def _is_uncertain(reservation: Reservation) -> bool:
    return reservation.state in ("expired", "taken")


def expire(rows: Transaction, row: ReservationsRow, worker: str | None = None) -> bool:
    """Move the open reservation of a key to uncertain usage, if it is this worker's; return whether there is one. The
    key is free, and the reservation stays for a late finish."""
    reservations = _decoded(row)
    first = _open(reservations)
    if first and worker in (None, first.worker):
        for pair in first.accounts:
            rows.add(pair, 0, first.parts, -first.parts)
        until = max(first.until, rows.now) + LATE_SECONDS
        reservations[first.id] = first._replace(state="expired", until=until)
        _put(rows, row.scope, row.key, reservations)
    return first is not None


def set_usage(rows: Transaction, pair: Pair, used: int) -> None:
    """Replace usage. A late finish takes nothing off again that is uncertain no more."""
    rows.put(rows.usage(pair)._replace(used=used, uncertain=0))
    for row in rows.all(ReservationsRow):
        reservations = _decoded(row)
        if late := [each for each in reservations.values() if _is_uncertain(each) and pair in each.accounts]:
            for each in late:
                accounts = tuple(other for other in each.accounts if other != pair)
                reservations[each.id] = each._replace(accounts=accounts)
            _put(rows, row.scope, row.key, reservations)


def sweep(rows: Transaction) -> bool:
    """End what is out of date, a part of it; return whether there may be more."""
    now, day = rows.now, protocol.STORED_SECONDS
    ended = [*rows.ended(ReservationsRow, now, SWEPT)]
    for row in ended:
        if not expire(rows, row):
            rows.drop(ReservationsRow, row.scope, row.key)
    # A time of tomorrow was written before the clock was set back.
    old = rows.fetched(-math.inf, now - day, SWEPT) + rows.fetched(now + day, math.inf, SWEPT)
    for kind, key in old:
        rows.drop(kind, *key)
    values = [*rows.ended(Value, now, SWEPT)]
    for value in values:
        rows.drop(Value, value.key)
    first_day = (datetime.fromtimestamp(now, UTC).date() - timedelta(protocol.DAYS_KEPT)).isoformat()
    if rows.text("first day") != first_day:  # once a day: there may be many
        rows.put_value("first day", first_day, protocol.DAY_SECONDS)
        for usage in rows.all(Usage):
            if len(usage.period) == len(first_day) and usage.period < first_day:
                rows.drop(Usage, *usage[:2])
    return max(len(ended), len(old), len(values)) >= SWEPT
