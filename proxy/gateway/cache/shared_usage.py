"""Usage and clearing of a shared cache. References to entries, by which parts are found by uid, are stored under a name
of their own: they are no entries to people, but take space, and go with them."""

from proxy.stores.protocols import CacheStore, CacheUsage

REFERENCES = "#parts"  # after an application, in whose name this does not occur


def references_of(application: str) -> str:
    """Return the name under which references to an application's entries are stored."""
    return f"{application}{REFERENCES}"


async def usage(cache: CacheStore) -> list[CacheUsage]:
    """Return the usage of every application with entries, by name. Raises StoreUnavailable."""
    stored = {each.application: each for each in await cache.cache_usage()}
    return [
        each._replace(bytes=each.bytes + stored[references].bytes)
        if (references := references_of(name)) in stored
        else each
        for name, each in stored.items()
        if not name.endswith(REFERENCES)
    ]


async def clear(cache: CacheStore, application: str | None) -> int:
    """Delete the entries of an application, or all; return how many. Raises StoreUnavailable."""
    if application is not None:
        await cache.clear(references_of(application))
        return await cache.clear(application)
    entries = sum(each.entries for each in await usage(cache))
    await cache.clear(None)
    return entries
