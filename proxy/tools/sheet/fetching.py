"""Opens the source of a job's parts, and fetches what it needs. Results are stored before a job has them: an
interrupted run costs nothing twice.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from msgspec.structs import replace

from proxy import config, errors
from proxy.gateway import Gateway
from proxy.kit import clock as clocks
from proxy.tools.sheet.formula_job import ApplicationLogin, FormulaJob
from proxy.tools.sheet.list_job import ListJob
from proxy.tools.sheet.source import BudgetExhausted, PartSource

# 100 parts that are given up are paid for all the same; the service itself ends a request after 30 s.
TOTAL_SECONDS = 120.0

LOGIN = "workbook"  # API key that a login of a workbook is charged to; its application's name begins with it
NOT_KEPT = "store: results are kept in memory only: a second run costs the same parts again"

Job = ListJob | FormulaJob


class FetchEnd(NamedTuple):
    """End of a run. `stopped` is the reason of an early end. `refused`: the upstream did not accept the credentials;
    `needed`: parts that the next query may cost, where the budget does not cover it."""

    results: int
    stopped: str | None
    refused: bool = False
    needed: int = 0


@asynccontextmanager
async def open_source(
    settings: config.Config,
    clock: clocks.Clock,
    *,
    apikey: str | None = None,
    login: ApplicationLogin | None = None,
    refresh_login: bool = False,
) -> AsyncIterator[PartSource]:
    """Open the source of a client: that of an API key, or of a login, or of the configuration's only application.
    `settings.upstream` holds addresses; `refresh_login` forgets a token. Raises ConfigError."""
    key, settings = _charged(settings, apikey, login)
    is_kept = settings.store.reveal() != "memory:"
    async with AsyncExitStack() as resources:
        if not is_kept:  # the parts of 10 000 lines would take 150 MB of memory
            folder = resources.enter_context(tempfile.TemporaryDirectory(prefix="v3bridge-"))
            settings = replace(settings, store=config.StoreUrl(f"sqlite:{folder}/state.sqlite"))
        if settings.upstream != "sandbox":  # one patient user, instead of many clients
            seconds = max(settings.upstream.total_seconds, TOTAL_SECONDS)
            settings = replace(settings, upstream=replace(settings.upstream, total_seconds=seconds))
        gateway = await Gateway.open(settings, clock, resources)
        client = gateway.applications.clients[key.reveal()]
        if refresh_login:
            await gateway.tokens.known[client.application.name].drop()
        yield PartSource(gateway, client, [] if is_kept else [NOT_KEPT])


def _charged(
    settings: config.Config, apikey: str | None, login: ApplicationLogin | None
) -> tuple[config.Digest, config.Config]:
    if apikey is not None:
        key = config.digest(apikey)
        if not any(key == each.key for entry in settings.applications.values() for each in entry.apikeys):
            raise errors.ConfigError("the API key belongs to no application of the configuration")
        return key, settings
    if login is None:
        if len(settings.applications) > 1:
            names = ", ".join(settings.applications)
            raise errors.ConfigError(f"several applications ({names}): say which one pays, by one of its API keys")
        [only] = settings.applications.values()
        return only.apikeys[0].key, settings
    # An unlimited application, unless one with the credentials of the login is configured, whose quota then applies.
    name, entry = LOGIN, config.ApplicationSettings(client_id=login.client_id, client_secret=login.client_secret)
    for each, other in settings.applications.items():
        if (other.client_id, other.client_secret) == (login.client_id, login.client_secret):
            name, entry = each, other
    # No client has this key, and no server runs: usage is counted by application and key.
    own = config.ApiKeySettings(config.digest(LOGIN), name=LOGIN)
    return own.key, replace(settings, applications={name: replace(entry, apikeys=(own,))})


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
            needed = error.needed if isinstance(error, BudgetExhausted) else 0
            return FetchEnd(count, error.message, isinstance(error, errors.CredentialsRefused), needed)
        if stop.is_set() and job.needed():
            return FetchEnd(count, "interrupted")
        if count == before:
            return FetchEnd(count, "no result came")
    return FetchEnd(count, None)
