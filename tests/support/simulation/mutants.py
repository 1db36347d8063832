"""Mistakes planted into the ledger, claims, tokens and windows, each of which a simulation must find."""

from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from unittest import mock

from proxy.gateway.cache import coalescing, shared
from proxy.gateway.quota import ledger, reservations
from proxy.stores import journal, sqlite
from proxy.stores.protocols import Settlement
from proxy.upstream import batching
from proxy.upstream.auth import token_cache, token_store
from support.simulation import stores


async def _nothing(*_: Any, **__: Any) -> None:
    return None


async def _yes(*_: Any, **__: Any) -> bool:
    return True


async def _zero(*_: Any, **__: Any) -> float:
    return 0.0


async def _settle_as_new(self: Any, settlement: Settlement) -> None:
    """Send a settlement that was not confirmed under a new number."""
    if self._unconfirmed is not None:
        self._sequence += 1
        settlement = settlement._replace(sequence=self._sequence)
    await SETTLE(self, settlement)


async def _settle_once(self: Any, settlement: Settlement) -> None:
    """Forget a settlement that was not confirmed."""
    try:
        await SETTLE(self, settlement)
    finally:
        self._unconfirmed = None


def _reserve_by_used(rows: Any, reservation: Any, taken: Any) -> Any:
    """Compare the limit with what is used, without the reservations of others."""
    return RESERVE(rows, reservation, {entry: sqlite._usage(rows, entry).used for entry, _ in reservation.limits})


def _forget_overdue(rows: Any, owner: str, now: float, until: float) -> None:
    """Drop the reservations of dead owners, instead of booking them as uncertain."""
    rows.execute("DELETE FROM reservations WHERE owner NOT IN (SELECT name FROM owners WHERE until > ?)", (now,))
    HEARTBEAT(rows, owner, now, until)


def _keep_uncertain(rows: Any, settlement: Settlement) -> None:
    """Leave the uncertain usage of an owner that was only slow."""
    rows.execute("UPDATE reservations SET parts = 0 WHERE uncertain")
    SETTLE_ROWS(rows, settlement)


async def _run_alone(self: Any, item: Any) -> Any:
    """Commit a lone item, and leave those that came meanwhile where it fails."""
    self._busy = True
    result = (await self._commit([item]))[0]
    self._next()
    return result


def _finish_without_waking(self: Any, result: Any) -> Any:
    self._close()
    self.over, self.result = True, result
    return result


def _count_one_more(rows: Any, key: str, windows: Any, now: float) -> float:
    more = [type(window)(window.count + 1, window.seconds) for window in windows]
    return TAKE(rows, key, more, now)


def _take_shortest(rows: Any, key: str, windows: Any, now: float) -> float:
    return TAKE(rows, key, windows[:1], now)


class Mutant(NamedTuple):
    """What replaces an attribute of a module or class, and the first seed that finds it."""

    owner: Any
    attribute: str
    replacement: Any
    seed: int = 0


SETTLE, RESERVE, HEARTBEAT = ledger.Ledger._settle, sqlite._reserve, sqlite._heartbeat
SETTLE_ROWS, TAKE, JOIN = sqlite._settle, sqlite._take, coalescing.Coalescing.join

MUTANTS = {
    # ledger
    "a reservation is not stored": Mutant(ledger.Ledger, "reserve", _nothing),
    "an intent is not recorded": Mutant(journal.FileJournal, "open_intent", lambda *_: 0, seed=1),
    "usage is not recorded in the journal": Mutant(journal.FileJournal, "record_usage", lambda *_: None, seed=25),
    "intents of the dead are not settled": Mutant(journal, "_intents", lambda _: (), seed=6),
    "usage of the dead is not settled": Mutant(journal, "_usage", lambda _: (), seed=25),
    "nothing is uncertain after an error": Mutant(reservations, "may_be_billed", lambda _: False, seed=3),
    "a settlement sent again has another number": Mutant(ledger.Ledger, "_settle", _settle_as_new, seed=4),
    "a settlement is not sent again": Mutant(ledger.Ledger, "_settle", _settle_once, seed=45),
    "a limit ignores reservations": Mutant(sqlite, "_reserve", _reserve_by_used, seed=41),
    "reservations of the dead are dropped": Mutant(sqlite, "_heartbeat", _forget_overdue, seed=3),
    "uncertain usage is not taken back": Mutant(sqlite, "_settle", _keep_uncertain, seed=277),
    "a failed commit wakes nobody": Mutant(ledger.GroupCommit, "_run_alone", _run_alone, seed=18),
    # claims
    "a claim excludes no other worker": Mutant(shared, "BUSY", shared.NOTHING, seed=3),
    "queries in flight are not coalesced": Mutant(
        *(coalescing.Coalescing, "join"), lambda _, keys, caller: JOIN(coalescing.Coalescing(), keys, caller), seed=1
    ),
    "a result wakes nobody": Mutant(coalescing._Work, "finish", _finish_without_waking),
    "an error wakes nobody": Mutant(coalescing._Work, "fail", lambda self, _: self._close(), seed=20),
    "a connection is not given back": Mutant(batching.Batcher, "_connection_freed", lambda _: None, seed=5),
    "results do not age while the machine is suspended": Mutant(
        *(stores.ProcessClock, "monotonic"), lambda clock: clock.process.world.awake(), seed=75
    ),
    "a result is not stored for others": Mutant(shared.SharedCache, "put", lambda *_: None, seed=3),
    # tokens and windows
    "each worker requests a token": Mutant(token_store.FallbackTokenStore, "lock", _yes, seed=7),
    "token requests are not counted": Mutant(token_store.FallbackTokenStore, "take", _zero, seed=2),
    "a window allows one more": Mutant(sqlite, "_take", _count_one_more, seed=1),
    "only the shortest window counts": Mutant(sqlite, "_take", _take_shortest, seed=6),
    "stored tokens are not used": Mutant(token_store.FallbackTokenStore, "token", _nothing, seed=7),
    "a refused token is used again": Mutant(token_cache.TokenCache, "invalidate", _nothing, seed=18),
}


def planted(name: str) -> AbstractContextManager[Any]:
    """Plant a mutant while the block runs."""
    return mock.patch.object(*MUTANTS[name][:3])
