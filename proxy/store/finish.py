"""What `finish` does, and the end of reservations without it: usage is booked, results are stored, keys are free."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from proxy.store import protocol
from proxy.store.protocol import Finish, Result, Selection, Usage
from proxy.store.rows import BusyKey, Pair, PartRow, Reservation, ResultRow, Transaction, Value, json_text

DONE_SECONDS = 60.0  # for which the end of a reservation is known at least
LATE_SECONDS = 32 * 86_400.0  # for which an expired reservation may be finished: its month has ended then
_pairs = msgspec.json.Decoder(list[tuple[str, str]])
_keys = msgspec.json.Decoder(list[str])


async def finish(transaction: Transaction, finishes: Sequence[Finish], cache_bytes: int) -> None:
    results = [(finish.scope, result) for finish in finishes for result in finish.results]
    await transaction.read(
        (Reservation, [(finish.id,) for finish in finishes]),
        (Value, [(f"done {finish.id}",) for finish in finishes]),
        (BusyKey, [(scope, result.key) for scope, result in results]),
        (PartRow, {(scope, hit.uid) for scope, result in results for hit in result.items}),
    )
    for each in finishes:
        if transaction.text(f"done {each.id}") is None:
            await _finish(transaction, each, cache_bytes)


async def _finish(transaction: Transaction, finish: Finish, cache_bytes: int) -> None:
    reservation = transaction.get(Reservation, finish.id)
    if reservation is None and (transaction.epoch or finish.is_repeated):
        return  # begun before Redis lost data: part of the usage that is set; or booked when it was sent before
    _book(transaction, finish, reservation)
    own = await _remove(transaction, reservation) if reservation else set()
    is_late = reservation is None or not reservation.is_open
    seconds = max(DONE_SECONDS, reservation.deadline - transaction.now if reservation else 0.0)
    transaction.put_value(f"done {finish.id}", "", seconds)
    for result in finish.results:
        # After its deadline, others may have reserved a key. Before, a result may answer another key than was reserved.
        size = sum(map(len, result.bodies)) + len(result.details or b"")
        if (result.key in own or not is_late) and size <= cache_bytes:
            _store(transaction, finish, result)


def _book(transaction: Transaction, finish: Finish, reservation: Reservation | None) -> None:
    present = {account[:2] for account in finish.accounts}
    begun = _pairs.decode(reservation.accounts) if reservation else []
    for pair in present.union(begun):
        # In a period that has ended meanwhile, the upstream may have counted the parts, too.
        used, uncertain = (finish.used, finish.uncertain) if pair in present else (0, finish.used + finish.uncertain)
        if reservation is None or pair not in begun:
            transaction.add(pair, used, uncertain, 0)
        elif reservation.is_open:
            transaction.add(pair, used, uncertain, -reservation.parts)
        else:
            transaction.add(pair, used, uncertain - reservation.parts, 0)


async def _remove(transaction: Transaction, reservation: Reservation) -> set[str]:
    """Drop a reservation and its busy keys; return those that nobody else has taken since."""
    keys = [(reservation.scope, key) for key in _keys.decode(reservation.keys)]
    await transaction.read((BusyKey, keys))
    own = [row for key in keys if (row := transaction.get(BusyKey, *key)) and row.reservation == reservation.id]
    for row in own:
        transaction.drop(BusyKey, row.scope, row.key)
    transaction.drop(Reservation, reservation.id)
    return {row.key for row in own}


def _store(transaction: Transaction, finish: Finish, result: Result) -> None:
    scope, now = finish.scope, transaction.now
    fetched = min(result.fetched + transaction.ahead, now) if result.fetched else now
    ids = result.part_ids or (None,) * len(result.items)
    for hit, id, body in zip(result.items, ids, result.bodies, strict=True):
        part = PartRow(scope, hit.uid, fetched, id, *finish.selection, body)
        if not _stays(transaction.get(PartRow, scope, hit.uid), part, now):
            transaction.put(part)
            if id is not None:
                transaction.put_value(f"part {scope} {id}", hit.uid, protocol.STORED_SECONDS)
    items = json_text(result.items)
    transaction.put(ResultRow(scope, result.key, fetched, result.asked, result.hits, items, result.details))


def _stays(old: PartRow | None, new: PartRow, now: float) -> bool:
    """Return whether a stored part is fresh and serves more than a new one, or the same and is newer."""
    if old is None or not now - protocol.FRESH_SECONDS <= old.fetched <= now:
        return False
    serves = Selection(old.digest, old.features).serves(Selection(new.digest, new.features))
    return serves and (old.features != new.features or old.fetched > new.fetched)


def expire(transaction: Transaction, row: Reservation) -> None:
    """Move an open reservation to uncertain usage. Its keys are free, and its row stays for a late finish."""
    if row.is_open:
        for pair in _pairs.decode(row.accounts):
            transaction.add(pair, 0, row.parts, -row.parts)
        transaction.put(row._replace(is_open=False, deadline=max(row.deadline, transaction.now)))


def forget_account(transaction: Transaction, row: Reservation, pair: Pair) -> None:
    """Let a late finish not take off again what is uncertain no more."""
    accounts = _pairs.decode(row.accounts)
    if not row.is_open and pair in accounts:
        transaction.put(row._replace(accounts=json_text(other for other in accounts if other != pair)))


async def sweep(transaction: Transaction) -> None:
    for row in await transaction.all(Reservation):
        if row.deadline <= transaction.now:
            expire(transaction, row)
        if not row.is_open and row.deadline + LATE_SECONDS <= transaction.now:
            await _remove(transaction, row)
    # A time of tomorrow was written before the clock was set back.
    await transaction.drop_old(transaction.now - protocol.STORED_SECONDS, transaction.now + protocol.STORED_SECONDS)
    today = datetime.fromtimestamp(transaction.now, UTC).date()
    await transaction.read((Value, [("swept",)]))
    if transaction.text("swept") != today.isoformat():
        transaction.put_value("swept", today.isoformat(), protocol.DAY_SECONDS)
        first = (today - timedelta(protocol.DAYS_KEPT)).isoformat()
        for usage in await transaction.all(Usage):
            if len(usage.period) == len(first) and usage.period < first:
                transaction.drop(Usage, usage.account, usage.period)
