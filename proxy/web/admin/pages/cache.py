"""Cache: the response cache in the memory of the workers and the shared one, their hits, and clearing them."""

import msgspec

from proxy import errors
from proxy.gateway.assembly import Gateway
from proxy.gateway.cache import clearing
from proxy.kit.wording import counted
from proxy.stores.protocols import CacheUsage
from proxy.telemetry.metrics import Metrics
from proxy.web.admin.page import ActionResult, AdminAction, AdminContext, AdminPage, PageData, PageParameter, Query


class MemoryCache(msgspec.Struct, frozen=True):
    """A cache in the memory of the workers, all of them together; `limit` is the sum of their limits, in bytes."""

    name: str
    entries: int
    bytes: int
    limit: int


class SharedEntries(msgspec.Struct, frozen=True):
    """Entries of an application in the shared cache; ages are in seconds.

    `refetch_parts` is what they cost if each is requested again, at `parts_per_query`; null where that is not known.
    """

    application: str
    entries: int
    bytes: int
    oldest_age: float
    newest_age: float
    refetch_parts: int | None


class QuerySource(msgspec.Struct, frozen=True):
    """Queries since the start by where their results came from; `share` is their part of all queries, 0 to 1."""

    name: str
    queries: int
    share: float


class CachePage(PageData, frozen=True, kw_only=True):
    """Response cache at the time `at` (seconds since 1970).

    `fresh_seconds` is how long an entry is used, `stale_seconds` how much longer it is served while the upstream fails.
    `workers` are those of all machines. `hit_ratio` is the share of queries that were not sent upstream, null before
    the first; `parts_per_query` is what those that were sent have cost on average. `shared_off` says why there is no
    shared cache, null where there is one. `store_failure` is why the entries of the shared cache are missing.
    """

    at: float
    enabled: bool
    fresh_seconds: float
    stale_seconds: float
    workers: int
    memory: tuple[MemoryCache, ...]
    shared_off: str | None
    shared_limit: int
    shared: tuple[SharedEntries, ...]
    sources: tuple[QuerySource, ...]
    hit_ratio: float | None
    parts_per_query: float | None
    store_failure: str | None


async def _data(context: AdminContext, _: Query) -> CachePage:
    """Read metrics of all workers and the shared cache."""
    gateway, store_failure = context.service.gateway, None
    cluster = context.service.cluster
    machines = await cluster.instances()
    metrics = cluster.metrics(machines)
    workers = sum(len(machine.workers) for machine in machines)
    cache, now = gateway.settings.cache, gateway.clock.now()
    sources = _sources(metrics)
    cost = _parts_per_query(metrics)
    usages: list[CacheUsage] = []
    try:
        usages = await gateway.cache.shared.usage() if gateway.cache.shared is not None else []
    except errors.StoreUnavailable as error:
        store_failure = error.message
    return CachePage(
        at=now,
        enabled=cache.enabled,
        fresh_seconds=cache.seconds,
        stale_seconds=cache.lifetime - cache.seconds if cache.enabled else 0.0,
        workers=workers,
        memory=_memory(gateway, metrics, workers),
        shared_off=_shared_off(gateway),
        shared_limit=cache.shared_bytes,
        shared=tuple(_shared(usage, now, cost) for usage in usages),
        sources=sources,
        hit_ratio=sum(source.share for source in sources[:-1]) if sources else None,
        parts_per_query=cost,
        store_failure=store_failure,
    )


def _memory(gateway: Gateway, metrics: Metrics, workers: int) -> tuple[MemoryCache, ...]:
    if gateway.cache.entries is None:
        return ()
    cache = gateway.settings.cache
    limits = {"queries": cache.query_bytes, "responses": cache.encoded_bytes}
    return tuple(
        MemoryCache(name, int(metrics.cache_entries[name,]), int(metrics.cache_bytes[name,]), workers * limit)
        for name, limit in limits.items()
    )


def _shared(usage: CacheUsage, now: float, cost: float | None) -> SharedEntries:
    return SharedEntries(
        usage.application,
        usage.entries,
        usage.bytes,
        oldest_age=round(max(0.0, now - usage.oldest), 1),
        newest_age=round(max(0.0, now - usage.newest), 1),
        refetch_parts=None if cost is None else round(usage.entries * cost),
    )


def _shared_off(gateway: Gateway) -> str | None:
    if gateway.cache.shared is not None:
        return None
    if not gateway.settings.cache.enabled:
        return "the response cache is off"
    if not gateway.settings.cache.shared:
        return "`cache.shared` is false"
    return "the store is in memory, which nothing is shared through"


def _sources(metrics: Metrics) -> tuple[QuerySource, ...]:
    """Return the sources of results, the upstream last; none before the first query."""
    shared = metrics.shared_cache_lookups["hit",]
    queries = {
        "memory": max(0.0, metrics.queries["hit",] - shared),  # "hit" counts both caches
        "shared cache": shared,
        "coalesced with an equal query": metrics.queries["shared",],
        "stale": metrics.queries["stale",],
        "upstream": metrics.queries["miss",],
    }
    total = sum(queries.values())
    return tuple(QuerySource(name, int(number), number / total) for name, number in queries.items()) if total else ()


def _parts_per_query(metrics: Metrics) -> float | None:
    misses = metrics.queries["miss",]
    return round(sum(metrics.parts.values()) / misses, 2) if misses else None


async def _clear(context: AdminContext, fields: Query) -> ActionResult:
    gateway = context.service.gateway
    application = fields.get("application", "")
    if application and application not in gateway.settings.applications:
        raise errors.BadRequest("no application has this name")
    deleted = await clearing.clear(gateway.store, gateway.cache.shared, application or None)
    whose = application or "all applications"
    return ActionResult(
        f"The cache of {whose} is cleared: {counted(deleted, 'entry', 'entries')} of the shared cache at once, "
        "those in the memory of the workers within a second."
    )


PAGE = AdminPage(
    "cache", "Cache", "Response cache in memory and shared: entries, bytes, ages and hits.", CachePage, _data
)
ACTIONS = (
    AdminAction(
        "/cache/clear",
        "cache",
        "Clear the response cache of all workers and machines; the next requests cost parts again.",
        _clear,
        (PageParameter("application", "Name of the application; all if omitted."),),
    ),
)
