"""The old v3 service without its HTTP: from a query string to what is answered (contract v3-rest.md §1-§4)."""

from dataclasses import dataclass, field
from typing import Any

from proxy.kit import clock as clocks
from proxy.sandbox.catalog import store
from proxy.sandbox.legacy_v3 import (
    asked,
    drawing,
    keys,
    listing,
    match,
    objects,
    part_search,
    query_string,
    refusal,
    settings,
    shape,
    shelf,
)

Object = dict[str, Any]
MOST_UIDS = 100


@dataclass(frozen=True, slots=True)
class Caller:
    """One request: what it says, whose it is, what strikes it, and when it came, in the clock's monotonic seconds."""

    given: query_string.QueryString
    apikey: str = field(repr=False)
    draws: drawing.Draws
    started: float


class Service:
    """Answers the 13 endpoints. `disturbances` can be replaced at any moment, `keys` counts requests."""

    def __init__(self, chosen: settings.LegacySettings, catalog: store.Catalog, clock: clocks.Clock, seed: int) -> None:
        self.keys = keys.Keys(chosen.apikeys, chosen.requests_per_second, clock)
        self.disturbances = drawing.Disturbances(chosen.disturbances, clock, seed)
        self._chosen, self._catalog, self._clock = chosen, catalog, clock
        self._matcher = match.Matcher(catalog, chosen.country)
        self._objects = objects.Objects(catalog, chosen.country, chosen.currency)

    @property
    def apikeys(self) -> tuple[str, ...]:
        """Those that are served."""
        return self._chosen.apikeys

    def requests(self, apikey: str) -> int:
        """HTTP requests of a key that were served."""
        return self.keys.requests(apikey)

    def caller(self, given: query_string.QueryString, draws: drawing.Draws) -> Caller:
        """Who asks. Refuses whom the service does not serve."""
        return Caller(given, self.keys.admit(given.one("apikey")), draws, self._clock.monotonic())

    def match(self, caller: Caller) -> Object:
        """A PartsMatchResponse."""
        queries = match.read(caller.given.one("queries"))
        exact_only = caller.given.flag("exact_only")
        seen, there = self._shape(caller, "Part"), shelf.Shelf(self._catalog, caller.draws)
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

    def search(self, caller: Caller, name: str) -> Object:
        """A SearchResponse."""
        search, seen = asked.read(caller.given), self._shape(caller, name)
        if name == "Part":
            return self._search_parts(caller, search, seen)
        found = self._objects.listings[name].search(search)
        results = [_result(self._objects.listed(each, name, seen), None) for each in found.page]
        return self._response(search, results, found, caller)

    def get_one(self, caller: Caller, name: str, uid: str) -> Object:
        """One object, bare."""
        found: Object | None = self._get(caller, name, [uid]).get(uid)
        if found is None:
            raise refusal.Refusal(404, f"{name} not found")
        return found

    def get_multi(self, caller: Caller, name: str) -> Object:
        """Several by the uids they were asked for, in an object that has no class; unknown ones are left out."""
        wanted = list(dict.fromkeys(caller.given.all("uid")))
        if not 1 <= len(wanted) <= MOST_UIDS:
            raise refusal.bad(f"uid argument has {len(wanted)} uids; it takes 1 to {MOST_UIDS}")
        return self._get(caller, name, wanted)

    def _get(self, caller: Caller, name: str, wanted: list[str]) -> Object:
        seen = self._shape(caller, name)
        if name != "Part":
            listed = {uid: self._objects.known(name, uid) for uid in wanted}
            return {uid: self._objects.listed(each, name, seen) for uid, each in listed.items() if each is not None}
        there = shelf.Shelf(self._catalog, caller.draws)
        found = {uid: there.by_uid(uid) for uid in wanted}
        return {
            uid: self._objects.part(part, seen, caller.apikey, caller.draws)
            for uid, part in found.items()
            if part is not None
        }

    def _search_parts(self, caller: Caller, search: asked.Search, seen: shape.Shape) -> Object:
        there = shelf.Shelf(self._catalog, caller.draws)
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

    def _shape(self, caller: Caller, name: str) -> shape.Shape:
        return shape.read(caller.given, name, self._objects.spec_names.shown_as)

    def _part(self, copy: shelf.Copy, there: shelf.Shelf, seen: shape.Shape, caller: Caller) -> Object:
        return self._objects.part(there.part(copy), seen, caller.apikey, caller.draws)

    def _response(
        self, search: asked.Search, results: list[Object], found: part_search.Found | listing.Found, caller: Caller
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

    def _msec(self, caller: Caller) -> int:
        return int((self._clock.monotonic() - caller.started) * 1000)


def _result(item: Object, snippet: str | None) -> Object:
    """A SearchResult: in searches of parts the snippet is plain text, in all others null."""
    return {"snippet": snippet, "__class__": "SearchResult", "item": item}
