"""What `begin` does: it finds what is stored of each want, and reserves the rest as far as it fits the limits."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from proxy import errors
from proxy.store import protocol
from proxy.store.protocol import Begin, Busy, Found, Hit, Outcome, Refused, Reserved, Result, Usage, Want
from proxy.store.rows import Pair, PartRow, Reservation, ResultRow, Transaction, Value, json_text

LOST = "Redis has lost usage of parts; set it as the vendor's portal shows it: v3bridge usage --set APPLICATION=N"
_hits = msgspec.json.Decoder(tuple[Hit, ...])


def begin(rows: Transaction, begins: Sequence[Begin], worker: str) -> list[Outcome]:
    """Reserve in their order, each seeing what those before it have reserved; return the outcomes."""
    reserved: Counter[Pair] = Counter()
    limits: dict[Pair, int] = {}  # of usage before all of them, so that the last one with a limit fits
    _load(rows, begins)
    outcomes = [_begin(rows, each, worker, reserved, limits) for each in begins]
    for pair, parts in reserved.items():
        rows.add(pair, 0, 0, parts, limits[pair] + parts if pair in limits else None)
    return outcomes


def _load(rows: Transaction, begins: Sequence[Begin]) -> None:
    """Read together what most of them need."""
    rows.load(ResultRow, [(each.scope, each.want.key) for each in begins])
    keys = [f"busy {each.scope} {each.want.key}" for each in begins]
    rows.load(Value, [(key,) for key in keys] + [(f"done {each.id}",) for each in begins])
    rows.load(PartRow, [(each.scope, each.want.part) for each in begins if each.want.part is not None])
    ids = [each.id for each in begins] + [id for key in keys if (id := rows.text(key)) is not None]
    rows.load(Reservation, [(id,) for id in ids])


def _candidates(rows: Transaction, scope: str, want: Want) -> Iterator[ResultRow]:
    """Yield what may serve a want: a result of the part that it names, and the stored result of its key."""
    if want.part is not None and (part := rows.part(scope, want.part)) is not None:
        yield ResultRow(scope, want.key, rows.now, want.end, 1, json_text([Hit(part.uid)]), None)
    if (row := rows.get(ResultRow, scope, want.key)) is not None:
        yield row


def _begin(rows: Transaction, begin: Begin, worker: str, reserved: Counter[Pair], limits: dict[Pair, int]) -> Outcome:
    want, busy_key = begin.want, f"busy {begin.scope} {begin.want.key}"
    stored = _stored(rows, begin, want)
    start = 0 if stored is None else stored.asked
    missing = want.end - start
    parts = missing * want.parts
    id = rows.text(busy_key)
    other = None if id is None else rows.get(Reservation, id)
    is_busy = other is not None and not other.is_expired
    if is_busy and id == begin.id:  # sent again: nothing more is reserved
        return Reserved(stored)
    if stored is not None and (missing <= 0 or stored.hits <= stored.asked):
        return Found(stored)
    if is_busy:
        return Busy()
    if parts and (refusal := _refusal(rows, begin, parts, reserved)):
        return refusal
    if rows.get(Reservation, begin.id) is not None or rows.text(f"done {begin.id}") is not None:
        return Busy()  # sent again, and ended meanwhile
    accounts = json_text(account[:2] for account in begin.accounts)
    before = rows.valid_text(busy_key)
    if before is not None and other is None:
        before = rows.valid_text(f"done {before}")
    ends = rows.now + begin.seconds
    rows.put(Reservation(begin.id, worker, accounts, parts, ends, start=start, before=before or ""))
    # As long as a late finish may store the key.
    rows.put_value(busy_key, begin.id, begin.seconds + protocol.STORED_SECONDS)
    reserved.update({account[:2]: parts for account in begin.accounts if parts})
    for account in begin.accounts:
        if parts and account.limit is not None:
            pair = account[:2]
            limits[pair] = min(limits.get(pair, account.limit), account.limit - reserved[pair])
    return Reserved(stored)


def _refusal(
    rows: Transaction, begin: Begin, parts: int, reserved: Counter[Pair]
) -> Refused | errors.StoreUnavailable | None:
    """Return why so many parts are not reserved beside those before them. After a loss of data, usage has to be set for
    the application, and for each account with a limit."""
    if rows.epoch:
        lost = [each for each in begin.accounts if rows.text(f"epoch {each.account}") != str(rows.epoch)]
        if len(lost) == len(begin.accounts) or any(account.limit is not None for account in lost):
            return errors.StoreUnavailable(LOST)
    for account in begin.accounts:
        if account.limit is not None:
            usage = rows.get(Usage, *account[:2]) or Usage(*account[:2])
            before = usage.reserved + reserved[account[:2]]
            left = account.limit - usage.used - usage.uncertain - before
            if parts > left:
                return Refused(account, max(0, left), before)
    return None


def _stored(rows: Transaction, begin: Begin, want: Want) -> Result | None:
    """Return the first candidate that is fresh and has all its parts."""
    for row in _candidates(rows, begin.scope, want):
        items, fresh_from = _hits.decode(row.items), begin.fresh_from + rows.ahead
        if not items and row.details is None:
            fresh_from = max(fresh_from, rows.now - protocol.EMPTY_SECONDS)
        rows.load(PartRow, [(begin.scope, hit.uid) for hit in items])
        parts = [part for hit in items if (part := rows.get(PartRow, begin.scope, hit.uid)) is not None]
        is_whole = len(parts) == len(items) and not any(begin.features & ~part.features for part in parts)
        times = [row.fetched, *(part.fetched for part in parts)]
        if is_whole and fresh_from <= min(times) and max(times) <= rows.now:
            bodies, ids = tuple(part.body for part in parts), tuple(part.id for part in parts)
            return Result(want.key, row.asked, row.hits, items, bodies, ids, row.details, min(times) - rows.ahead)
    return None
