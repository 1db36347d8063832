"""Process that uses a store (proxy/store/), for tests of it."""

import functools
from pathlib import Path
from typing import Any

from proxy import errors
from proxy.kit.clock import Clock, ManualClock
from proxy.store.protocol import FRESH_SECONDS, Account, Begin, Finish, Found, Hit, Result, Want
from proxy.store.redis import RedisStore
from proxy.store.sqlite import SqliteStore
from proxy.store.store import Store

NOVEMBER = Account("erp", "2023-11", 100)
FEATURES = 0b11
SECONDS = 35.0  # of a reservation
BODY = b"{}" * 100


def begin(id: str, want: Want | str, *, time: Clock, **changes: Any) -> Begin:
    want = Want(want, 1) if isinstance(want, str) else want
    made = Begin(id, "scope", FEATURES, want, (NOVEMBER,), time.now() - FRESH_SECONDS, SECONDS)
    return made._replace(**changes)


def begins(id: str, *wants: Want | str, **more: Any) -> list[Begin]:
    """Return a begin of the only want, or one of each, whose ids are `ID KEY`."""
    made = [begin(id, want, **more) for want in wants]
    return made if len(made) == 1 else [each._replace(id=f"{id} {each.want.key}") for each in made]


def finish(
    id: str, *results: Result, key: str = "", scope: str = "scope", used: int = 1, uncertain: int = 0, **changes: Any
) -> Finish:
    """Return the end of the reservation of a key: that of the result, if there is one."""
    begun = Begin(id, scope, FEATURES, Want(key or results[0].key, 1), (), 0.0, SECONDS)
    return Finish(begun, FEATURES, results, (NOVEMBER,), used, uncertain)._replace(**changes)


def result(key: str, *uids: str, asked: int = 1, hits: int | None = None, body: bytes = BODY, **more: Any) -> Result:
    items = tuple(Hit(uid, f"number of {uid}") for uid in uids)
    return Result(key, asked, len(uids) if hits is None else hits, items, (body,) * len(uids), **more)


async def open_store(address: str, time: Clock, worker: str, cache_bytes: int) -> Store:
    """Open the store in a Redis server, in a file or in memory (""); its time is that of the clock."""
    if address.startswith("unix:"):
        return await RedisStore.open(address, time, worker, cache_bytes, time.now)
    return await SqliteStore.open(Path(address) if address else None, time, worker, cache_bytes)


class BrokenStore:
    """Store whose operations that are named in `broken` fail, the next one after it was done if `loses` is set."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.broken: set[str] = set()
        self.loses = False

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self.operate, name)

    async def operate(self, name: str, *args: Any, **named: Any) -> Any:
        reply = await getattr(self.store, name)(*args, **named) if self.loses or name not in self.broken else None
        if name in self.broken:
            self.loses = False
            raise errors.StoreUnavailable("broken")
        return reply


class Client:
    """A store and a clock, and what is asked of them in the fewest words."""

    def __init__(self, store: Store, time: ManualClock) -> None:
        self.store = store
        self.time = time
        self._keys: dict[str, str] = {}

    async def begin(self, id: str, *wants: Want | str, **changes: Any) -> Any:
        """Return the outcome of the only want, or of each, which has the id `ID KEY` then."""
        begun = begins(id, *wants, time=self.time, **changes)
        self._keys |= {each.id: each.want.key for each in begun}
        outcomes = await self.store.begin(begun)
        return outcomes[0] if len(wants) == 1 else outcomes

    async def quote(self, *wants: Want | str, **changes: Any) -> Any:
        outcomes = await self.store.quote(begins("quote", *wants, time=self.time, **changes))
        return outcomes[0] if len(wants) == 1 else outcomes

    async def finish(self, id: str, *results: Result, **changes: Any) -> None:
        key = self._keys.get(id) or id.rsplit(maxsplit=1)[-1]
        await self.store.finish([finish(id, *results, key=key, **changes)])

    async def stored(self, want: Want | str, **changes: Any) -> Result | None:
        outcome = await self.quote(want, **changes)
        return outcome.result if isinstance(outcome, Found) else None

    async def found(self, want: Want | str, **changes: Any) -> Result:
        result = await self.stored(want, **changes)
        assert result is not None
        return result

    async def fetch(self, *results: Result, **changes: Any) -> None:
        for result in results:
            id = f"fetch {result.key} {self.time.now()} {changes}"
            await self.begin(id, Want(result.key, result.asked), **changes)
            await self.finish(id, result, **changes)

    async def counts(self, account: Account = NOVEMBER) -> tuple[int, int, int]:
        """Return used, uncertain and reserved parts."""
        rows = {(row.account, row.period): (row.used, row.uncertain, row.reserved) for row in await self.store.usage()}
        return rows.get((account.account, account.period), (0, 0, 0))
