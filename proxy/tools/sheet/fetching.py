"""Fetches what a job needs. Results are stored before a job has them: an interrupted run costs nothing twice."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple

from proxy import errors
from proxy.tools.sheet.formula_job import FormulaJob
from proxy.tools.sheet.list_job import ListJob
from proxy.tools.sheet.parts import PartResult
from proxy.tools.sheet.source import PartSource

Job = ListJob | FormulaJob


class FetchEnd(NamedTuple):
    """End of a run. `stopped` is the reason of an early end. `refused`: the upstream did not accept the credentials."""

    results: int
    stopped: str | None
    refused: bool = False


async def add_stored(job: Job, source: PartSource) -> None:
    """Give a job the results that cost nothing."""
    while (await fetch(job, source, asyncio.Event(), budget=0)).results:
        pass


async def fetch(
    job: Job,
    source: PartSource,
    stop: asyncio.Event,
    *,
    budget: int | None = None,
    anew: bool = False,
    tell: Callable[[int], None] = lambda _: None,
) -> FetchEnd:
    """Fetch what a job needs, until `stop` is set, or an error makes further requests useless; what was fetched before
    is the job's. `tell` gets the number of results."""
    begin, count = source.parts_spent, 0
    while queries := job.needed():
        before = count
        left = None if budget is None else max(0, budget - (source.parts_spent - begin))
        try:
            # Closing the source's generator waits for requests in flight: they are billed already.
            fetching = source.fetch(queries, budget=left, anew=anew)
            async with aclosing(fetching), aclosing(_until(stop, fetching)) as arriving:
                async for result in arriving:
                    job.add(result)
                    count += 1
                    tell(count)
        except errors.StartError:
            raise
        except errors.BridgeError as error:
            return FetchEnd(count, error.message, isinstance(error, errors.CredentialsRefused))
        if stop.is_set() and job.needed():
            # What was in flight at the signal is stored; where everything is fetched anew, older results are, too.
            if not anew:
                await add_stored(job, source)
            return FetchEnd(count, "interrupted")
        if count == before:
            return FetchEnd(count, "no result came")
    return FetchEnd(count, None)


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
