"""The legacy v3 service without HTTP: from query strings to response bodies (contract v3-rest.md §1-§4), with API keys
and their rate limits.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from proxy.kit import clock as clocks
from proxy.kit import windows
from proxy.sandbox.catalog import store
from proxy.sandbox.legacy_v3 import (
    disturbances,
    disturbed_catalog,
    errors,
    listing,
    match,
    objects,
    part_search,
    projection,
    query_string,
    search_request,
    settings,
)


class LegacyKeys:
    """The apikeys of one service."""

    def __init__(self, apikeys: Sequence[str], per_second: int | None, clock: clocks.Clock) -> None:
        limits = () if per_second is None else (windows.Window(per_second, 1),)
        self._windows = {apikey: windows.Windows(limits, clock) for apikey in apikeys}
        self._counted: Counter[str] = Counter()

    def admit(self, apikey: str | None) -> str:
        """The key of a request that is served, which is counted. Refuses all others."""
        if not apikey:
            raise errors.bad_request("apikey argument is missing")
        window = self._windows.get(apikey)
        if window is None:
            raise errors.LegacyError(403, "Forbidden request")
        if window.try_take() > 0:
            raise errors.LegacyError(429, "Too many requests")
        self._counted[apikey] += 1
        return apikey

    def requests(self, apikey: str) -> int:
        """HTTP requests of a key that were served, errors among them."""
        return self._counted[apikey]

    def counted(self) -> dict[str, int]:
        """The same of all keys, which are called key 1, key 2, … in the order of the settings."""
        return {f"key {number}": self._counted[apikey] for number, apikey in enumerate(self._windows, 1)}


Object = dict[str, Any]
MAX_UIDS = 100


@dataclass(frozen=True, slots=True)
class LegacyRequest:
    """One request: parameters, API key, disturbances, and start in monotonic seconds."""

    given: query_string.QueryString
    apikey: str = field(repr=False)
    draws: disturbances.RequestDisturbances
    started: float


class LegacyService:
    """Implements the 13 endpoints. `disturbances` can be replaced at run time, `keys` counts requests."""

    def __init__(self, chosen: settings.LegacySettings, catalog: store.Catalog, clock: clocks.Clock, seed: int) -> None:
        self.keys = LegacyKeys(chosen.apikeys, chosen.requests_per_second, clock)
        self.disturbances = disturbances.DisturbanceInjector(chosen.disturbances, clock, seed)
        self._chosen, self._catalog, self._clock = chosen, catalog, clock
        self._matcher = match.LegacyMatcher(catalog, chosen.country)
        self._objects = objects.LegacyObjects(catalog, chosen.country, chosen.currency)

    @property
    def apikeys(self) -> tuple[str, ...]:
        """Those that are served."""
        return self._chosen.apikeys

    def requests(self, apikey: str) -> int:
        """HTTP requests of a key that were served."""
        return self.keys.requests(apikey)

    def caller(self, given: query_string.QueryString, draws: disturbances.RequestDisturbances) -> LegacyRequest:
        """The authenticated request. Raises LegacyError for an unknown key or above the rate limit."""
        return LegacyRequest(given, self.keys.admit(given.one("apikey")), draws, self._clock.monotonic())

    def match(self, caller: LegacyRequest) -> Object:
        """A PartsMatchResponse."""
        queries = match.read(caller.given.one("queries"))
        exact_only = caller.given.flag("exact_only")
        seen, there = self._shape(caller, "Part"), disturbed_catalog.DisturbedCatalog(self._catalog, caller.draws)
        found = [self._matcher.answer(query, there, exact_only=exact_only) for query in queries]
        echo = {
            "exact_only": exact_only,
            "__class__": "PartsMatchRequest",
            "queries": [match.echo(query) for query in queries],
        }
        results = [
            {
                "items": [self._part(copy, there, seen, caller) for copy in each.page],
                "hits": each.hits,
                "__class__": "PartsMatchResult",
                "reference": query["reference"],
                "error": each.error,
            }
            for query, each in zip(queries, found, strict=True)
        ]
        return {"msec": self._msec(caller), "request": echo, "__class__": "PartsMatchResponse", "results": results}

    def search(self, caller: LegacyRequest, name: str) -> Object:
        """A SearchResponse."""
        search, seen = search_request.read(caller.given), self._shape(caller, name)
        if name == "Part":
            return self._search_parts(caller, search, seen)
        found = self._objects.listings[name].search(search)
        results = [_result(self._objects.listed(each, name, seen), None) for each in found.page]
        return self._response(search, results, found, caller)

    def get_one(self, caller: LegacyRequest, name: str, uid: str) -> Object:
        """One object, bare."""
        found: Object | None = self._get(caller, name, [uid]).get(uid)
        if found is None:
            raise errors.LegacyError(404, f"{name} not found")
        return found

    def get_multi(self, caller: LegacyRequest, name: str) -> Object:
        """Objects by requested uid, without `__class__`; unknown uids are omitted."""
        wanted = list(dict.fromkeys(caller.given.all("uid")))
        if not 1 <= len(wanted) <= MAX_UIDS:
            raise errors.bad_request(f"uid argument has {len(wanted)} uids; it takes 1 to {MAX_UIDS}")
        return self._get(caller, name, wanted)

    def _get(self, caller: LegacyRequest, name: str, wanted: list[str]) -> Object:
        seen = self._shape(caller, name)
        if name != "Part":
            listed = {uid: self._objects.known(name, uid) for uid in wanted}
            return {uid: self._objects.listed(each, name, seen) for uid, each in listed.items() if each is not None}
        there = disturbed_catalog.DisturbedCatalog(self._catalog, caller.draws)
        found = {uid: there.by_uid(uid) for uid in wanted}
        return {
            uid: self._objects.part(part, seen, caller.apikey, caller.draws)
            for uid, part in found.items()
            if part is not None
        }

    def _search_parts(
        self, caller: LegacyRequest, search: search_request.LegacySearch, seen: projection.LegacyProjection
    ) -> Object:
        there = disturbed_catalog.DisturbedCatalog(self._catalog, caller.draws)
        found = self._objects.search.search(search, there)
        results = [
            _result(self._part(copy, there, seen, caller), there.part(copy).short_description) for copy in found.page
        ]
        return {
            **self._response(search, results, found, caller),
            "spec_metadata": found.spec_metadata,
            "user_country": self._chosen.country,
            "user_currency": self._chosen.currency,
        }

    def _shape(self, caller: LegacyRequest, name: str) -> projection.LegacyProjection:
        return projection.read(caller.given, name, self._objects.spec_names.shown_as)

    def _part(
        self,
        copy: disturbed_catalog.PartCopy,
        there: disturbed_catalog.DisturbedCatalog,
        seen: projection.LegacyProjection,
        caller: LegacyRequest,
    ) -> Object:
        return self._objects.part(there.part(copy), seen, caller.apikey, caller.draws)

    def _response(
        self,
        search: search_request.LegacySearch,
        results: list[Object],
        found: part_search.PartSearchResult | listing.ListingResult,
        caller: LegacyRequest,
    ) -> Object:
        return {
            "hits": found.hits,
            "__class__": "SearchResponse",
            "request": search.echo(),
            "facet_results": {"fields": found.facets, "queries": found.facet_queries},
            "results": results,
            "stats_results": found.stats,
            "spec_metadata": {},
            "msec": self._msec(caller),
        }

    def _msec(self, caller: LegacyRequest) -> int:
        return int((self._clock.monotonic() - caller.started) * 1000)


def _result(item: Object, snippet: str | None) -> Object:
    """A SearchResult: in searches of parts the snippet is plain text, in all others null."""
    return {"snippet": snippet, "__class__": "SearchResult", "item": item}
