"""Actions of the v3 endpoints: parse the parameters of a request, call the pipeline, encode the response."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model
from proxy.gateway.core import Client, GatewayRequest, Rendered, ResponseMetadata, V3Objects
from proxy.kit.clock import Clock
from proxy.mapping.loader import Mappings
from proxy.v3 import encoding, headers
from proxy.v3.endpoints import Endpoint
from proxy.v3.parsing import match_queries, path_suggestions
from proxy.v3.parsing import search as search_parser
from proxy.v3.parsing.request_parameters import RequestParameters


class AuthenticatedRequest(NamedTuple):
    """One authenticated v3 request. `started` is in the clock's monotonic seconds; `path` and `uid` are those of an
    endpoint whose path has a uid."""

    endpoint: Endpoint
    parameters: RequestParameters
    client: Client
    metadata: ResponseMetadata
    started: float
    path: str = ""
    uid: str = ""


class V3Actions:
    def __init__(self, objects: V3Objects, mappings: Mappings, clock: Clock) -> None:
        self._objects = objects
        self._mappings = mappings
        self._clock = clock
        self._actions = {
            "match": self._match,
            "search": self._search,
            "get_multi": self._get_multi,
            "get": self._get,
        }

    async def execute(self, received: AuthenticatedRequest, gzip: bool = False) -> encoding.EncodedBody:
        """Execute a request; return the body of its response, compressed for a client that accepts `gzip`.

        Raises the errors that become error responses.
        """
        metadata, features = received.metadata, received.client.application.allowed_features
        response_format = received.parameters.response_format()
        sourceless = self._sourceless(received, features)
        metadata.sourceless = tuple(f"{parameter} ({reason})" for parameter, reason in sourceless.items())
        result = await self._actions[received.endpoint.action](received)
        if metadata.lacking:
            fetched = self._sourceless(received, features - metadata.lacking)
            metadata.unsupported += tuple(parameter for parameter in fetched if parameter not in sourceless)
        body = encoding.encode_body(encoding.encode_json(result, response_format), response_format, gzip)
        if metadata.unsupported:
            body = body._replace(headers=body.headers | headers.unsupported(metadata.unsupported))
        return body

    async def _match(self, received: AuthenticatedRequest) -> Any:
        """/parts/match (contract v3-rest.md §4)."""
        raws, request = match_queries.parse_request(received.parameters)
        received.metadata.ignore(tuple(match_queries.unknown_keys(raws)))
        results = await self._objects.match_parts(self._caller(received), request)
        return match_response(raws, request, results, self._msec(received))

    async def _search(self, received: AuthenticatedRequest) -> Any:
        """All searches (contract v3-rest.md §1.1, §3.6). Only a search of parts returns country and currency."""
        request = search_parser.parse(received.parameters)
        received.metadata.unknown = search_parser.unknown_filters(received.parameters)
        caller = self._caller(received)
        if received.endpoint.object != "Part":
            items, listed = await self._objects.search_listed(caller, received.endpoint.object, request)
            return _search_response(request, items, listed.hits, listed, self._msec(received))
        page = await self._objects.search_parts(caller, request)
        return {
            **_search_response(request, page.items, page.hits, page.details, self._msec(received)),
            "user_country": caller.context.country,
            "user_currency": caller.context.currency,
        }

    async def _get_multi(self, received: AuthenticatedRequest) -> Any:
        """Objects by requested uid; unknown uids are left out (contract v3-rest.md §1)."""
        return await self._requested(received, received.parameters.uids())

    async def _get(self, received: AuthenticatedRequest) -> Any:
        """One object, without an envelope."""
        uid = received.uid
        if suggestion := path_suggestions.instead_of_uid(received.path, uid):
            raise errors.NotFound(suggestion)
        objects = await self._requested(received, [uid])
        if uid not in objects:
            raise errors.NotFound(f"there is no {received.endpoint.object.lower()} with the uid {uid[:40]!r}")
        return objects[uid]

    async def _requested(self, received: AuthenticatedRequest, uids: list[str]) -> dict[str, Any]:
        caller = self._caller(received)
        received.metadata.ignore(())  # no parameter of these endpoints is ever ignored
        if received.endpoint.object == "Part":
            return await self._objects.parts(caller, uids)
        return await self._objects.listed(caller, received.endpoint.object, uids)

    def _caller(self, received: AuthenticatedRequest) -> GatewayRequest:
        """Client and projection of a request: the last of its parameters to be parsed."""
        application = received.client.application
        projection = received.parameters.projection(
            application.allowed_features, self._mappings, received.endpoint.object
        )
        return GatewayRequest(received.client, projection, application.context, received.metadata)

    def _sourceless(self, received: AuthenticatedRequest, features: frozenset[str]) -> dict[str, str]:
        """Return the parameters that name a field without source under a plan with `features`, with the reasons. Others
        of the default response do not count, or every request would fail."""
        return {
            parameter: reason
            for parameter, field in received.parameters.named_fields()
            if (reason := self._mappings.missing_source(received.endpoint.object, tuple(field.split(".")), features))
        }

    def _msec(self, received: AuthenticatedRequest) -> int:
        return int((self._clock.monotonic() - received.started) * 1000)


def match_response(
    raws: list[Any], request: model.PartsMatchRequest, results: list[Rendered], msec: int
) -> dict[str, Any]:
    """Body of /parts/match (contract v3-rest.md §3.6). `results` are those of the queries, in their order."""
    return {
        "__class__": "PartsMatchResponse",
        "msec": msec,
        "request": {
            "__class__": "PartsMatchRequest",
            "queries": [_query_echo(raw) for raw in raws],
            "exact_only": request.exact_only,
        },
        "results": [
            {
                "__class__": "PartsMatchResult",
                "items": result.items,
                "hits": result.hits,
                "reference": query.reference,
                "error": result.error,
            }
            for query, result in zip(request.queries, results, strict=True)
        ],
    }


def _query_echo(raw: Any) -> dict[str, Any]:
    """Return the nine keys of a query as sent, with defaults for the others."""
    return {
        "__class__": "PartsMatchQuery",
        **match_queries.DEFAULTS,
        **(match_queries.non_null(raw) if isinstance(raw, dict) else {}),
    }


def _search_response(
    request: model.SearchRequest, items: Sequence[Any], hits: int, counts: Any, msec: int
) -> dict[str, Any]:
    """Return the body of a search (contract v3-rest.md §3.6). `counts` holds facets and statistics; only searches of
    parts have snippets and spec_metadata."""
    # Lists have no snippets, and v3 sent null there.
    snippets = getattr(counts, "snippets", None) or [None] * len(items)
    return {
        "__class__": "SearchResponse",
        "request": _search_echo(request),
        "results": [
            {"__class__": "SearchResult", "item": item, "snippet": snippet}
            for item, snippet in zip(items, snippets, strict=True)
        ],
        "hits": hits,
        "msec": msec,
        "facet_results": counts.facet_results,
        "stats_results": counts.stats_results,
        "spec_metadata": getattr(counts, "spec_metadata", {}),
    }


def _search_echo(request: model.SearchRequest) -> dict[str, Any]:
    """Return the SearchRequest of a response, with defaults."""
    echo = {
        "__class__": "SearchRequest",
        "q": request.q,
        "start": request.start,
        "limit": request.limit,
        "sortby": request.sortby,
        "filter": {
            "fields": {field: list(values) for field, values in request.filters},
            "queries": list(request.filter_queries),
        },
        "facet": {
            "fields": {options.pop("field"): options for options in map(msgspec.structs.asdict, request.facets)},
            "queries": list(request.facet_queries),
        },
        "stats": {field: {"include": True, "exclude_filter": exclude} for field, exclude in request.stats},
    }
    if request.drilldown is not None:
        echo["spec_drilldown"] = msgspec.structs.asdict(request.drilldown)
    return echo
