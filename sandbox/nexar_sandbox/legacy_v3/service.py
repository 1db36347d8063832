"""The legacy v3 service without HTTP: from query strings to response bodies (contract v3-rest.md §1-§4), with API keys
and their rate limits.
"""

from dataclasses import dataclass, field
from typing import Any

from nexar_sandbox import clocks
from nexar_sandbox.catalog import records, store
from nexar_sandbox.legacy_v3 import (
    catalog_objects,
    match,
    objects,
    projection,
    query_string,
    search_request,
    searching,
)

# The default API key: that of the shipped configuration.
DEFAULT_APIKEY = "EXAMPLE_KEY"


@dataclass(frozen=True, slots=True)
class LegacySettings:
    """`requests_per_second`: rate limit per API key; None: no limit."""

    apikeys: tuple[str, ...] = (DEFAULT_APIKEY,)
    requests_per_second: int | None = 3

    def __repr__(self) -> str:
        return f"LegacySettings({len(self.apikeys)} apikeys, requests_per_second={self.requests_per_second})"


Object = dict[str, Any]
MAX_UIDS = 100


@dataclass(frozen=True, slots=True)
class LegacyRequest:
    """One request: parameters, API key, and start in monotonic seconds."""

    parameters: query_string.QueryString
    apikey: str = field(repr=False)
    started: float


class LegacyService:
    """Implements the 13 endpoints."""

    def __init__(self, chosen: LegacySettings, catalog: store.Catalog, clock: clocks.Clock) -> None:
        limits = () if chosen.requests_per_second is None else (clocks.Window(chosen.requests_per_second, 1),)
        self._windows = {apikey: clocks.Windows(limits, clock) for apikey in chosen.apikeys}
        self._chosen, self._catalog, self._clock = chosen, catalog, clock
        self._matcher = match.LegacyMatcher(catalog)
        self._objects = objects.LegacyObjects(catalog)

    @property
    def apikeys(self) -> tuple[str, ...]:
        return self._chosen.apikeys

    def caller(self, parameters: query_string.QueryString) -> LegacyRequest:
        """Return the authenticated request. Raises LegacyError for an unknown key or above the rate limit."""
        apikey = parameters.one("apikey")
        if not apikey:
            raise query_string.bad_request("apikey argument is missing")
        if apikey not in self._windows:
            raise query_string.LegacyError(403, "Forbidden request")
        if self._windows[apikey].try_take() > 0:
            raise query_string.LegacyError(429, "Too many requests")
        return LegacyRequest(parameters, apikey, self._clock.monotonic())

    def match(self, caller: LegacyRequest) -> Object:
        queries = match.read(caller.parameters.one("queries"))
        exact_only = caller.parameters.flag("exact_only")
        field_projection = self._shape(caller, "Part")
        matches = [self._matcher.answer(query, exact_only=exact_only) for query in queries]
        echo = {
            "exact_only": exact_only,
            "__class__": "PartsMatchRequest",
            "queries": [match.echo(query) for query in queries],
        }
        results = [
            {
                "items": [self._part(part, field_projection, caller) for part in each.page],
                "hits": each.hits,
                "__class__": "PartsMatchResult",
                "reference": query["reference"],
                "error": each.error,
            }
            for query, each in zip(queries, matches, strict=True)
        ]
        return {"msec": self._msec(caller), "request": echo, "__class__": "PartsMatchResponse", "results": results}

    def search(self, caller: LegacyRequest, name: str) -> Object:
        search, field_projection = search_request.read(caller.parameters), self._shape(caller, name)
        if name == "Part":
            return self._search_parts(caller, search, field_projection)
        result = self._objects.listings[name].search(search)
        results = [_result(self._objects.project(each, name, field_projection), None) for each in result.page]
        return self._response(search, results, result, caller)

    def get_one(self, caller: LegacyRequest, name: str, uid: str) -> Object:
        object_: Object | None = self._get(caller, name, [uid]).get(uid)
        if object_ is None:
            raise query_string.LegacyError(404, f"{name} not found")
        return object_

    def get_multi(self, caller: LegacyRequest, name: str) -> Object:
        """Objects by requested uid, without `__class__`; unknown uids are omitted."""
        requested_uids = list(dict.fromkeys(caller.parameters.all("uid") + caller.parameters.all("uids")))
        if not 1 <= len(requested_uids) <= MAX_UIDS:
            raise query_string.bad_request(f"uid argument has {len(requested_uids)} uids; it takes 1 to {MAX_UIDS}")
        return self._get(caller, name, requested_uids)

    def _get(self, caller: LegacyRequest, name: str, requested_uids: list[str]) -> Object:
        field_projection = self._shape(caller, name)
        if name != "Part":
            listed = {uid: self._objects.by_uid(name, uid) for uid in requested_uids}
            return {
                uid: self._objects.project(each, name, field_projection)
                for uid, each in listed.items()
                if each is not None
            }
        parts = {uid: self._catalog.part_by_uid(uid) for uid in requested_uids if uid == uid.lower()}
        return {uid: self._part(part, field_projection, caller) for uid, part in parts.items() if part is not None}

    def _search_parts(
        self, caller: LegacyRequest, search: search_request.LegacySearch, field_projection: projection.LegacyProjection
    ) -> Object:
        result = self._objects.search.search(search)
        results = [_result(self._part(part, field_projection, caller), part.short_description) for part in result.page]
        market = {"user_country": catalog_objects.COUNTRY, "user_currency": catalog_objects.CURRENCY}
        return self._response(search, results, result, caller) | market

    def _shape(self, caller: LegacyRequest, name: str) -> projection.LegacyProjection:
        return projection.read(caller.parameters, name, self._objects.spec_names.shown_as)

    def _part(self, part: records.Part, field_projection: projection.LegacyProjection, caller: LegacyRequest) -> Object:
        return self._objects.parts.build(part, field_projection, caller.apikey)

    def _response(
        self,
        search: search_request.LegacySearch,
        results: list[Object],
        result: searching.SearchResult,
        caller: LegacyRequest,
    ) -> Object:
        return {
            "hits": result.hits,
            "__class__": "SearchResponse",
            "request": search.echo(),
            "facet_results": {"fields": result.facets, "queries": result.facet_queries},
            "results": results,
            "stats_results": result.stats,
            "spec_metadata": result.spec_metadata,
            "msec": self._msec(caller),
        }

    def _msec(self, caller: LegacyRequest) -> int:
        return int((self._clock.monotonic() - caller.started) * 1000)


def _result(item: Object, snippet: str | None) -> Object:
    """Return a SearchResult: in searches of parts the snippet is plain text, in all others null."""
    return {"snippet": snippet, "__class__": "SearchResult", "item": item}
