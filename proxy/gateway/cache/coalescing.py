"""Request coalescing: identical work in flight is executed once, by the caller that claimed it first.

A passive table: it executes nothing, starts no task and calls nobody. A caller joins with its keys, executes those that
it has claimed, stores their results, and waits for the results of the others. If work stalls, `stalled` says who waits
for it: the caller gives them a substitute, or starts the second attempts that `second_attempts` returns. For the hot
path, where a task of its own would cost more than it saves; kit/single_flight.py is for work that must outlive its
caller.
"""

import asyncio
import contextvars
from collections.abc import Collection, Hashable, Mapping, Sequence
from types import TracebackType
from typing import Generic, Protocol, TypeVar


class Result(Protocol):
    """Result of work on one key."""

    @property
    def has_failed(self) -> bool:
        """Whether another attempt may have a better result."""

    @property
    def was_refused(self) -> bool:
        """Whether the work is refused to its caller, such as by its quota, though not to every caller."""


class StalledRequest(Protocol):
    """Work that takes too long."""

    @property
    def is_batch(self) -> bool:
        """Whether the stalled request carries work of several callers."""

    def allow_retry(self) -> bool:
        """Take one retry from the retry budget; return whether there was one."""


K = TypeVar("K", bound=Hashable)
C = TypeVar("C")
"""Caller. Positions are its own numbers of its keys."""
V = TypeVar("V", bound=Result)


class Coalescing(Generic[K, C, V]):
    """Work in flight, by key. Entries are removed when their work is done."""

    def __init__(self) -> None:
        self._in_flight: dict[K, _Work[K, C, V]] = {}

    def join(self, keys: Mapping[int, K], caller: C) -> "Share[K, C, V]":
        """Claim the keys that are not in flight, and wait for the others."""
        claim: Claim[K, C, V] | None = None
        joined: dict[int, _Work[K, C, V]] = {}
        for position, key in keys.items():
            work = self._in_flight.get(key)
            if work is not None:
                joined[position] = work
                continue
            if claim is None:
                claim = Claim(caller)
            self._in_flight[key] = work = _Work(self._in_flight, key, claim)
            claim.positions.append(position)
            claim.works.append(work)
        return Share(claim, joined, caller)


class Share(Generic[K, C, V]):
    """One caller's part of the work in flight: the keys that it has claimed, and those that it waits for.

    Used as a context manager around the execution of the claimed keys: an error goes to all waiting callers; a
    cancelled caller leaves the work to the others; one whose work has been finished by other attempts continues with
    their results. `stalled` is to be handled before it: the keys that it waits for and that have stalled already.
    """

    __slots__ = ("_results", "_waits", "claim", "stalled")

    def __init__(self, claim: "Claim[K, C, V] | None", joined: "dict[int, _Work[K, C, V]]", caller: C) -> None:
        self.claim = claim
        self._results: list[V] = []
        self._waits: dict[int, Wait[C, V]] = {}
        self.stalled: StalledWork[K, C, V] | None = None
        if joined:
            context = contextvars.copy_context()
            for position, work in joined.items():
                wait = self._waits[position] = Wait(caller, position, context)
                work.waiting.append(wait)
            stalled = {position: work for position, work in joined.items() if work.stall is not None}
            if stalled:
                waits = [self._waits[n] for n, work in stalled.items() if caller is not work.claim.caller]
                self.stalled = StalledWork([*stalled.values()], waits)

    @property
    def is_waiting(self) -> bool:
        """Whether the caller waits for work of others."""
        return bool(self._waits)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or self.claim is None:
            return False
        works = self.claim.end()
        if self.claim.was_only_interrupted():
            self._results = [work.result for work in works]  # type: ignore[misc] # all are over
            return True
        for work in works:
            work.fail(error)
        self.leave()
        return False

    def finish(self, results: Sequence[V]) -> None:
        """Store the results of the claimed keys, in their order."""
        if self.claim is not None:
            works = self.claim.end()
            self.claim.was_only_interrupted()
            self._results = [work.finish(result) for work, result in zip(works, results, strict=True)]

    def results(self) -> dict[int, V]:
        """Return the results of the claimed keys by position, once they are stored."""
        return {} if self.claim is None else dict(zip(self.claim.positions, self._results, strict=True))

    async def wait(self) -> tuple[dict[int, V], list[int]]:
        """Wait for the keys that others execute. Return all results by position, and the positions whose execution
        was cancelled, which the caller may claim again."""
        results, abandoned = self.results(), []
        try:
            for position, wait in self._waits.items():
                await asyncio.wait((wait.result,))
                if wait.result.cancelled():
                    abandoned.append(position)
                else:
                    results[position] = wait.result.result()
        finally:
            self.leave()
        return results, abandoned

    def leave(self) -> None:
        """Stop waiting."""
        for wait in self._waits.values():
            wait.result.cancel()


class StalledWork(Generic[K, C, V]):
    """Stalled work and those that wait for it: resolve the `waits` that a substitute serves, such as a stale cache
    entry, then start the second attempts for the others. The caller that has claimed the work is not among the waits:
    its attempt goes on for the others."""

    __slots__ = ("_works", "waits")

    def __init__(self, works: "Sequence[_Work[K, C, V]]", waits: "Sequence[Wait[C, V]]") -> None:
        self._works = works
        self.waits = waits

    def second_attempts(self) -> "list[SecondAttempt[K, C, V]]":
        """Return the second attempts to start."""
        return _second_attempts(self._works)


class SecondAttempt(Generic[K, C, V]):
    """Second attempt at stalled work, for `caller` at these positions. To be executed in a task of its own, with the
    context of the caller that it is made for; its end is handed in with `finish` or `fail`."""

    __slots__ = ("_works", "caller", "context", "positions")

    def __init__(self, caller: C, context: contextvars.Context) -> None:
        self.caller = caller
        self.context = context
        self.positions: list[int] = []
        self._works: list[_Work[K, C, V]] = []

    def add(self, position: int, work: "_Work[K, C, V]") -> None:
        """Add one more key to the attempt."""
        self.positions.append(position)
        self._works.append(work)
        work.attempts += 1
        work.repeated = True

    def mark_claims(self) -> None:
        """Mark claims by the same caller, so that it gets no further second attempt."""
        for work in self._works:
            if work.claim.caller is self.caller:
                work.claim.tried = True

    def finish(self, results: Sequence[V]) -> "list[SecondAttempt[K, C, V]]":
        """Store the results; return the attempts to start in place of work that was refused to this caller."""
        refused = []
        for work, result in zip(self._works, results, strict=True):
            if result.was_refused and work.attempts > 1:
                work.attempts -= 1
                work.repeated = False
                refused.append(work)
            else:
                work.finish(result)
                work.claim.interrupt()
        return _second_attempts(refused)

    def fail(self, error: BaseException) -> None:
        """End the attempt with an error."""
        for work in self._works:
            work.fail(error)


class Wait(Generic[C, V]):
    """Wait of one caller for one key."""

    __slots__ = ("caller", "context", "position", "result", "tried")

    def __init__(self, caller: C, position: int, context: contextvars.Context) -> None:
        self.caller = caller
        self.position = position
        self.context = context
        self.result: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        self.tried = False

    def resolve(self, result: V) -> None:
        """Give the caller a result, unless it has one."""
        if not self.result.done():
            self.result.set_result(result)


class _Work(Generic[K, C, V]):
    """Work on one key: the number of `attempts` in flight, the waiting callers, and its result once it is `over`."""

    __slots__ = ("_in_flight", "_key", "attempts", "claim", "over", "repeated", "result", "stall", "waiting")

    def __init__(self, in_flight: "dict[K, _Work[K, C, V]]", key: K, claim: "Claim[K, C, V]") -> None:
        self._in_flight = in_flight
        self._key = key
        self.claim = claim
        self.attempts = 1
        self.result: V | None = None
        self.over = False
        self.repeated = False
        self.stall: StalledRequest | None = None
        self.waiting: list[Wait[C, V]] = []

    def finish(self, result: V) -> V:
        """End an attempt with a result; return the one that counts for its caller."""
        self.attempts -= 1
        if self.over:
            return result if self.result is None or not result.has_failed else self.result
        if not (result.has_failed and self.attempts):
            self._close()
            self.result = result
            for wait in self.waiting:
                wait.resolve(result)
        return result

    def fail(self, error: BaseException) -> None:
        """End an attempt with an error, which all waiting callers get. A cancelled caller leaves the work to the
        others."""
        self.attempts -= 1
        if self.over or self.attempts:
            return
        self._close()
        for wait in self.waiting:
            if wait.result.done():
                continue
            if isinstance(error, Exception):
                wait.result.set_exception(error)
                wait.result.exception()  # marks it as retrieved: asyncio logs no error if the caller is gone
            else:
                wait.result.cancel()

    def _close(self) -> None:
        self.over = True
        del self._in_flight[self._key]


class Claim(Generic[K, C, V]):
    """Keys that one caller has claimed, at `positions`, and its first attempt at them, in its own task."""

    def __init__(self, caller: C) -> None:
        self.caller: C | None = caller
        self.positions: list[int] = []
        self.works: list[_Work[K, C, V]] = []
        self.context = contextvars.copy_context()
        self.tried = False
        self._running = True
        self._interrupted = False
        self._task = asyncio.current_task()
        self._cancelling = 0 if self._task is None else self._task.cancelling()

    def stalled(self, stall: StalledRequest, positions: Collection[int]) -> StalledWork[K, C, V]:
        """Note that the attempt at these positions has stalled."""
        works = [work for position, work in zip(self.positions, self.works, strict=False) if position in positions]
        for work in works:
            work.stall = stall
        return StalledWork(works, [wait for work in works for wait in work.waiting if wait.caller is not self.caller])

    def finish_early(self, results: Mapping[int, V]) -> None:
        """Hand results to those that wait for them, before the rest is there. Failures can wait: a second attempt may
        do better."""
        for position, work in zip(self.positions, self.works, strict=False):
            if position in results and not (work.over or results[position].has_failed):
                work.finish(results[position])

    def end(self) -> "list[_Work[K, C, V]]":
        """End the attempt; return its work."""
        works, self.works = self.works, []
        self._running = False
        self.caller = None
        return works

    def interrupt(self) -> None:
        """Cancel the attempt if other attempts have finished all of its work."""
        if self._running and not self._interrupted and self._task and all(work.over for work in self.works):
            self._interrupted = True
            self._task.cancel()

    def was_only_interrupted(self) -> bool:
        """Return whether `interrupt` was the only cancellation of the task."""
        return self._interrupted and self._task is not None and self._task.uncancel() <= self._cancelling


def _second_attempts(works: Sequence[_Work[K, C, V]]) -> list[SecondAttempt[K, C, V]]:
    """Return the second attempts for the stalled keys that callers wait for, one for all keys of the same caller."""
    attempts: dict[int, SecondAttempt[K, C, V]] = {}
    for work in works:
        if work.over or work.stall is None or work.repeated:
            continue
        wait = _first_waiting(work)
        if wait is not None and work.stall.allow_retry():
            wait.tried = True
            caller = id(wait.caller)  # unique while the attempt refers to the caller
            if caller not in attempts:
                attempts[caller] = SecondAttempt(wait.caller, wait.context)
            attempts[caller].add(wait.position, work)
    for attempt in attempts.values():
        attempt.mark_claims()
    return list(attempts.values())


def _first_waiting(work: _Work[K, C, V]) -> Wait[C, V] | None:
    """Return the wait that a second attempt is made for: of the caller that has waited longest and has not made one
    yet. If no other caller waits, it is the claiming one, provided that the stalled request is a batch."""
    claim = work.claim
    for wait in work.waiting:
        if not wait.tried and not wait.result.done() and wait.caller is not claim.caller:
            return wait
    if claim.caller is None or claim.tried or work.stall is None or not work.stall.is_batch:
        return None
    return Wait(claim.caller, claim.positions[claim.works.index(work)], claim.context)
