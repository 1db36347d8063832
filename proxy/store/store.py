"""The store: results of queries, reservations and usage of parts, small values, and who called.

Each operation is one transaction, in SQLite (sqlite.py) or in Redis (redis.py). What it does is written once, for both:
here, in begin.py and in finish.py. It raises errors.StoreUnavailable where the store cannot be used; then nothing was
changed, or all of it.
"""

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from proxy.kit.windows import Window
from proxy.store import begin, finish, protocol
from proxy.store.protocol import Account, Begin, Finish, Outcome, Seen, Usage
from proxy.store.rows import Pair, Reservation, Transaction, Value, json_text

P = ParamSpec("P")
R = TypeVar("R")

FOREVER = 1e9  # seconds
_times = msgspec.json.Decoder(list[float])


def _transaction(
    work: Callable[Concatenate["Store", Transaction, P], Awaitable[R]],
) -> Callable[Concatenate["Store", P], Coroutine[Any, Any, R]]:
    """Make an operation of what it does in a transaction."""

    async def operation(self: "Store", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(lambda transaction: work(self, transaction, *args, **kwargs))

    return operation


class Store(ABC):
    """`worker` is the name of the process that opened it: reservations are made in its name."""

    def __init__(self, worker: str, cache_bytes: int) -> None:
        self._worker = worker
        self._cache_bytes = cache_bytes

    @abstractmethod
    async def _run(self, work: Callable[[Transaction], Awaitable[R]], *, is_kept: bool = True) -> R:
        """Return what `work` returns, and write what it has changed, all or nothing. Raises StoreUnavailable."""

    @abstractmethod
    async def aclose(self) -> None:
        """End what is still reserved by this process, and close connections and files."""

    async def begin(self, begins: Sequence[Begin]) -> list[list[Outcome]]:
        """Reserve; return the outcome of each want. A want of no parts always fits. A second time changes nothing."""
        return await self._run(lambda transaction: begin.begin(transaction, begins, self._worker))

    async def quote(self, begins: Sequence[Begin]) -> list[list[Outcome]]:
        """Return what `begin` would, and change nothing. Also to wait for busy wants: read again until none is."""
        return await self._run(lambda transaction: begin.begin(transaction, begins, self._worker), is_kept=False)

    async def finish(self, finishes: Sequence[Finish]) -> None:
        """Book usage, store results, end reservations. May come after the deadline, twice, or without its `begin`."""
        await self._run(lambda transaction: finish.finish(transaction, finishes, self._cache_bytes))

    async def sweep(self) -> None:
        """Move open reservations past their deadline to uncertain usage; delete what is out of date. Once a minute."""
        await self._run(finish.sweep)

    @_transaction
    async def end_worker(self, transaction: Transaction, worker: str | None) -> None:
        """Move the reservations of a process that has died, or of all, to uncertain usage, at once."""
        for row in await transaction.all(Reservation):
            if worker in (None, row.worker):
                finish.expire(transaction, row)

    @_transaction
    async def usage(self, transaction: Transaction, pairs: Collection[Pair] | None = None) -> list[Usage]:
        """Return accounts and periods with usage, by both: these, or all."""
        if pairs is None:
            rows = await transaction.all(Usage)
        else:
            await transaction.read((Usage, pairs))
            rows = [row for pair in pairs if (row := transaction.get(Usage, *pair)) is not None]
        return sorted(row for row in rows if any(row[2:]))

    @_transaction
    async def set_usage(self, transaction: Transaction, account: Account, used: int) -> None:
        """Replace used parts and end uncertain ones, as the vendor's portal shows them; in Redis, begin a new epoch
        for the account after a loss of data."""
        pair = account.account, account.period
        await transaction.read((Usage, [pair]))
        old = transaction.get(Usage, *pair) or Usage(*pair, 0, 0, 0)
        transaction.put(old._replace(used=used, uncertain=0))
        for row in await transaction.all(Reservation):
            finish.forget_account(transaction, row, pair)
        if transaction.epoch:
            transaction.put_value(f"epoch {account.account}", str(transaction.epoch), FOREVER)

    @_transaction
    async def forget(self, transaction: Transaction) -> int:
        """Delete all results and parts; return how many parts. The value "forgotten" becomes another one, so that
        memories of results are dropped with them."""
        await transaction.read((Value, [("forgotten",)]))
        transaction.put_value("forgotten", secrets.token_hex(8), FOREVER)
        return await transaction.drop_old(-math.inf, -math.inf)

    @_transaction
    async def value(self, transaction: Transaction, key: str) -> str | None:
        """Return a small value; None where there is none or it has ended."""
        return await _value(transaction, key)

    @_transaction
    async def values(self, transaction: Transaction, keys: Sequence[str]) -> list[str | None]:
        """Return small values."""
        await transaction.read((Value, [(key,) for key in keys]))
        return [await _value(transaction, key) for key in keys]

    @_transaction
    async def put_value(
        self, transaction: Transaction, key: str, value: str, seconds: float, *, absent: bool = False
    ) -> bool:
        """Keep a value for so long. With `absent` only where there is none, or where the same value is there (a lease
        that its owner extends); return whether it is kept."""
        is_kept = await _value(transaction, key) in (None, value) or not absent
        if is_kept:
            transaction.put_value(key, value, seconds)
        return is_kept

    @_transaction
    async def drop_value(self, transaction: Transaction, key: str, value: str | None = None) -> None:
        """Delete a value; with `value` only if it is that one."""
        if value in (None, await _value(transaction, key)):
            transaction.drop(Value, key)

    @_transaction
    async def take(self, transaction: Transaction, key: str, windows: Sequence[Window]) -> float:
        """Count a request in every window and return 0.0; or count none and return the seconds until it would be."""
        await transaction.read((Value, [(f"taken {key}",)]))
        now = transaction.now
        # Times ahead were written before the clock was set back.
        times = [min(time, now) for time in _times.decode(transaction.text(f"taken {key}") or "[]")]
        full = (window for window in windows if len(times) >= window.count)
        wait = max((times[-window.count] + window.seconds - now for window in full), default=0.0)
        if wait <= 0.0:
            newest = [*times, now][-max(window.count for window in windows) :]
            transaction.put_value(f"taken {key}", json_text(newest), max(window.seconds for window in windows))
        return max(wait, 0.0)

    @_transaction
    async def add_seen(self, transaction: Transaction, id: str, rows: Sequence[Seen], first_day: int = 0) -> None:
        """Add requests, once for each id; with a first day, delete what was seen before it."""
        await transaction.read((Value, [(f"seen {id}",)]), (Seen, {row[:7] for row in rows}))
        if transaction.text(f"seen {id}") is not None:
            return
        transaction.put_value(f"seen {id}", "", protocol.DAY_SECONDS)
        for row in rows:
            old = transaction.get(Seen, *row[:7]) or row._replace(requests=0)
            transaction.put(row._replace(requests=old.requests + row.requests, last=max(old.last, row.last)))
        for kind, most in protocol.SEEN_MAX.items():
            if first_day or (most and any(row.kind == kind for row in rows)):
                stored = {row[:7]: row for row in (*await transaction.all(Seen, kind), *rows) if row.kind == kind}
                for place, row in enumerate(sorted(stored.values(), key=lambda row: -row.last)):
                    if row.day < first_day or place >= most > 0:
                        transaction.drop(Seen, *row[:7])

    @_transaction
    async def seen(self, transaction: Transaction, kind: str, first_day: int) -> list[Seen]:
        """Return what was seen of a kind on this day and later ones, the last one first."""
        rows = [row for row in await transaction.all(Seen, kind) if row.day >= first_day]
        return sorted(rows, key=lambda row: -row.last)


async def _value(transaction: Transaction, key: str) -> str | None:
    """Return a value that has not ended. One that begins later was written before the clock was set back."""
    await transaction.read((Value, [(key,)]))
    row = transaction.get(Value, key)
    return row.value if row and row.since <= transaction.now < row.until else None
