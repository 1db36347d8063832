"""What `begin` does: it finds what is stored of each want, and reserves the rest as far as it fits the limits."""

from collections.abc import Iterator, Sequence

import msgspec

from proxy import errors
from proxy.store import protocol
from proxy.store.protocol import Begin, Busy, Found, Hit, Outcome, Refused, Reserved, Result, Selection, Usage, Want
from proxy.store.rows import BusyKey, PartRow, Reservation, ResultRow, Transaction, Value, json_text

LOST = "Redis has lost usage of parts; set it as the vendor's portal shows it: v3bridge usage --set APPLICATION=N"
_hits = msgspec.json.Decoder(tuple[Hit, ...])


async def begin(transaction: Transaction, begins: Sequence[Begin], worker: str) -> list[list[Outcome]]:
    """Reserve wants in their order, each seeing what those before it have reserved; return their outcomes."""
    await _read(transaction, begins)
    return [_begin(transaction, begin, worker) for begin in begins]


async def _read(transaction: Transaction, begins: Sequence[Begin]) -> None:
    wants = [(begin.scope, want) for begin in begins for want in begin.wants]
    keys = [(scope, want.key) for scope, want in wants]
    accounts = {account[:2] for begin in begins for account in begin.accounts}
    values = {f"done {begin.id}" for begin in begins}
    values.update(f"part {scope} {want.part_id}" for scope, want in wants if want.part_id is not None)
    if transaction.epoch:
        values.update(f"epoch {account}" for account, _ in accounts)
    await transaction.read(
        (Reservation, [(begin.id,) for begin in begins]),
        (BusyKey, keys),
        (ResultRow, keys),
        (Value, [(value,) for value in values]),
        (Usage, accounts),
    )
    busy = {(row.reservation,) for key in keys if (row := transaction.get(BusyKey, *key)) is not None}
    parts = {(scope, uid) for scope, want in wants for uid in _uids(transaction, scope, want)}
    if busy or parts:
        await transaction.read((Reservation, busy), (PartRow, parts))


def _uids(transaction: Transaction, scope: str, want: Want) -> Iterator[str]:
    """Yield the uids of all parts that may serve a want."""
    if (uid := _uid(transaction, scope, want)) is not None:
        yield uid
    if (row := transaction.get(ResultRow, scope, want.key)) is not None:
        yield from (hit.uid for hit in _hits.decode(row.items))


def _uid(transaction: Transaction, scope: str, want: Want) -> str | None:
    """Return the uid of the part that a want names."""
    if want.uid is not None or want.part_id is None:
        return want.uid
    return transaction.text(f"part {scope} {want.part_id}")


def _begin(transaction: Transaction, begin: Begin, worker: str) -> list[Outcome]:
    is_second = transaction.get(Reservation, begin.id) is not None or transaction.text(f"done {begin.id}") is not None
    accounts, deadline = json_text(account[:2] for account in begin.accounts), transaction.now + begin.seconds
    new = Reservation(begin.id, worker, begin.scope, "[]", accounts, 0, deadline, True)
    outcomes: list[Outcome] = []
    keys: list[str] = []
    for want in begin.wants:
        stored = _stored(transaction, begin, want)
        missing = want.end - (0 if stored is None else stored.asked)
        parts = missing * want.parts
        busy = transaction.get(BusyKey, begin.scope, want.key)
        other = transaction.get(Reservation, busy.reservation) if busy else None
        outcome: Outcome
        if is_second and other and other.is_open and other.id == begin.id:
            outcome = Reserved(stored)
        elif stored is not None and (missing <= 0 or stored.hits <= stored.asked):
            outcome = Found(stored)
        elif other and other.is_open:
            outcome = Busy()
        elif parts and (refusal := _refusal(transaction, begin, parts)):
            outcome = refusal
        elif is_second:
            outcome = Busy()  # sent again: nothing more is reserved
        else:
            outcome = Reserved(stored)
            keys.append(want.key)
            new = new._replace(keys=json_text(keys), parts=new.parts + parts)
            transaction.put(new)
            transaction.put(BusyKey(begin.scope, want.key, begin.id))
            for account, period, limit in begin.accounts:
                transaction.add((account, period), 0, 0, parts, limit if parts else None)
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
        usage = transaction.get(Usage, *account[:2])
        left = (account.limit or 0) - sum(usage[2:] if usage else ())
        if account.limit is not None and parts > left:
            return Refused(account, max(0, left))
    return None


def _stored(transaction: Transaction, begin: Begin, want: Want) -> Result | None:
    """Return the part that a want names, else the result of its key if that is fresh and has all its parts."""
    scope, ahead, fresh_from = begin.scope, transaction.ahead, begin.fresh_from + transaction.ahead

    def part(uid: str) -> PartRow | None:
        row = transaction.get(PartRow, scope, uid)
        is_fresh = row is not None and fresh_from <= row.fetched <= transaction.now
        return row if row and is_fresh and Selection(row.digest, row.features).serves(begin.selection) else None

    uid = _uid(transaction, scope, want)
    if uid is not None and (named := part(uid)) is not None:
        fetched = named.fetched - ahead
        return Result(want.key, want.end, 1, (Hit(uid),), (named.body,), (named.id,), None, fetched)
    row = transaction.get(ResultRow, scope, want.key)
    if row is None:
        return None
    items = _hits.decode(row.items)
    parts = [found for hit in items if (found := part(hit.uid)) is not None]
    oldest_allowed = fresh_from if items else max(fresh_from, transaction.now - protocol.EMPTY_SECONDS)
    if len(parts) < len(items) or not oldest_allowed <= row.fetched <= transaction.now:
        return None
    bodies, ids = tuple(found.body for found in parts), tuple(found.id for found in parts)
    fetched = min([row.fetched, *(found.fetched for found in parts)]) - ahead
    return Result(want.key, row.asked, row.hits, items, bodies, ids, row.details, fetched)
