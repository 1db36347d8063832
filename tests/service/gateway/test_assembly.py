"""Parts that a reload keeps: the key of each names every setting that it is made of.

All parts are made once with each setting changed. Where the values inside a part then differ, its key must differ, too:
else a reload would go on with the old part, and nobody would notice that the setting is not applied.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, TypeVar

import msgspec

from proxy import config
from proxy.config.base import Settings
from proxy.gateway import assembly
from proxy.gateway.process import ProcessState, SharedResources
from proxy.kit import clock
from proxy.mapping import loader
from proxy.planning import projection_cache

T = TypeVar("T")

APPLIED_OTHERWISE = {
    # ResponseCache.activate gives the storage its size, so that a reload keeps the entries.
    ("cache", "cache.bytes"),
    # Quota.track: one quota for all configurations, because bookings of earlier requests need its reservations.
    ("quota", "applications"),
}
DEMO = config.ApplicationSettings(
    apikeys=(config.ApiKeySettings(config.digest("a")),),
    client_id=config.ClientId("id"),
    client_secret=config.Secret("secret"),
)
BASE = config.Config(
    applications={"demo": DEMO},
    upstream=config.UpstreamSettings("http://127.0.0.1:9/graphql", "http://127.0.0.1:9/token"),
)
# Where a value of the same type cannot just be made: text that must be of a form, and what is None by default.
VALUES: dict[str, Any] = {
    "applications": {"demo": msgspec.structs.replace(DEMO, parts=7, client_id=config.ClientId("another"))},
    "upstream.graphql_url": "http://127.0.0.1:9/other",
    "upstream.token_url": "http://127.0.0.1:9/other",
    "upstream.proxy": config.ProxyAddress("http://127.0.0.1:9"),
    "upstream.scope": "another",
    "upstream.connect_to": ("127.0.0.1:9:127.0.0.1:10",),
    "translation.single_query": "supSearchMpn",
    "cache.fetch": "requested",
}
NOT_CHANGED = {
    # Applied once, at the start; or by others than the gateway.
    *("store", "listen", "admin", "log"),
    # Files are compared by their digests (test_reload.py replaces some), and what is made of them is not looked into.
    *("uids", "upstream.tls", "upstream.site"),
}
# An empty table of queries in flight; and the two that are told apart by files and by `store`.
MADE_OF_NO_SETTING = {"in flight", "mappings", "store"}


def changed(settings: Settings, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting of a block by name, and the block with another value of it."""
    for field in settings.__struct_fields__:
        name, value = f"{prefix}{field}", getattr(settings, field)
        if name in NOT_CHANGED:
            continue
        if name in VALUES:
            yield name, msgspec.structs.replace(settings, **{field: VALUES[name]})
        elif isinstance(value, Settings):
            for inner, block in changed(value, f"{name}."):
                yield inner, msgspec.structs.replace(settings, **{field: block})
        elif isinstance(value, dict):
            yield name, msgspec.structs.replace(settings, **{field: {**value, "name": 429}})
        elif isinstance(value, bool):
            yield name, msgspec.structs.replace(settings, **{field: not value})
        elif isinstance(value, int | float):
            another = value + 1 if isinstance(value, int) else value / 2 or 1.0  # a share is 1 at most
            yield name, msgspec.structs.replace(settings, **{field: another})
        else:
            raise AssertionError(f"{name} needs another value in VALUES")


def values(part: Any, path: str, visited: set[int]) -> Iterator[tuple[str, object]]:
    """All plain values inside a part, by where they are; those of other libraries' objects only as far as aiohttp's."""
    if isinstance(part, str | int | float | bytes | Path | Settings | config.Secret | None):
        yield path, part
        return
    if id(part) in visited or isinstance(part, loader.Mappings | projection_cache.ProjectionCache):
        return
    visited.add(id(part))
    inner: dict[object, Any] = {}
    if isinstance(part, dict):
        inner = part
    elif isinstance(part, list | tuple | set | frozenset):
        inner = dict(enumerate(part))
    elif isinstance(part, FunctionType):
        inner = {number: cell.cell_contents for number, cell in enumerate(part.__closure__ or ())}
    elif isinstance(part, MethodType):
        inner = {"self": part.__self__}
    elif isinstance(part, partial):
        inner = {"function": part.func, "arguments": part.args, "keywords": part.keywords}
    elif type(part).__module__.startswith(("proxy.", "aiohttp.")):
        slots = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
        inner = getattr(part, "__dict__", {}) | {name: getattr(part, name, None) for name in slots}
    for name, value in inner.items():
        yield from values(value, f"{path}.{name}", visited)


class RecordedResources(SharedResources):
    """Key and values of each part by name, as they are when it has been made: before its background work begins."""

    def __init__(self, common: set[int]) -> None:
        super().__init__()
        self._common = common
        self.parts: dict[str, tuple[Hashable, dict[str, object]]] = {}

    async def obtain(self, key: Any, user: AsyncExitStack, open_: Callable[[AsyncExitStack], Awaitable[T]]) -> T:
        part = await super().obtain(key, user, open_)
        self.parts[key[0]] = key, dict(values(part, "", set(self._common)))
        return part


async def made(settings: config.Config) -> dict[str, tuple[Hashable, dict[str, object]]]:
    """Make the parts of a gateway in a process of its own."""
    process = ProcessState(clock.ManualClock())
    common = {id(each) for each in (process, process.metrics, process.callers, process.clock)}
    process.shared = recorded = RecordedResources(common)
    async with AsyncExitStack() as resources:
        await assembly.build(settings, process.clock, resources, process=process)
    return recorded.parts


async def test_key_of_a_part_names_all_that_it_is_made_of(tmp_path: Path) -> None:
    configured = msgspec.structs.replace(BASE, store=config.StoreUrl(f"sqlite:{tmp_path}/state.sqlite"))
    base, again = await made(configured), await made(configured)
    forgotten, noticed = set(), set()
    for setting, settings in changed(configured):
        for name, (key, content) in (await made(settings)).items():
            if name not in base:
                continue
            before_key, before = base[name]
            # Without values that differ each time, such as random ids.
            constant = before.items() & again[name][1].items()
            if any(content.get(path, "gone") != value for path, value in constant):
                noticed.add((name, setting))
                if key == before_key:
                    forgotten.add((name, setting))
    assert forgotten == APPLIED_OTHERWISE
    # Else a part whose values are not reached would pass with any key.
    assert {name for name, _ in noticed} == base.keys() - MADE_OF_NO_SETTING
