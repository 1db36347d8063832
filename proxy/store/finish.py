"""What `finish` does, and the end of reservations without it: usage is booked, results are stored, keys are free."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from proxy.store import protocol
from proxy.store.protocol import Finish, Result, Usage
from proxy.store.rows import Pair, PartRow, Reservation, ResultRow, Transaction, Value, busy, json_text

DONE_SECONDS = 60.0  # for which the end of a reservation is known at least
LATE_SECONDS = 32 * 86_400.0  # for which an expired reservation may be finished: its month has ended then
_pairs = msgspec.json.Decoder(list[tuple[str, str]])


async def finish(transaction: Transaction, finishes: Sequence[Finish], cache_bytes: int) -> None:
    results = [(finish.scope, result) for finish in finishes for result in finish.results]
    await transaction.read(
        (Reservation, [(finish.id,) for finish in finishes]),
        (Value, [(busy(scope, result.key),) for scope, result in results]),
        (PartRow, {(scope, hit.uid) for scope, result in results for hit in result.items}),
    )
    for each in finishes:
        # One without a row is late; or was begun before Redis lost data, and is part of the usage that is set; or was
        # booked when it was sent before.
        row = transaction.get(Reservation, each.id)
        if row is None and not (transaction.epoch or each.is_repeated):
            row = Reservation(each.id, "", "[]", 0, 0.0, "expired")
        if row is not None and row.state != "done":
            _finish(transaction, each, row, cache_bytes)


def _finish(transaction: Transaction, finish: Finish, row: Reservation, cache_bytes: int) -> None:
    _book(transaction, finish, row)
    transaction.put(row._replace(state="done", until=max(row.until, transaction.now + DONE_SECONDS)))
    for result in finish.results:
        is_own = transaction.text(busy(finish.scope, result.key)) == row.id
        if is_own:
            transaction.drop(Value, busy(finish.scope, result.key))
        # After its deadline, others may have taken a key. Before, a result may answer another key than was reserved.
        size = sum(map(len, result.bodies)) + len(result.details or b"")
        if (is_own or row.state == "open") and size <= cache_bytes:
            _store(transaction, finish, result)


def _book(transaction: Transaction, finish: Finish, row: Reservation) -> None:
    expire(transaction, row)
    present = {account[:2] for account in finish.accounts}
    for pair in present:
        transaction.add(pair, used=finish.used, uncertain=finish.uncertain)
    for pair in _pairs.decode(row.accounts):
        # In a period that has ended meanwhile, the upstream may have counted the parts, too.
        uncertain = 0 if pair in present else finish.used + finish.uncertain
        transaction.add(pair, uncertain=uncertain - row.parts)


def _store(transaction: Transaction, finish: Finish, result: Result) -> None:
    scope, now = finish.scope, transaction.now
    fetched = min(result.fetched + transaction.ahead, now) if result.fetched else now
    ids = result.part_ids or (None,) * len(result.items)
    for hit, id, body in zip(result.items, ids, result.bodies, strict=True):
        part = PartRow(scope, hit.uid, fetched, id, finish.features, body)
        if not _stays(transaction.get(PartRow, scope, hit.uid), part, now):
            transaction.put(part)
            if id is not None:
                transaction.put_value(f"part {scope} {id}", hit.uid, protocol.STORED_SECONDS)
    items = json_text(result.items)
    transaction.put(ResultRow(scope, result.key, fetched, result.asked, result.hits, items, result.details))


def _stays(old: PartRow | None, new: PartRow, now: float) -> bool:
    """Return whether a stored part is fresh and has more features than a new one, or the same and is newer."""
    if old is None or not now - protocol.FRESH_SECONDS <= old.fetched <= now or new.features & ~old.features:
        return False
    return old.features != new.features or old.fetched > new.fetched


def expire(transaction: Transaction, row: Reservation) -> None:
    """Move an open reservation to uncertain usage. Its keys are free, and its row stays for a late finish."""
    if row.state == "open":
        for pair in _pairs.decode(row.accounts):
            transaction.add(pair, uncertain=row.parts, reserved=-row.parts)
        transaction.put(row._replace(state="expired", until=max(row.until, transaction.now) + LATE_SECONDS))


def forget_account(transaction: Transaction, row: Reservation, pair: Pair) -> None:
    """Let a late finish not take off again what is uncertain no more."""
    accounts = _pairs.decode(row.accounts)
    if row.state == "expired" and pair in accounts:
        transaction.put(row._replace(accounts=json_text(other for other in accounts if other != pair)))


async def sweep(transaction: Transaction) -> None:
    for row in await transaction.all(Reservation):
        if row.until <= transaction.now:
            expire(transaction, row)
            if row.state != "open":
                transaction.drop(Reservation, row.id)
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
