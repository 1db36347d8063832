"""One run of `v3bridge sheet fill`: the queries of a job are fetched, until all are done or the run stops.

A job is what is filled: columns of a table, or the add-in's formulas. It knows its cells, a PartSource knows parts and
money, and this module knows neither. Results are in the source's cache before a job has them, so that an interrupted
run costs nothing twice.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from proxy import errors
from proxy.tools.sheet.parts import BudgetExhausted, PartQuery, PartResult, PartSource, Refresh

# Outcomes of a line or a cell, the gravest last.
FOUND, NO_VALUE, STALE, AMBIGUOUS, NOT_FOUND, FAILED = OUTCOMES = (
    *("found", "no value", "stale", "ambiguous", "not found", "failed"),
)
NO_PART, OLD = f"{NOT_FOUND}: no part has this number", f"{STALE}: older than 24 hours, or of unknown age"
COMPLETE = (FOUND, NO_VALUE, STALE)  # those that need no other run
INTERRUPTED = "interrupted"
FILLED = ".filled"  # before the suffix of a filled copy


class FillJob(Protocol):
    """What a run fills."""

    @property
    def unit(self) -> str:
        """What is filled and counted: a line, or a cell."""

    @property
    def lines(self) -> int:
        """Number of lines with a part number, or of cells with a function."""

    @property
    def queries(self) -> Sequence[PartQuery]:
        """Distinct queries to execute, in the order of the cells."""

    @property
    def kept_queries(self) -> Sequence[PartQuery]:
        """Queries of lines whose values stay: their results are taken from the cache, for their offers."""

    @property
    def later_queries(self) -> int:
        """Queries at most that need results of these, and are known only then."""

    @property
    def problems(self) -> Sequence[str]:
        """Cells that are not filled, and why; after the run."""

    @property
    def distributors(self) -> Collection[str]:
        """Names and ids of distributors whose offers alone count."""

    def refuse_distributor(self, name: str, reason: str) -> None:
        """Spend nothing on what needs the offers of a distributor that does not exist. Raises ConfigError with the
        reason where nothing else is asked for."""

    @property
    def notes(self) -> Sequence[str]:
        """What the user should know before the run."""

    @property
    def reasons(self) -> Mapping[str, int]:
        """Why lines or cells lack values, and how many of them; after `write`."""

    def add(self, result: PartResult) -> None:
        """Take one result."""

    async def proceed(self, *, stopped: bool) -> Sequence[PartQuery]:
        """Continue after the results of all queries, or after an early end; return the queries that need these
        results."""

    def write(self, target: Path) -> Mapping[str, int]:
        """Write the filled file; return the number of lines by outcome (`found`, `no value`, `not found`, `ambiguous`,
        `stale`, `failed`, …). Raises StartError."""


class FillProgress(NamedTuple):
    """Progress of a run: results so far, and parts billed for them."""

    results: int
    parts: int


class FillEnd(NamedTuple):
    """End of a run. `stopped` is the reason of an early end; `results` may then be fewer than the queries. `refused`:
    the upstream did not accept the credentials."""

    results: int
    parts: int
    stopped: str | None
    refused: bool = False


async def fetch(
    job: FillJob,
    source: PartSource,
    stop: asyncio.Event,
    *,
    budget: int | None = None,
    refresh: Refresh = "nothing",
    note: Callable[[PartResult], None] = lambda _: None,
    tell: Callable[[FillProgress], None] = lambda _: None,
) -> FillEnd:
    """Fetch the job's queries, until `stop` is set. Errors that make further requests useless, such as an exhausted
    quota or budget, end the run and become its reason; what was fetched before is the job's. `note` gets each result,
    `tell` the progress."""
    begin, results, stopped, refused = source.parts_spent, 0, None, False

    def take(result: PartResult) -> None:
        nonlocal results
        note(result)
        job.add(result)
        missing.discard(result.query)
        results += 1
        tell(FillProgress(results, source.parts_spent))

    queries = job.queries or await job.proceed(stopped=False)
    while queries:
        missing = set(queries)
        left = None if budget is None else max(0, budget - (source.parts_spent - begin))
        try:
            # Closing the source's generator waits for requests in flight: they are billed already.
            fetching = source.fetch(queries, budget=left, refresh=refresh)
            async with aclosing(fetching), aclosing(_until(stop, fetching)) as arriving:
                async for result in arriving:
                    take(result)
            # The cache has what was in flight at the signal; where everything is fetched anew, old results, too.
            if stop.is_set() and missing and refresh != "everything":
                async for result in _cached([query for query in queries if query in missing], source, refresh):
                    take(result)
        except errors.StartError:
            raise
        except errors.BridgeError as error:
            stopped, refused = error.message, isinstance(error, errors.CredentialsRefused)
        # A signal after the last result is no early end, unless further queries follow.
        if stopped is None and stop.is_set() and missing:
            stopped = INTERRUPTED
        queries = await job.proceed(stopped=stopped is not None)
    async for result in _cached(job.kept_queries, source, "nothing"):
        job.add(result)
    return FillEnd(results, source.parts_spent, stopped, refused)


async def _cached(
    queries: Sequence[PartQuery], source: PartSource, refresh: Refresh
) -> AsyncGenerator[PartResult, None]:
    """Yield the results that cost nothing."""
    with suppress(BudgetExhausted):
        async with aclosing(source.fetch(queries, budget=0, refresh=refresh)) as results:
            async for result in results:
                yield result


async def _until(stop: asyncio.Event, results: AsyncGenerator[PartResult, None]) -> AsyncGenerator[PartResult, None]:
    """Yield results until `stop` is set. The next one is not waited for then: meanwhile further requests would be sent.
    What the source has in flight is waited for where it is cancelled."""
    stopping = asyncio.create_task(stop.wait(), name="signal to stop")
    step: asyncio.Task[PartResult | None] | None = None
    try:
        while not stop.is_set():
            step = asyncio.create_task(_next(results), name="next result")
            await asyncio.wait({step, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                step.cancel()
                await asyncio.wait({step})
                return
            result = step.result()
            if result is None:
                return
            yield result
    finally:
        stopping.cancel()
        if step is not None:
            step.cancel()  # without effect where it is done; the second time, it no longer waits


async def _next(results: AsyncGenerator[PartResult, None]) -> PartResult | None:
    return await anext(results, None)


def copy_path(file: Path) -> Path:
    """Return the path of the filled copy: `BOM.filled.xlsx`; that of a filled file is `BOM.filled-2.xlsx`."""
    stem, mark, number = file.stem.rpartition(FILLED)
    if mark and stem and (not number or (number.startswith("-") and number[1:].isdecimal())):
        return file.with_name(f"{stem}{FILLED}-{int(number[1:] or 1) + 1}{file.suffix}")
    return file.with_name(f"{file.stem}{FILLED}{file.suffix}")
