"""Cache entries that can serve a request: their keys, whose they are, how long they live, and what they must hold."""

from typing import Any

import msgspec

from proxy import config
from proxy.explain.explanation import CacheEntry, CacheUse
from proxy.gateway.queries import GatewayRequest, QuerySet
from proxy.kit.wording import duration
from proxy.model import SearchRequest

CRITERIA = ("q", "mpn", "brand", "sku", "seller", "mpn_or_sku", "start", "limit")
"""Names of model.PartsMatchQuery.criteria, in order."""


def cache_use(
    settings: config.Config, request: GatewayRequest, queries: QuerySet | None, positions: list[int]
) -> CacheUse:
    """Describe the cache entries of a request; `positions` are the numbers of its queries."""
    cache = settings.cache
    keys = [] if queries is None else [each.key for each in queries.keys]
    return CacheUse(
        enabled=cache.enabled,
        application=request.client.application.name,
        entries=tuple(
            CacheEntry(query=position, key=_named(key)) for position, key in zip(positions, keys, strict=True)
        )
        if cache.enabled and queries is not None
        else (),
        seconds=cache.seconds,
        stale_seconds=max(0.0, cache.lifetime - cache.seconds),
        shared=cache.enabled and cache.shared,
        fields=0 if queries is None else len(queries.renderer.part.fields),
        notes=tuple(_notes(settings, queries)),
    )


def _named(key: Any) -> dict[str, Any]:
    """Return the key of a query by name; its first value is the application."""
    _, *query = key
    if isinstance(query[0], SearchRequest):
        return {"kind": "search", **msgspec.to_builtins(query[0])}
    kind, *values = query
    if kind == "part":
        return {"kind": kind, "uid": values[0]}
    exact_only, *criteria = values
    return {"kind": kind, "exact_only": exact_only, **dict(zip(CRITERIA, criteria, strict=True))}


def _notes(settings: config.Config, queries: QuerySet | None) -> list[str]:
    if queries is None:
        return [
            f"The list is kept in memory for {duration(settings.lists.seconds)}, for all requests; then it is fetched "
            "again in the background."
        ]
    if not settings.cache.enabled:
        return ["The response cache is off (cache.seconds or cache.bytes is 0)."]
    if not queries.keys:
        return []
    coalescing = "Equal queries, of one request or of several in flight, are sent once."
    return [
        "Any entry serves the request that has all fields of this projection, whichever request stored it.",
        "From the third time on, a request that is equal byte for byte is served without being parsed.",
        *([coalescing] if settings.coalescing.enabled else []),
    ]
