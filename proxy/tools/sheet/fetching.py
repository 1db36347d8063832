"""Fetches what a job needs. Results are stored before a job has them: an interrupted run costs nothing twice."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from proxy import errors
from proxy.tools.sheet.formula_job import FormulaJob
from proxy.tools.sheet.list_job import ListJob
from proxy.tools.sheet.source import PartSource

Job = ListJob | FormulaJob


class FetchEnd(NamedTuple):
    """End of a run. `stopped` is the reason of an early end. `refused`: the upstream did not accept the credentials."""

    results: int
    stopped: str | None
    refused: bool = False


async def add_stored(job: Job, source: PartSource) -> None:
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
            async for result in source.fetch(queries, budget=left, anew=anew, stop=stop):
                job.add(result)
                count += 1
                tell(count)
        except errors.StartError:
            raise
        except errors.BridgeError as error:
            return FetchEnd(count, error.message, isinstance(error, errors.CredentialsRefused))
        if stop.is_set() and job.needed():
            return FetchEnd(count, "interrupted")
        if count == before:
            return FetchEnd(count, "no result came")
    return FetchEnd(count, None)
