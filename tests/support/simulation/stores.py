"""What simulated processes share: the real SQLite store and its journal with faults, and a model of the shared cache.

A fault of the store is an operation that fails, one whose confirmation is lost, or one that takes seconds. What a dead
process still does has no effect.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from proxy import errors
from proxy.kit.windows import Window
from proxy.stores.journal import SLOT, FileJournal
from proxy.stores.protocols import CacheLookup, CacheRecord, CacheUsage, EntryGroup
from proxy.stores.sqlite import Connection, SqliteStore

if TYPE_CHECKING:
    from support.simulation.process import Process

R = TypeVar("R")
FAILED = "simulated fault"
SLOW_SECONDS = 8.0  # that a slow operation takes at most


class ProcessClock:
    """Clock of a simulated process, which knows it."""

    def __init__(self, process: "Process") -> None:
        self.process = process

    def now(self) -> float:
        return self.process.world.now()

    def monotonic(self) -> float:
        return self.process.world.true


class SimulatedStore(SqliteStore):
    """Store of one process in the file that all share."""

    @property
    def _process(self) -> "Process":
        return cast("ProcessClock", self._clock).process

    async def _transaction(self, begin: str, work: Callable[[Connection], R]) -> R:
        process = self._process
        fault = process.world.fault("store")
        if process.is_dead or fault == "fail":
            raise errors.StoreUnavailable(FAILED)
        result = await super()._transaction(begin, work)
        if begin != "BEGIN":
            process.world.audit()
        if process.rng.random() < 0.1:  # the process is told later; others go on meanwhile
            await asyncio.sleep(process.delay())
        if fault == "lost":
            raise errors.StoreUnavailable(FAILED)
        return result

    async def take(self, key: str, windows: Sequence[Window]) -> float:
        wait = await super().take(key, windows)
        if wait == 0.0 and key.startswith("windows:"):
            self._process.world.grant(self._process)
        return wait

    def journal(self, owner: str) -> "SimulatedJournal | None":  # type: ignore[override] # Redis has none
        process = self._process
        if not process.world.plan.has_journal:
            return None
        journal = SimulatedJournal(process, self._path, owner)
        process.world.journals.append(journal)
        return journal

    def kill(self) -> None:
        """End as with the process."""
        if not self._closed:
            self._closed = True
            self._connection.close()
            self._file.close()


class SimulatedJournal:
    """Journal in files, whose last write may be torn by the end of the process. `intents` and `usage` are the parts
    that it holds, by application."""

    def __init__(self, process: "Process", path: Path, owner: str) -> None:
        self.process = process
        self._file = FileJournal(path, owner)
        self._prefix = path.with_name(f"{path.name}.{owner}")
        self._is_open = True
        self.intents: dict[object, Counter[str]] = {}
        self.usage: dict[int, Counter[str]] = {}

    @property
    def covered(self) -> Counter[str]:
        """Parts on record here, by application."""
        return sum([*self.intents.values(), *self.usage.values()], Counter[str]())

    def open_intent(self, parts: int, group: EntryGroup) -> int:
        if self.process.is_dead:
            raise OSError(FAILED)
        number = self._file.open_intent(parts, group)
        if self.process.is_torn:
            with Path(f"{self._prefix}.intents").open("r+b") as file:
                file.seek(number * SLOT + self.process.rng.randrange(6))
                file.write(bytes(SLOT // 2))
            self.process.die()
        else:
            self.intents[number] = Counter({group.entries[0].account: parts})
        return number

    def close_intent(self, number: int) -> None:
        if not self.process.is_dead:
            self._file.close_intent(number)
            self.intents.pop(number, None)

    def hold_usage(self, number: int, group: EntryGroup, parts: int) -> None:
        if not self.process.is_dead:
            self._file.hold_usage(number, group, parts)
            held = self.intents.setdefault(group, Counter())
            held[group.entries[0].account] += parts
            self.intents.pop(number, None)

    def release_held(self) -> None:
        if not self.process.is_dead:
            self._file.release_held()
            self.intents = {key: parts for key, parts in self.intents.items() if isinstance(key, int)}

    def record_usage(self, sequence: int, group: EntryGroup, used: int, uncertain: int) -> None:
        if self.process.is_dead or self.process.world.fault("disk"):
            raise OSError(FAILED)
        self._file.record_usage(sequence, group, used, uncertain)
        if self.process.is_torn:
            path = Path(f"{self._prefix}.{sequence}.journal")
            os.truncate(path, path.stat().st_size - self.process.rng.randrange(1, 9))
            self.process.die()
        else:
            self.usage.setdefault(sequence, Counter())[group.entries[0].account] += used + uncertain

    def settled(self, sequence: int) -> None:
        if not self.process.is_dead:
            self._file.settled(sequence)
            self.usage.pop(sequence, None)

    def close(self) -> None:
        """Leave the files to the next process, as the end of the process does."""
        if self._is_open:
            self._is_open = False
            self._file.close()

    kill = close


class _CacheClaim(NamedTuple):
    owner: "SimulatedCache"
    until: float


class CacheContent:
    """Content of the shared cache, of all processes."""

    def __init__(self) -> None:
        self.records: dict[bytes, CacheRecord] = {}
        self.aliases: dict[bytes, bytes] = {}
        self.claims: dict[bytes, _CacheClaim] = {}


class SimulatedCache:
    """Shared cache as one process sees it: with claims that end with their owner, as in a file, or with a lease, as in
    Redis."""

    def __init__(self, process: "Process", lease: float) -> None:
        self._process = process
        self._world = process.world
        self._content = process.world.cache
        self._lease = float("inf") if self._world.plan.has_journal else lease

    def look_up_now(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup] | None:
        if not self._world.plan.has_journal or self._world.fault("cache") or self._process.rng.random() < 0.1:
            return None
        return self._looked_up(keys, fresh_from, claim)

    async def look_up(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup]:
        await self._wait()
        found = self._looked_up(keys, fresh_from, claim)
        await asyncio.sleep(self._process.delay())
        return found

    async def put(self, records: Sequence[CacheRecord]) -> None:
        try:
            fault = await self._wait()
            for record in records:
                if fault == "torn":
                    record = record._replace(content=record.content[: len(record.content) // 2])
                self._content.records[record.key] = record
                self._content.aliases.update(dict.fromkeys(record.aliases, record.key))
        finally:
            self._release([record.key for record in records])
        await asyncio.sleep(self._process.delay())
        if fault == "lost":
            raise errors.StoreUnavailable(FAILED)

    async def renew(self, keys: Sequence[bytes]) -> None:
        await self._wait()
        for key in keys:
            if self._owner(key) is self:
                self._content.claims[key] = _CacheClaim(self, self._world.true + self._lease)

    async def release(self, keys: Sequence[bytes]) -> None:
        if not self._world.plan.has_journal:  # the end of a lock cannot fail
            await self._wait()
        self._release(keys)

    async def cache_usage(self) -> list[CacheUsage]:
        return []

    async def clear(self, application: str | None) -> int:
        self._content.records.clear()
        return 0

    async def aclose(self) -> None:
        self._release([key for key in self._content.claims if self._owner(key) is self])

    async def _wait(self) -> str:
        fault = self._world.fault("cache")
        await asyncio.sleep(self._process.rng.uniform(0.1, SLOW_SECONDS) if fault == "slow" else self._process.delay())
        if fault == "fail" or self._process.is_dead:
            raise errors.StoreUnavailable(FAILED)
        return fault

    def _owner(self, key: bytes) -> "SimulatedCache | None":
        claim = self._content.claims.get(key)
        is_held = claim is not None and claim.until >= self._world.true
        if claim is None or not is_held or (claim.until == float("inf") and claim.owner.is_dead):
            return None
        return claim.owner

    @property
    def is_dead(self) -> bool:
        """Whether its process has ended."""
        return self._process.is_dead

    def _looked_up(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup]:
        found = []
        for key in keys:
            record = self._content.records.get(key) or self._content.records.get(self._content.aliases.get(key, b""))
            if record is not None and not self._world.now() < record.until <= self._world.now() + 86_400:
                record = None
            is_claimed = claim and (record is None or record.stored < fresh_from) and self._owner(key) is None
            if is_claimed:
                self._content.claims[key] = _CacheClaim(self, self._world.true + self._lease)
            found.append(CacheLookup(None if record is None else record.content, is_claimed))
        return found

    def _release(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            if self._owner(key) is self and not self._process.is_dead:
                del self._content.claims[key]
