"""Many callers, one piece of work, done by whoever came first: no task is made for a caller that stays alone.

For the hot path, where a task would cost more than it saves; single_flight.py is for work that must outlive its caller.
A caller brings several pieces, does those that nobody does in one go, and waits for the others. Where one stalls, those
who wait get a substitute, or the outcome of one second attempt, which has a task of its own.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Stall(Protocol):
    """Why work takes too long."""

    @property
    def is_batch(self) -> bool:
        """Whether several callers' work is held up, though nobody else waits for any of it."""

    def allow_retry(self) -> bool:
        """Whether the work may be done a second time."""


class Job(Protocol[V]):
    """What one caller wants done, at positions of its own."""

    def work(self, positions: list[int], stalled: Callable[[Stall], None] | None) -> Awaitable[Sequence[V]]:
        """Do the work at these positions; its outcomes in their order. `stalled` is called where it stalls."""

    def substitute(self, position: int) -> V | None:
        """What will do instead, at once, where the work has stalled."""

    def has_failed(self, outcome: V) -> bool:
        """Whether another attempt may come to something better."""

    def was_refused(self, outcome: V) -> bool:
        """Whether this caller may not have the work done, though another may."""


class _Want(Generic[V]):
    """A caller's wish for one piece of work: for the second attempt, in the context in which it came."""

    __slots__ = ("context", "job", "outcome", "position", "tried")

    def __init__(self, job: Job[V], position: int, context: contextvars.Context) -> None:
        self.job = job
        self.position = position
        self.context = context
        self.outcome: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        self.tried = False


class _Piece(Generic[K, V]):
    """Work on one key: how many `attempts` are under way, who waits for it, and its outcome once it is `over`."""

    __slots__ = ("attempts", "key", "lead", "outcome", "over", "repeated", "stall", "waiting")

    def __init__(self, key: K) -> None:
        self.key = key
        self.attempts = 1
        self.lead: _Lead[K, V] | None = None
        self.outcome: V | None = None
        self.over = False
        self.repeated = False
        self.stall: Stall | None = None
        self.waiting: list[_Want[V]] = []


class _Lead(Generic[K, V]):
    """The first attempt at some pieces, in its caller's own task.

    Connections and timers made in that task remember its context, and with it who is told of a stall, for long after:
    an attempt that has ended holds nothing.
    """

    __slots__ = ("cancelling", "context", "interrupted", "job", "mine", "pieces", "running", "task", "tried")

    def __init__(self, job: Job[V], mine: list[int], pieces: list[_Piece[K, V]]) -> None:
        self.job: Job[V] | None = job
        self.mine = mine
        self.pieces = pieces
        self.context = contextvars.copy_context()
        self.task = asyncio.current_task()
        self.cancelling = 0 if self.task is None else self.task.cancelling()
        self.running = True
        self.interrupted = False
        self.tried = False

    def end(self) -> None:
        """Nobody works at it any more."""
        self.running = False
        self.pieces = []
        self.job = None

    def interrupt(self) -> None:
        """End the attempt where others have done all of its pieces."""
        if self.running and not self.interrupted and self.task and all(piece.over for piece in self.pieces):
            self.interrupted = True
            self.task.cancel()

    def was_only_interrupted(self) -> bool:
        """Whether the task that ends was not cancelled by anybody else."""
        return self.interrupted and self.task is not None and self.task.uncancel() <= self.cancelling


class SharedWork(Generic[K, V]):
    """Work under way, by key, with those who wait for it. Keeps nothing once it is done."""

    def __init__(self) -> None:
        self._under_way: dict[K, _Piece[K, V]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, keys: Sequence[K], job: Job[V]) -> tuple[list[V], int]:
        """The outcome for every key, and for how many of them it was somebody else's.

        The job is given the positions of the keys that nobody works at; its errors are shared. Where who works at a
        key is cancelled, it is worked at anew.
        """
        joined = {n: key for n, key in enumerate(keys) if not self._claim(key)}
        if not joined:
            return list(await self._lead(keys, job, list(range(len(keys))))), 0
        waiting = self._join(joined, job)
        mine = [n for n in range(len(keys)) if n not in joined]
        left = []
        try:
            outcomes = dict(zip(mine, await self._lead(keys, job, mine), strict=True)) if mine else {}
            for n, outcome in waiting.items():
                await asyncio.wait((outcome,))
                if outcome.cancelled():
                    left.append(n)
                else:
                    outcomes[n] = outcome.result()
        finally:
            for outcome in waiting.values():
                outcome.cancel()  # whoever has left waits for nothing
        if left:
            again, _ = await self.run([keys[n] for n in left], _Rest(job, left))
            outcomes |= dict(zip(left, again, strict=True))
        return [outcomes[n] for n in range(len(keys))], len(joined) - len(left)

    async def close(self) -> None:
        """Wait for second attempts."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _claim(self, key: K) -> bool:
        """Whether the work is the caller's from now on."""
        if key in self._under_way:
            return False
        self._under_way[key] = _Piece(key)
        return True

    def _join(self, joined: dict[int, K], job: Job[V]) -> dict[int, asyncio.Future[V]]:
        context = contextvars.copy_context()
        wants = {n: _Want(job, n, context) for n in joined}
        pieces = {n: self._under_way[key] for n, key in joined.items()}
        for n, want in wants.items():
            if pieces[n].stall is None or not _substitute(pieces[n], want):
                pieces[n].waiting.append(want)
        self._relieve([piece for piece in pieces.values() if piece.stall is not None])
        return {n: want.outcome for n, want in wants.items()}

    async def _lead(self, keys: Sequence[K], job: Job[V], mine: list[int]) -> Sequence[V]:
        pieces = [self._under_way[keys[n]] for n in mine]
        lead = _Lead(job, mine, pieces)
        for piece in pieces:
            piece.lead = lead

        def stalled(stall: Stall) -> None:
            for piece in lead.pieces:
                piece.stall = stall
                piece.waiting = [want for want in piece.waiting if not _substitute(piece, want)]
            self._relieve(lead.pieces)

        try:
            outcomes = await job.work(mine, stalled)
        except BaseException as error:
            lead.end()
            if lead.was_only_interrupted():
                return [piece.outcome for piece in pieces]  # type: ignore[misc] # all are over
            for piece in pieces:
                self._fail(piece, error)
            raise
        lead.end()
        lead.was_only_interrupted()
        return [self._end(piece, outcome, job) for piece, outcome in zip(pieces, outcomes, strict=True)]

    def _relieve(self, pieces: Sequence[_Piece[K, V]]) -> None:
        """Make one second attempt for each piece that has stalled and that somebody waits for."""
        chosen: dict[int, list[tuple[_Want[V], _Piece[K, V]]]] = {}
        for piece in pieces:
            if piece.over or piece.stall is None:
                continue
            want = None if piece.repeated else _first(piece)
            if want is not None and piece.stall.allow_retry():
                want.tried = piece.repeated = True
                piece.attempts += 1
                chosen.setdefault(id(want.job), []).append((want, piece))
        for some in chosen.values():
            self._start(some)

    def _start(self, some: list[tuple[_Want[V], _Piece[K, V]]]) -> None:
        for want, piece in some:
            if piece.lead is not None and piece.lead.job is want.job:
                piece.lead.tried = True
        task = asyncio.create_task(self._repeat(some), name="second attempt", context=some[0][0].context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _repeat(self, some: list[tuple[_Want[V], _Piece[K, V]]]) -> None:
        job = some[0][0].job
        try:
            outcomes = await job.work([want.position for want, _ in some], None)
        except BaseException as error:
            for _, piece in some:
                self._fail(piece, error)
            if not isinstance(error, Exception):
                raise
            return
        refused = []
        for (_, piece), outcome in zip(some, outcomes, strict=True):
            if job.was_refused(outcome) and piece.attempts > 1:
                piece.attempts -= 1
                piece.repeated = False
                refused.append(piece)
            else:
                self._end(piece, outcome, job)
                if piece.lead is not None:
                    piece.lead.interrupt()
        self._relieve(refused)

    def _end(self, piece: _Piece[K, V], outcome: V, job: Job[V]) -> V:
        """An attempt has come to an outcome; gives the one that counts for its caller."""
        piece.attempts -= 1
        failed = job.has_failed(outcome)
        if piece.over:
            return outcome if piece.outcome is None or not failed else piece.outcome
        if not (failed and piece.attempts):
            self._close(piece)
            piece.outcome = outcome
            for want in piece.waiting:
                if not want.outcome.done():
                    want.outcome.set_result(outcome)
        return outcome

    def _fail(self, piece: _Piece[K, V], error: BaseException) -> None:
        """An attempt has ended without an outcome."""
        piece.attempts -= 1
        if piece.over or piece.attempts:
            return
        self._close(piece)
        for want in piece.waiting:
            _pass_on(want.outcome, error)

    def _close(self, piece: _Piece[K, V]) -> None:
        piece.over = True
        del self._under_way[piece.key]


class _Rest(Generic[V]):
    """A job at some of its positions."""

    def __init__(self, job: Job[V], positions: list[int]) -> None:
        self._job = job
        self._positions = positions
        self.has_failed = job.has_failed
        self.was_refused = job.was_refused

    def work(self, positions: list[int], stalled: Callable[[Stall], None] | None) -> Awaitable[Sequence[V]]:
        return self._job.work([self._positions[n] for n in positions], stalled)

    def substitute(self, position: int) -> V | None:
        return self._job.substitute(self._positions[position])


def _substitute(piece: _Piece[K, V], want: _Want[V]) -> bool:
    """Whether who waits has what will do. Who leads gets nothing: its attempt goes on, and others wait for it."""
    if want.outcome.done() or (piece.lead is not None and want.job is piece.lead.job):
        return False
    found = want.job.substitute(want.position)
    if found is None:
        return False
    want.outcome.set_result(found)
    return True


def _first(piece: _Piece[K, V]) -> _Want[V] | None:
    """For whom a second attempt is made: who has waited longest and has not been refused one. Where nobody waits, for
    who leads, if the stall holds several callers up."""
    lead = piece.lead
    for want in piece.waiting:
        if not want.tried and not want.outcome.done() and (lead is None or want.job is not lead.job):
            return want
    if lead is None or lead.job is None or lead.tried or piece.stall is None or not piece.stall.is_batch:
        return None
    return _Want(lead.job, lead.mine[lead.pieces.index(piece)], lead.context)


def _pass_on(outcome: asyncio.Future[V], error: BaseException) -> None:
    """An error is everybody's; a caller that was cancelled leaves the work to the others."""
    if outcome.done():
        return
    if isinstance(error, Exception):
        outcome.set_exception(error)
        outcome.exception()  # looked at here: whoever waits may be gone, and then it is nobody's fault
    else:
        outcome.cancel()
