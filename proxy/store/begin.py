"""What `begin` does: it finds what is stored of each want, and reserves the rest as far as it fits the limits."""

from collections.abc import Iterator, Sequence

import msgspec

from proxy import errors
from proxy.store import protocol
from proxy.store.protocol import Begin, Busy, Found, Hit, Outcome, Refused, Reserved, Result, Usage, Want
from proxy.store.rows import PartRow, Reservation, ResultRow, Transaction, Value, busy, json_text

LOST = "Redis has lost usage of parts; set it as the vendor's portal shows it: v3bridge usage --set APPLICATION=N"
_hits = msgspec.json.Decoder(tuple[Hit, ...])


async def begin(transaction: Transaction, begins: Sequence[Begin], worker: str) -> list[list[Outcome]]:
    """Reserve wants in their order, each seeing what those before it have reserved; return their outcomes."""
    await _read(transaction, begins)
    return [_begin(transaction, begin, worker) for begin in begins]


async def _read(transaction: Transaction, begins: Sequence[Begin]) -> None:
    wants = [(begin.scope, want) for begin in begins for want in begin.wants]
    accounts = {account for begin in begins for account in begin.accounts}
    taken = [busy(scope, want.key) for scope, want in wants]
    values = {*taken, *(f"part {scope} {want.part}" for scope, want in wants if want.part is not None)}
    if transaction.epoch:
        values.update(f"epoch {account.account}" for account in accounts)
    await transaction.read(
        (Reservation, [(begin.id,) for begin in begins]),
        (ResultRow, [(scope, want.key) for scope, want in wants]),
        (Value, [(value,) for value in values]),
        (Usage, {account[:2] for account in accounts if account.limit is not None}),
    )
    others = {(id,) for key in taken if (id := transaction.text(key)) is not None}
    candidates = [row for scope, want in wants for row in _candidates(transaction, scope, want)]
    parts = {(row.scope, hit.uid) for row in candidates for hit in _hits.decode(row.items)}
    await transaction.read((Reservation, others), (PartRow, parts))


def _candidates(transaction: Transaction, scope: str, want: Want) -> Iterator[ResultRow]:
    """Yield what may serve a want: a result of the part that it names, and the stored result of its key."""
    if want.part is not None:
        for uid in (want.part, transaction.text(f"part {scope} {want.part}")):
            if uid is not None:
                yield ResultRow(scope, want.key, transaction.now, want.end, 1, json_text([Hit(uid)]), None)
    if (row := transaction.get(ResultRow, scope, want.key)) is not None:
        yield row


def _begin(transaction: Transaction, begin: Begin, worker: str) -> list[Outcome]:
    is_second = transaction.get(Reservation, begin.id) is not None
    accounts, deadline = json_text(account[:2] for account in begin.accounts), transaction.now + begin.seconds
    new = Reservation(begin.id, worker, accounts, 0, deadline)
    outcomes: list[Outcome] = []
    for want in begin.wants:
        stored = _stored(transaction, begin, want)
        missing = want.end - (0 if stored is None else stored.asked)
        parts = missing * want.parts
        other = transaction.get(Reservation, transaction.text(busy(begin.scope, want.key)))
        taken_by = other.id if other is not None and other.state == "open" else None
        outcome: Outcome
        if is_second and taken_by == begin.id:
            outcome = Reserved(stored)
        elif stored is not None and (missing <= 0 or stored.hits <= stored.asked):
            outcome = Found(stored)
        elif taken_by is not None:
            outcome = Busy()
        elif parts and (refusal := _refusal(transaction, begin, parts)):
            outcome = refusal
        elif is_second:
            outcome = Busy()  # sent again: nothing more is reserved
        else:
            outcome = Reserved(stored)
            new = new._replace(parts=new.parts + parts)
            transaction.put(new)
            transaction.put_value(busy(begin.scope, want.key), begin.id, protocol.DAY_SECONDS)
            for account in begin.accounts:
                transaction.reserve(account, parts)
        outcomes.append(outcome)
    return outcomes


def _refusal(transaction: Transaction, begin: Begin, parts: int) -> Refused | errors.StoreUnavailable | None:
    """Return why so many parts are not reserved. After a loss of data, usage has to be set for the application, and for
    each account with a limit."""
    if epoch := transaction.epoch:
        lost = [each for each in begin.accounts if transaction.text(f"epoch {each.account}") != str(epoch)]
        if len(lost) == len(begin.accounts) or any(account.limit is not None for account in lost):
            return errors.StoreUnavailable(LOST)
    for account in begin.accounts:
        if account.limit is None:
            continue
        usage = transaction.usage(account[:2])
        left = account.limit - sum(usage[2:])
        if parts > left:
            return Refused(account, max(0, left), usage.reserved)
    return None


def _stored(transaction: Transaction, begin: Begin, want: Want) -> Result | None:
    """Return the first candidate that is fresh and has all its parts."""
    now, ahead = transaction.now, transaction.ahead
    for row in _candidates(transaction, begin.scope, want):
        items = _hits.decode(row.items)
        fresh_from = begin.fresh_from + ahead
        if not items and row.details is None:
            fresh_from = max(fresh_from, now - protocol.EMPTY_SECONDS)
        parts = [part for hit in items if (part := transaction.get(PartRow, begin.scope, hit.uid)) is not None]
        is_whole = len(parts) == len(items) and not any(begin.features & ~part.features for part in parts)
        times = [row.fetched, *(part.fetched for part in parts)]
        if is_whole and fresh_from <= min(times) and max(times) <= now:
            bodies, ids = tuple(part.body for part in parts), tuple(part.id for part in parts)
            return Result(want.key, row.asked, row.hits, items, bodies, ids, row.details, min(times) - ahead)
    return None
