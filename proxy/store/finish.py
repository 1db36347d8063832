"""What `finish` does, and the end of reservations without it: usage is booked, results are stored, keys are free."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from proxy.store import protocol
from proxy.store.protocol import Finish, Result
from proxy.store.rows import Pair, PartRow, Reservation, ResultRow, Transaction, Value, json_text

DONE_SECONDS = 60.0  # for which the end of a reservation is known at least
LATE_SECONDS = 32 * 86_400.0  # for which an expired reservation may be finished: its month has ended then
_pairs = msgspec.json.Decoder(list[tuple[str, str]])


def finish(rows: Transaction, finishes: Sequence[Finish], cache_bytes: int) -> None:
    rows.load(Reservation, [(each.id,) for each in finishes])
    keys = [f"busy {each.scope} {result.key}" for each in finishes for result in each.results]
    keys += [f"done {each.id}" for each in finishes]
    rows.load(Value, [(key,) for key in keys])
    hits = ((each.scope, hit.uid) for each in finishes for result in each.results for hit in result.items)
    rows.load(PartRow, hits)
    for each in finishes:
        _finish(rows, each, cache_bytes)


def _finish(rows: Transaction, finish: Finish, cache_bytes: int) -> None:
    begun = rows.get(Reservation, finish.id)
    if begun is None:
        # It is late; or was booked when it was sent before; or was begun before Redis lost data, and is part of the
        # usage that is set.
        if finish.is_repeated or rows.epoch or rows.text(f"done {finish.id}") is not None:
            return
        begun = Reservation(finish.id, "", "[]", 0, rows.now, is_expired=True)
    _book(rows, finish, begun)
    rows.drop(Reservation, finish.id)
    before, seconds = begun.before, max(DONE_SECONDS, begun.deadline - rows.now)
    if before and (finish.results or finish.used or begun.start):
        _lower(rows, begun, finish)
        before = ""
    rows.put_value(f"done {finish.id}", before, protocol.STORED_SECONDS if before else seconds)
    for result in finish.results:
        busy_key = f"busy {finish.scope} {result.key}"
        is_own = rows.text(busy_key) == finish.id
        if is_own:
            rows.drop(Value, busy_key)
        # After its deadline, others may have taken a key. Before, a result may answer another key than was reserved.
        size = sum(map(len, result.bodies)) + len(result.details or b"")
        if (is_own or not begun.is_expired) and size <= cache_bytes:
            _store(rows, finish, result)


def _book(rows: Transaction, finish: Finish, begun: Reservation) -> None:
    present, before = {account[:2] for account in finish.accounts}, _pairs.decode(begun.accounts)
    for pair in present.union(before):
        # In a period that has ended meanwhile, the upstream may have counted the parts, too.
        used, uncertain = (finish.used, finish.uncertain) if pair in present else (0, finish.used + finish.uncertain)
        parts = begun.parts if pair in before else 0
        if begun.is_expired:
            rows.add(pair, used, uncertain - parts, 0)
        else:
            rows.add(pair, used, uncertain, -parts)


def _lower(rows: Transaction, begun: Reservation, finish: Finish) -> None:
    """Lower uncertain parts to what has come of the same query: reservations before this one, which have expired, may
    have cost no more than this one if it began where they did, and was as long or has the end of the list. The rest of
    a list without a result may show that it is another list now."""
    if begun.start and not finish.results:
        return
    came = finish.used + finish.uncertain
    has_end = any(result.hits <= result.asked for result in finish.results)
    id = begun.before
    while row := rows.get(Reservation, id):
        if came < row.parts and begun.start <= row.start and (has_end or begun.parts >= row.parts):
            for pair in _pairs.decode(row.accounts):
                rows.add(pair, 0, came - row.parts, 0)
            rows.put(row._replace(parts=came))
        id = row.before


def _store(rows: Transaction, finish: Finish, result: Result) -> None:
    scope, now = finish.scope, rows.now
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


def expire(rows: Transaction, row: Reservation) -> None:
    """Move an open reservation to uncertain usage. Its keys are free, and its row stays for a late finish."""
    if not row.is_expired:
        for pair in _pairs.decode(row.accounts):
            rows.add(pair, 0, row.parts, -row.parts)
        rows.put(row._replace(is_expired=True, deadline=max(row.deadline, rows.now)))


def forget_account(rows: Transaction, row: Reservation, pair: Pair) -> None:
    """Let a late finish not take off again what is uncertain no more."""
    accounts = _pairs.decode(row.accounts)
    if row.is_expired and pair in accounts:
        rows.put(row._replace(accounts=json_text(other for other in accounts if other != pair)))


def sweep(rows: Transaction) -> None:
    for row in rows.all(Reservation):
        if row.deadline + (LATE_SECONDS if row.is_expired else 0.0) <= rows.now:
            rows.drop(Reservation, row.id) if row.is_expired else expire(rows, row)
    # A time of tomorrow was written before the clock was set back.
    rows.drop_fetched(rows.now - protocol.STORED_SECONDS, rows.now + protocol.STORED_SECONDS)
    first_day = datetime.fromtimestamp(rows.now, UTC).date() - timedelta(protocol.DAYS_KEPT)
    rows.drop_ended(first_day.isoformat())
