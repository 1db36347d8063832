"""What `begin` and `finish` do, and the end of reservations without it.

`begin` finds what is stored of each want, and reserves the rest as far as it fits the limits. `finish` books usage,
stores results, and frees the key.
"""

import math
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, Literal, NamedTuple

import lz4.block
import msgspec

from proxy import errors
from proxy.model import Seen
from proxy.store import protocol
from proxy.store.protocol import Begin, Busy, Finish, Found, Hit, Outcome, Refused, Reserved, Result, Usage
from proxy.store.rows import Pair, PartRow, ReservationsRow, Rows, Value

DONE_SECONDS = 60.0  # for which the end of a reservation is known at least
LATE_SECONDS = 32 * 86_400.0  # for which an expired reservation may be finished: its month has ended then
SWEPT = 1_000  # rows of a kind that are looked at in one transaction: others wait for it
MOVED = -1  # start of an expired reservation whose list may be another one since
LOST = "Redis has lost usage of parts; set it as Nexar's portal shows it: v3bridge usage --set APPLICATION=N"
UNCERTAIN = ("expired", "taken")


class Reservation(NamedTuple):
    """Parts that are reserved in accounts and periods, for the list of a query from its element `start` on.

    Expired, they are uncertain usage; taken, others have reserved the query key since. Done, it is known for a while,
    so that it may be sent again. `until` is its deadline while it is open, and later until when it is kept."""

    worker: str
    accounts: tuple[Pair, ...]
    parts: int
    start: int
    until: float
    state: Literal["open", "expired", "taken", "done"] = "open"


_reservations = msgspec.json.Decoder(dict[str, Reservation])
_result = msgspec.msgpack.Decoder(Result)


def begin(rows: Rows, begin: Begin, worker: str) -> Outcome:
    want, others, stored = begin.want, of_key(rows, begin.scope, begin.want.key), _stored(rows, begin)
    own, start = others.get(begin.id), stored.asked if stored else 0
    if own and own.state == "open":  # sent again: nothing more is reserved, perhaps too little for what is stored now
        return Reserved(stored) if own.start <= start else Busy()
    if stored and (want.end <= start or stored.hits <= start):
        return Found(stored)
    if own or any(each.state == "open" for each in others.values()):  # own: sent again, and ended meanwhile
        return Busy()
    parts = want.parts * (want.end - start)
    if rows.epoch and parts:  # data were lost: usage has to be set for the application, and for what has a limit
        lost = [each for each in begin.accounts if rows.text(f"epoch {each.account}") != str(rows.epoch)]
        if len(lost) == len(begin.accounts) or any(account.limit is not None for account in lost):
            return errors.StoreUnavailable(LOST, LOST)
    charged = begin.accounts if parts else ()
    for account in charged:
        if account.limit is not None:
            usage = rows.usage(account[:2])
            left = account.limit - sum(usage[2:])
            if parts > left:
                return Refused(account, max(0, left), usage.reserved)
    rows.add(charged, 0, 0, parts)
    late = {id: each._replace(state="taken") for id, each in others.items() if each.state == "expired"}
    pairs = tuple(account[:2] for account in begin.accounts)
    own = Reservation(worker, pairs, parts, start, rows.now + begin.seconds)
    put(rows, begin.scope, want.key, others | late | {begin.id: own})
    return Reserved(stored)


def _stored(rows: Rows, begin: Begin) -> Result | None:
    """Return what is fresh and has all its parts: a part that the want names, or the stored result of its key."""
    scope, want, candidates = begin.scope, begin.want, []
    if want.part is not None:
        uids = want.part, *rows.uids(scope, want.part)
        candidates = [Result(want.key, want.end, 1, (Hit(uid),), (), fetched=rows.now) for uid in uids]
    if (row := _opened(rows, scope, f"={want.key}", _result.decode)) is not None:
        candidates.append(row.body)
    for found in candidates:
        fresh_from = begin.fresh_from + rows.ahead
        if not found.items and found.details is None:
            fresh_from = max(fresh_from, rows.now - protocol.EMPTY_SECONDS)
        stored = [_opened(rows, scope, hit.uid, lz4.block.decompress) for hit in found.items]
        parts = [part for part in stored if part and not begin.features & ~part.features]
        times = [found.fetched, *(part.fetched for part in parts)]
        if len(parts) == len(stored) and fresh_from <= min(times) and max(times) <= rows.now:
            bodies, ids = tuple([part.body for part in parts]), tuple([part.id for part in parts])
            return found._replace(bodies=bodies, part_ids=ids, fetched=min(times) - rows.ahead)
    return None


def _opened(rows: Rows, scope: str, name: str, decode: Callable[[bytes], Any]) -> Any:
    """Return a row with its body decoded; None without one. One that the disk has damaged is dropped."""
    row = rows.get(PartRow, scope, name)
    try:
        return row and PartRow(*row[:5], decode(row.body))
    except (lz4.block.LZ4BlockError, msgspec.DecodeError, ValueError):
        rows.drop(PartRow, scope, name)
        return None


def finish(rows: Rows, finish: Finish, cache_bytes: int) -> None:
    id, scope, key = finish.begin.id, finish.begin.scope, finish.begin.want.key
    reservations = of_key(rows, scope, key)
    own = reservations.pop(id, None)
    if own is None:
        # It is late; or was booked when it was sent before; or was begun before Redis lost data, and is part of the
        # usage that is set.
        if finish.is_repeated or rows.epoch:
            return
        own = Reservation("", (), 0, 0, rows.now, "taken")
    elif own.state == "done":
        return
    reserved, late = (own.parts, 0) if own.state == "open" else (0, own.parts)
    begun, present = set(own.accounts), {account[:2] for account in finish.accounts}
    rows.add(begun & present, finish.used, finish.uncertain - late, -reserved)
    rows.add(present - begun, finish.used, finish.uncertain, 0)
    # In a period that has ended meanwhile, the upstream may have counted the parts, too.
    rows.add(begun - present, 0, finish.used + finish.uncertain - late, -reserved)
    reservations = {other: _lowered(rows, each, own, finish) for other, each in reservations.items()}
    until = max(rows.now + DONE_SECONDS, own.until if own.state == "open" else 0.0)
    put(rows, scope, key, reservations | {id: Reservation("", (), 0, 0, until, "done")})
    for result in finish.results:
        # After its deadline, others may have taken the key. Before, a result may answer another key than was reserved.
        is_kept = own.state == "open" or (own.state == "expired" and result.key == key)
        if is_kept and sum(map(len, result.bodies)) + len(result.details or b"") <= cache_bytes:
            _store(rows, finish, result)


def _lowered(rows: Rows, other: Reservation, own: Reservation, finish: Finish) -> Reservation:
    """Lower what is uncertain since today to what has come of the same query: a reservation that has expired may have
    cost no more than this one if this one began where it did, and was as long or has the end of the list. The rest of a
    list without a result may show that it is another list now."""
    if other.state not in UNCERTAIN:
        return other
    if own.start and not finish.results:
        return other._replace(start=MOVED)
    came = finish.used + finish.uncertain
    is_as_long = own.parts >= other.parts or any(result.hits <= result.asked for result in finish.results)
    is_today = rows.now < other.until - LATE_SECONDS + protocol.STORED_SECONDS
    if not ((finish.results or finish.used) and is_today and is_as_long and own.start <= other.start):
        return other
    rows.add(other.accounts, 0, min(0, came - other.parts), 0)
    return other._replace(parts=min(came, other.parts))


def _store(rows: Rows, finish: Finish, result: Result) -> None:
    scope, now = finish.begin.scope, rows.now
    fetched = min(result.fetched + rows.ahead, now) if result.fetched else now
    ids = result.part_ids or (None,) * len(result.items)
    for hit, id, body in zip(result.items, ids, result.bodies, strict=True):
        old, features = rows.get(PartRow, scope, hit.uid), finish.features
        # One that is fresh stays if it has more features, or the same and is newer.
        if old is None or not now - protocol.FRESH_SECONDS <= old.fetched <= now or features & ~old.features:
            is_better = True
        else:
            is_better = old.features == features and old.fetched <= fetched
        if is_better:
            rows.put(PartRow(scope, hit.uid, fetched, id, features, lz4.block.compress(body)))
    text = msgspec.msgpack.encode(result._replace(bodies=(), part_ids=(), fetched=fetched))
    rows.put(PartRow(scope, f"={result.key}", fetched, None, 0, text))


def of_key(rows: Rows, scope: str, key: str) -> dict[str, Reservation]:
    row = rows.get(ReservationsRow, scope, key)
    return _reservations.decode(row.text) if row else {}


def put(rows: Rows, scope: str, key: str, reservations: dict[str, Reservation]) -> None:
    left = {id: each for id, each in reservations.items() if each.until > rows.now or each.state == "open"}
    ends = [each.until for each in left.values() if each.state == "open"] or [each.until for each in left.values()]
    rows.put(ReservationsRow(scope, key, max(ends, default=rows.now), msgspec.json.encode(left).decode()))


def expire(rows: Rows, scope: str, key: str, worker: str | None = None) -> bool:
    """Move the open reservation of a key to uncertain usage, if it is this worker's; return whether there is one. The
    key is free, and the reservation stays for a late finish."""
    reservations = of_key(rows, scope, key)
    first = next((id for id, each in reservations.items() if each.state == "open"), None)
    if first is not None and worker in (None, (each := reservations[first]).worker):
        rows.add(each.accounts, 0, each.parts, -each.parts)
        until = max(each.until, rows.now) + LATE_SECONDS
        put(rows, scope, key, reservations | {first: each._replace(state="expired", until=until)})
    return first is not None


def sweep(rows: Rows) -> bool:
    """End what is out of date, a part of it; return whether there may be more."""
    now = rows.now
    ended = rows.timed(ReservationsRow, 0.0, now, SWEPT)
    old: list[Any] = [(ReservationsRow, *key) for key in ended if not expire(rows, *key)]
    old += [(Value, *key) for key in rows.timed(Value, 0.0, now, SWEPT)]
    # A time of tomorrow was written before the clock was set back.
    for first, last in ((0.0, now - protocol.STORED_SECONDS), (now + protocol.STORED_SECONDS, math.inf)):
        old += [(PartRow, *key) for key in rows.timed(PartRow, first, last, SWEPT)]
    may_be_more = len(ended) + len(old) >= SWEPT
    today = int(now // protocol.DAY_SECONDS)
    if rows.text("today", ended=True) != str(today):  # once a day: there may be many
        rows.put_value("today", str(today), protocol.DAY_SECONDS)
        first_day = (date(1970, 1, 1) + timedelta(today - protocol.DAYS_KEPT)).isoformat()
        first_time = (today - protocol.CLIENT_DAYS + 1) * protocol.DAY_SECONDS
        days = (row for row in rows.all(Usage) if len(row.period) == len(first_day))
        old += [(Usage, *row[:2]) for row in days if row.period < first_day]
        for kind in (protocol.CLIENT, *protocol.SEEN_MAX):
            old += [(Seen, *row[:7]) for row in rows.all(Seen, kind) if row.last < first_time]
    for kind, *key in old:
        rows.drop(kind, *key)
    return may_be_more
