"""Misses of one request in the shared cache: what it has, what this request claims, and what other workers execute."""

import asyncio
import math
from collections.abc import Iterable, Sequence

from proxy.gateway.applications import Application
from proxy.gateway.cache.entries import RenderedResult, ResponseCache, part_keys
from proxy.gateway.cache.shared import WAIT_SECONDS, SharedCache, SharedLookup
from proxy.gateway.queries import QuerySet


class SharedMisses:
    """Misses of one request. Entries that are found are taken over into the `entries` of this process."""

    def __init__(
        self, shared: SharedCache, entries: ResponseCache, application: Application, queries: QuerySet
    ) -> None:
        self._shared = shared
        self._entries = entries
        self._application = application
        self._queries = queries
        self._digests: dict[int, bytes] = {}
        self._claimed: dict[int, bytes] = {}
        self._busy: dict[int, bytes] = {}
        self._lacking: set[int] = set()  # entries that are fresh, but damaged, or do not hold all fields
        self._waits_until = math.inf

    @property
    def busy_count(self) -> int:
        """How many queries other workers execute."""
        return len(self._busy)

    async def look_up(self, positions: Iterable[int]) -> dict[int, RenderedResult]:
        """Return the results that the shared cache has. It claims what it does not have, so that no other worker
        executes it: `release` must follow."""
        keys, application = self._queries.keys, self._application
        self._digests = {
            n: digest for n in positions if (digest := self._shared.key(application, keys[n].key)) is not None
        }
        return await self._take(self._digests, await self._shared.look_up([*self._digests.values()]))

    def executed_elsewhere(self, positions: Sequence[int]) -> list[int]:
        """Return those of the positions that another worker executes."""
        return [n for n in positions if n in self._busy]

    async def wait(self, positions: Sequence[int]) -> dict[int, RenderedResult]:
        """Wait for results of other workers; return them by position. Of the other positions, `executed_elsewhere`
        returns those to wait for again; this request executes the rest, which it has claimed by now, or whose result
        was not stored in time."""
        now = asyncio.get_running_loop().time
        self._waits_until = min(self._waits_until, now() + WAIT_SECONDS)
        # Entries that lack fields are there already: only their claims tell when the others have replaced them.
        awaited = [n for n in positions if n not in self._lacking] or positions
        digests = {n: self._busy.pop(n) for n in awaited}
        are_lacking = awaited[0] in self._lacking
        found = await self._shared.wait([*digests.values()], self._waits_until, claim_fresh=are_lacking)
        results = await self._take(digests, found)
        if now() >= self._waits_until:
            self._busy.clear()
        return results

    def store(self, position: int, names: Sequence[str]) -> None:
        """Store the entry of a query, which this process has, in the shared cache, too, where parts with these names
        are found in it."""
        key = self._queries.keys[position]
        digest = self._digests.get(position) or self._shared.key(self._application, key.key)
        records = self._entries.cached_records(key)
        if digest is None or not records:
            return
        parts = part_keys(key.key, names)
        aliases = [alias for part in parts if (alias := self._shared.key(self._application, part)) is not None]
        self._shared.put(self._application, digest, records, aliases)

    def release(self) -> None:
        """Release what was claimed, unless its result is about to be stored."""
        if self._claimed:
            self._shared.release(self._claimed.values())

    async def _take(self, digests: dict[int, bytes], found: Sequence[SharedLookup]) -> dict[int, RenderedResult]:
        """Take over what the shared cache has. Entries that do not hold all fields, or are damaged, are claimed."""
        results, lacking = self._take_over(digests, found)
        if lacking:
            self._lacking |= lacking.keys()
            found = await self._shared.look_up([*lacking.values()], claim_fresh=True)
            results |= self._take_over(lacking, found)[0]
        return results

    def _take_over(
        self, digests: dict[int, bytes], found: Sequence[SharedLookup]
    ) -> tuple[dict[int, RenderedResult], dict[int, bytes]]:
        """Take over results, claims, and what is busy; return the results, and the entries to replace."""
        results, lacking = {}, {}
        for (position, digest), result in zip(digests.items(), found, strict=True):
            key = self._queries.keys[position]
            if result.records:
                self._entries.add(key, result.records)
            # Without records, too: another request of this process may have finished during the look-up.
            hit = self._entries.get(key, self._queries.renderer)
            if result.claimed:
                self._claimed[position] = digest
            if hit is not None:
                results[position] = hit
                if result.claimed:  # others who wait need not wait for the rest of this request
                    self._shared.release((digest,))
            elif result.busy:
                self._busy[position] = digest
            elif not result.claimed:
                lacking[position] = digest
        return results, lacking
