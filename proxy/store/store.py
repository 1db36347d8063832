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
from proxy.store.rows import Pair, PartRow, ReservationsRow, Rows

P = ParamSpec("P")
R = TypeVar("R")

FOREVER = 1e9  # seconds


def _transaction(
    work: Callable[Concatenate["Store", Rows, P], R],
) -> Callable[Concatenate["Store", P], Coroutine[Any, Any, R]]:
    """Make an operation of what it does in a transaction."""

    async def operation(self: "Store", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(lambda rows: work(self, rows, *args, **kwargs))

    return operation


class Store(ABC):
    """`worker` is the name of the process that opened it: reservations are made in its name."""

    _resources: contextlib.AsyncExitStack  # connections and files

    def __init__(self, worker: str, cache_bytes: int) -> None:
        self._worker = worker
        self._cache_bytes = cache_bytes
        self._is_closed = False

    @abstractmethod
    async def _run(self, work: Callable[[Any], R], *, is_kept: bool = True) -> R:
        """Return what `work` returns with Rows, and write what it has changed, all or nothing. It may be called several
        times; the last one counts. Raises StoreUnavailable."""

    async def aclose(self) -> None:
        """End what is still reserved by this process, and close connections and files. A second time nothing is."""
        if not self._is_closed:
            self._is_closed = True
            async with self._resources:
                with contextlib.suppress(errors.StoreUnavailable):
                    await self.end_worker(self._worker)

    async def begin(self, begins: Sequence[Begin], *, is_kept: bool = True) -> list[Outcome]:
        """Reserve in their order, each seeing what those before it have reserved. A want of no parts always fits. A
        second time changes nothing."""
        return await self._run(
            lambda rows: [reservations.begin(rows, each, self._worker) for each in begins], is_kept=is_kept
        )

    async def quote(self, begins: Sequence[Begin]) -> list[Outcome]:
        """Return what `begin` would, and change nothing. Also to wait for busy keys: read again until none is."""
        return await self.begin(begins, is_kept=False)

    @_transaction
    def finish(self, rows: Rows, finishes: Sequence[Finish]) -> None:
        """Book usage, store results, end reservations. May come after the deadline, twice, or without its `begin`."""
        for each in finishes:
            reservations.finish(rows, each, self._cache_bytes)

    async def sweep(self) -> None:
        """Move open reservations past their deadline to uncertain usage; delete what is out of date. Once a minute."""
        while await self._run(reservations.sweep):  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0)

    @_transaction
    def end_worker(self, rows: Rows, worker: str | None) -> None:
        """Move the reservations of a process that has died, or of all, to uncertain usage, at once."""
        for row in rows.all(ReservationsRow):
            reservations.expire(rows, row.scope, row.key, worker)

    @_transaction
    def usage(self, rows: Rows, pairs: Collection[Pair] | None = None) -> list[Usage]:
        """Return accounts and periods with usage, by both: these, or all."""
        found = rows.all(Usage) if pairs is None else [rows.usage(pair) for pair in pairs]
        return sorted(row for row in found if any(row[2:]))

    @_transaction
    def set_usage(self, rows: Rows, account: Account, used: int) -> None:
        """Replace used parts and end uncertain ones, as the vendor's portal shows them; in Redis, begin a new epoch
        for the account after a loss of data."""
        pair = account[:2]
        rows.put(rows.usage(pair)._replace(used=used, uncertain=0))
        for row in rows.all(ReservationsRow):
            found, late = reservations.of_key(rows, row.scope, row.key), {}
            for id, each in found.items():
                if each.state in reservations.UNCERTAIN and pair in each.accounts:
                    # What is uncertain no more is not taken off again by a late finish.
                    late[id] = each._replace(accounts=tuple(other for other in each.accounts if other != pair))
            if late:
                reservations.put(rows, row.scope, row.key, found | late)
        if rows.epoch:
            rows.put_value(f"epoch {account.account}", str(rows.epoch), FOREVER)

    @_transaction
    def parts(self, rows: Rows, scopes: str = "") -> int:
        """Return how many parts are stored in scopes that begin so."""
        stored = rows.timed(PartRow, -math.inf, math.inf)
        return sum(scope.startswith(scopes) and not name.startswith("=") for scope, name in stored)

    @_transaction
    def forget(self, rows: Rows, scopes: str = "") -> int:
        """Delete results and parts in scopes that begin so; return how many parts. The value "forgotten" becomes
        another one, so that memories of results are dropped with them."""
        rows.put_value("forgotten", secrets.token_hex(8), FOREVER)
        stored = [key for key in rows.timed(PartRow, -math.inf, math.inf) if key[0].startswith(scopes)]
        for key in stored:
            rows.drop(PartRow, *key)
        return sum(not name.startswith("=") for _, name in stored)

    @_transaction
    def values(self, rows: Rows, keys: Sequence[str]) -> list[str | None]:
        """Return small values; None where there is none or it has ended."""
        return [rows.text(key) for key in keys]

    @_transaction
    def put_value(
        self, rows: Rows, key: str, value: str, seconds: float, *, instead: Sequence[str | None] | None = None
    ) -> bool:
        """Keep a value for so long, or end it: 0 seconds. With `instead` only where one of these is there, None for
        none; return whether it is kept."""
        is_kept = instead is None or rows.text(key) in instead
        if is_kept:
            rows.put_value(key, value, seconds)
        return is_kept

    @_transaction
    def take(self, rows: Rows, key: str, windows: Sequence[Window], *, again: bool = False) -> float:
        """Count a request in every window and return 0.0; or count none and return the seconds until it would be.
        `again`: count the newest one from now on, because it has arrived at some moment since it was counted."""
        now = rows.now
        # Times ahead were written before the clock was set back.
        times = [min(float(time), now) for time in (rows.text(f"taken {key}", ended=True) or "").split()]
        times = times[:-1] if again else times
        full = (window for window in windows if len(times) >= window.count)
        wait = max((times[-window.count] + window.seconds - now for window in full), default=0.0)
        if wait > 0.0:
            return wait
        newest = [*times, now][-max(window.count for window in windows) :]
        rows.put_value(f"taken {key}", " ".join(map(str, newest)), max(window.seconds for window in windows))
        return 0.0

    @_transaction
    def add_seen(self, rows: Rows, id: str, seen: Sequence[Seen]) -> None:
        """Add requests, once for each id."""
        if rows.text(f"seen {id}", ended=True) is not None:
            return
        rows.put_value(f"seen {id}", "", protocol.DAY_SECONDS)
        for row in seen:
            old = rows.get(Seen, *row[:7]) or row._replace(requests=0)
            rows.put(row._replace(requests=old.requests + row.requests, last=max(old.last, row.last)))
        for kind in protocol.SEEN_MAX.keys() & {row.kind for row in seen}:
            newest = sorted(rows.all(Seen, kind), key=lambda row: -row.last)
            for row in newest[protocol.SEEN_MAX[kind] :]:
                rows.drop(Seen, *row[:7])

    @_transaction
    def seen(self, rows: Rows, kind: str, first_day: int) -> list[Seen]:
        """Return what was seen of a kind on this day and later ones, the last one first."""
        return sorted((row for row in rows.all(Seen, kind) if row.day >= first_day), key=lambda row: -row.last)
