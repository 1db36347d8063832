"""The store: results of queries, reservations and usage of parts, small values, and who called.

Each operation is one transaction, in SQLite (sqlite.py) or in Redis (redis.py). What it does is written once, for both:
here and in reservations.py. It raises errors.StoreUnavailable where the store cannot be used; then nothing was
changed, or all of it.
"""

import asyncio
import contextlib
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from proxy import errors
from proxy.kit.clock import Window
from proxy.model import Seen
from proxy.store import protocol, reservations
from proxy.store.protocol import Account, Begin, Finish, Outcome, Usage
from proxy.store.rows import Key, Kind, Pair, PartRow, ReservationsRow, Transaction, Value

P = ParamSpec("P")
R = TypeVar("R")

FOREVER = 1e9  # seconds


def _transaction(
    work: Callable[Concatenate["Store", Transaction, P], R],
) -> Callable[Concatenate["Store", P], Coroutine[Any, Any, R]]:
    """Make an operation of what it does in a transaction."""

    async def operation(self: "Store", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(lambda rows: work(self, rows, *args, **kwargs))

    return operation


class Store(ABC):
    """`worker` is the name of the process that opened it: reservations are made in its name."""

    def __init__(self, worker: str, cache_bytes: int) -> None:
        self._worker = worker
        self._cache_bytes = cache_bytes

    @abstractmethod
    async def _run(self, work: Callable[[Transaction], R], *, is_kept: bool = True) -> R:
        """Return what `work` returns, and write what it has changed, all or nothing. It may be called several times;
        the last one counts. Raises StoreUnavailable."""

    @abstractmethod
    async def _close(self) -> None: ...

    async def aclose(self) -> None:
        """End what is still reserved by this process, and close connections and files."""
        with contextlib.suppress(errors.StoreUnavailable):
            await self.end_worker(self._worker)
        await self._close()

    async def begin(self, begins: Sequence[Begin]) -> list[Outcome]:
        """Reserve, in their order. A want of no parts always fits. A second time changes nothing."""
        return await self._run(lambda rows: reservations.begin(rows, begins, self._worker))

    async def quote(self, begins: Sequence[Begin]) -> list[Outcome]:
        """Return what `begin` would, and change nothing. Also to wait for busy keys: read again until none is."""
        return await self._run(lambda rows: reservations.begin(rows, begins, self._worker), is_kept=False)

    @_transaction
    def finish(self, rows: Transaction, finishes: Sequence[Finish]) -> None:
        """Book usage, store results, end reservations. May come after the deadline, twice, or without its `begin`."""
        for each in finishes:
            reservations.finish(rows, each, self._cache_bytes)

    async def sweep(self) -> None:
        """Move open reservations past their deadline to uncertain usage; delete what is out of date. Once a minute."""
        is_behind = True
        while is_behind:
            is_behind = await self._run(reservations.sweep)
            await asyncio.sleep(0)  # for what else the event loop has to do

    @_transaction
    def end_worker(self, rows: Transaction, worker: str | None) -> None:
        """Move the reservations of a process that has died, or of all, to uncertain usage, at once."""
        for row in rows.all(ReservationsRow):
            reservations.expire(rows, row, worker)

    @_transaction
    def usage(self, rows: Transaction, pairs: Collection[Pair] | None = None) -> list[Usage]:
        """Return accounts and periods with usage, by both: these, or all."""
        if pairs is None:
            return sorted(row for row in rows.all(Usage) if any(row[2:]))
        return sorted(row for pair in pairs if any((row := rows.usage(pair))[2:]))

    @_transaction
    def set_usage(self, rows: Transaction, account: Account, used: int) -> None:
        """Replace used parts and end uncertain ones, as the vendor's portal shows them; in Redis, begin a new epoch
        for the account after a loss of data."""
        reservations.set_usage(rows, account[:2], used)
        if rows.epoch:
            rows.put_value(f"epoch {account.account}", str(rows.epoch), FOREVER)

    @_transaction
    def parts(self, rows: Transaction, scopes: str = "") -> int:
        """Return how many parts are stored in scopes that begin so."""
        return sum(kind is PartRow for kind, _ in _of_scopes(rows, scopes))

    @_transaction
    def forget(self, rows: Transaction, scopes: str = "") -> int:
        """Delete results and parts in scopes that begin so; return how many parts. The value "forgotten" becomes
        another one, so that memories of results are dropped with them."""
        rows.put_value("forgotten", secrets.token_hex(8), FOREVER)
        found = _of_scopes(rows, scopes)
        for kind, key in found:
            rows.drop(kind, *key)
        return sum(kind is PartRow for kind, _ in found)

    async def value(self, key: str) -> str | None:
        """Return a small value; None where there is none or it has ended."""
        return (await self.values([key]))[0]

    @_transaction
    def values(self, rows: Transaction, keys: Sequence[str]) -> list[str | None]:
        """Return small values."""
        return [rows.valid_text(key) for key in keys]

    @_transaction
    def put_value(self, rows: Transaction, key: str, value: str, seconds: float, *, absent: bool = False) -> bool:
        """Keep a value for so long. With `absent` only where there is none, or where the same value is there (a lease
        that its owner extends); return whether it is kept."""
        is_kept = rows.valid_text(key) in (None, value) or not absent
        if is_kept:
            rows.put_value(key, value, seconds)
        return is_kept

    @_transaction
    def drop_value(self, rows: Transaction, key: str, value: str | None = None) -> None:
        """Delete a value; with `value` only if it is that one."""
        if value in (None, rows.valid_text(key)):
            rows.drop(Value, key)

    @_transaction
    def take(self, rows: Transaction, key: str, windows: Sequence[Window]) -> float:
        """Count a request in every window and return 0.0; or count none and return the seconds until it would be."""
        now = rows.now
        # Times ahead were written before the clock was set back.
        times = [min(float(time), now) for time in (rows.text(f"taken {key}") or "").split()]
        full = (window for window in windows if len(times) >= window.count)
        wait = max((times[-window.count] + window.seconds - now for window in full), default=0.0)
        if wait > 0.0:
            return wait
        newest = [*times, now][-max(window.count for window in windows) :]
        rows.put_value(f"taken {key}", " ".join(map(str, newest)), max(window.seconds for window in windows))
        return 0.0

    @_transaction
    def take_again(self, rows: Transaction, key: str, windows: Sequence[Window]) -> None:
        """Count the newest request from now on: it has arrived at some moment since it was counted."""
        times = [*(rows.text(f"taken {key}") or "").split()[:-1], str(rows.now)]
        rows.put_value(f"taken {key}", " ".join(times), max(window.seconds for window in windows))

    @_transaction
    def add_seen(self, rows: Transaction, id: str, seen: Sequence[Seen], first_day: int = 0) -> None:
        """Add requests, once for each id, and delete what was seen before the first day."""
        if rows.text(f"seen {id}") is not None:
            return
        rows.put_value(f"seen {id}", "", protocol.DAY_SECONDS)
        known = {row[:7]: row for row in rows.all(Seen)}
        for row in seen:
            old = known.get(row[:7], row._replace(requests=0))
            known[row[:7]] = row._replace(requests=old.requests + row.requests, last=max(old.last, row.last))
            rows.put(known[row[:7]])
        newest = sorted(known.values(), key=lambda row: -row.last)
        for kind, most in protocol.SEEN_MAX.items():
            for place, row in enumerate(row for row in newest if row.kind == kind):
                if row.day < first_day or place >= most:
                    rows.drop(Seen, *row[:7])

    @_transaction
    def seen(self, rows: Transaction, kind: str, first_day: int) -> list[Seen]:
        """Return what was seen of a kind on this day and later ones, the last one first."""
        found = [row for row in rows.all(Seen) if row.kind == kind and row.day >= first_day]
        return sorted(found, key=lambda row: -row.last)


def _of_scopes(rows: Transaction, scopes: str) -> list[tuple[Kind, Key]]:
    """Return the results and parts in scopes that begin so."""
    return [(kind, key) for kind, key in rows.fetched(-math.inf, math.inf) if key[0].startswith(scopes)]
