"""Root fields: each is compiled once, and resolved for every request by the pipeline to its value as JSON.

A root field for parts is resolved from records wherever they hold all that it selects; else, and where the upstream
refuses what would fill the records, it is an operation of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
from graphql.execution import values
from graphql.language import ast

from proxy import errors, model
from proxy.gateway.old_core import GatewayRequest, Pipeline, QuerySet, RenderedResult
from proxy.graphql import own_operation, queries
from proxy.graphql.documents import ClientDocument
from proxy.graphql.own_operation import OwnOperation, UncachedResponse
from proxy.graphql.selection import TYPENAME, Field, NotHeldError, Selections, compile_part
from proxy.mapping.compiler import CompiledObject
from proxy.model import PARTS_MAX, PartsMatchQuery
from proxy.planning.operations import PartialResponse

SEARCHES = ("supSearch", "supSearchMpn")
MULTI_MATCH, PARTS = "supMultiMatch", "supParts"
MARKET = ("country", "currency")
# Arguments with values under which records may differ from those of others.
LIVE_OFFERS = ("distributorApi", own_operation.CREDENTIALS)
TIMEOUT = "distributorApiTimeout"
START_MAX = 1_000  # start and limit together, up to which the service answers any page

_NUMBERS = ("mpn", "sku", "mpnOrSku")
_CRITERIA = (*_NUMBERS, "manufacturer", "seller")

_encode = msgspec.json.encode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Value(NamedTuple):
    """Value of a root field as JSON, and the errors of the upstream beside it."""

    json: bytes
    reported: Sequence[model.GraphQLError] = ()


class _Page(NamedTuple):
    """How a match or a result set is shown: its fields with their keys, and the compiled selection of its parts, which
    are below the key `parts` of a match, and below the key `part` of a result."""

    fields: list[Field]
    results: list[Field]
    part: CompiledObject | None


class RootField:
    """Compiled root field of an operation for parts or their lists."""

    def __init__(
        self, selections: Selections, document: ClientDocument, node: ast.OperationDefinitionNode, field: Field
    ) -> None:
        query = selections.schema.query_type
        assert query is not None  # noqa: S101 - the shipped schema has it
        self.field = field
        self._definition = query.fields[field.name]
        self.is_nullable = not isinstance(self._definition.type, graphql.GraphQLNonNull)
        kind = graphql.get_named_type(self._definition.type)
        below = selections.below(field)
        part_paths = own_operation.part_paths(selections, kind, below)
        # Only where a client knows other names than the upstream's.
        type_keys = own_operation.type_keys(selections, below) if document.client_names else {}
        self._own = OwnOperation(document, node, field, part_paths, type_keys)
        self._type_name = selections.type_name(kind)
        self._page: _Page | None = None
        self._lacking = ""
        try:
            self._page = _page(selections, field.name, below)
        except NotHeldError as lacking:
            self._lacking = str(lacking)
        self._result_type = selections.type_name(selections.schema.type_map["SupPartResult"])

    def arguments(self, variables: values.VariableValues) -> dict[str, Any]:
        """Return the arguments with their defaults. Raises GraphQLError."""
        return values.get_argument_values(self._definition, self.field.nodes[0], variables)

    def parts_max(self, arguments: Mapping[str, Any]) -> int:
        """Return how many parts the field costs at most."""
        if not self._own.part_paths:
            return 0
        if self.field.name == MULTI_MATCH:
            return sum(max(query["limit"], 0) for query in arguments["queries"])
        if self.field.name == PARTS:
            return len(arguments["ids"])
        if self.field.name in SEARCHES:
            limit = arguments.get("limit")
            return queries.SEARCH_LIMIT if limit is None else max(limit, 0)
        return PARTS_MAX

    def lacking(self, arguments: Mapping[str, Any]) -> str | None:
        """Return what records lack of the field: a field or the arguments; "" if it has no parts, None if nothing."""
        if self._page is None or self._page.part is None:
            return self._lacking
        return None if _is_plain(self.field.name, arguments) else "arguments"

    async def resolve(
        self,
        pipeline: Pipeline,
        request: GatewayRequest,
        arguments: Mapping[str, Any],
        variables: Mapping[str, Any],
    ) -> Value:
        """Return the value of the field. Raises BridgeErrors."""
        refused, features = request.client.application.plan.refused, self._features(pipeline)
        # Features that were refused before are asked for once only, by the operation whose response the client gets.
        if self._page is not None and features not in refused and self.lacking(arguments) is None:
            value = await self._from_records(pipeline, request, self._page, arguments)
            if value is not None:
                return Value(value)
        # The upstream refused what would fill the records, or cannot be asked for them: its own response says why.
        is_kept = not arguments.get(own_operation.CREDENTIALS)
        query = self._own.query(request, variables, self.parts_max(arguments), is_kept)
        [result] = await pipeline.resolve(request._replace(is_whole=False), query)
        if isinstance(result.failure, UncachedResponse):
            return Value(self._own.shown(result.failure.data), result.failure.reported)
        if result.failure is not None:
            raise result.failure.shared()
        refused.discard(features)
        return Value(self._own.shown(own_operation.value_of(result.items)))

    def _features(self, pipeline: Pipeline) -> frozenset[str]:
        """Return the features of the plan whose fields of parts are selected; of what records hold only."""
        if self._page is None or self._page.part is None:
            return frozenset()
        return pipeline.projections.fetched(self._page.part, None).features

    async def _from_records(
        self,
        pipeline: Pipeline,
        request: GatewayRequest,
        page: _Page,
        arguments: Mapping[str, Any],
    ) -> bytes | None:
        """Return the value as it is made of records; None if the upstream refuses a query, or reports errors
        beside its data."""
        part, name = page.part, self.field.name
        assert part is not None  # noqa: S101 - the caller has looked
        request, projections = _at_market(request, arguments), pipeline.projections

        def query_set(request: GatewayRequest) -> QuerySet:
            if name == MULTI_MATCH:
                matched, options = list(map(_match_query, arguments["queries"])), _options(arguments)
                return queries.MultiMatchQueries(request, part, projections, matched, options)
            if name == PARTS:
                return queries.IdQueries(request, part, projections, arguments["ids"])
            return queries.PageQuery(request, part, projections, name, _page_arguments(arguments))

        results = await pipeline.resolve_parts(request, query_set)
        for result in results:
            if isinstance(result.failure, errors.QueryRefused | errors.OversizedOperation | PartialResponse):
                return None
            if result.failure is not None:
                raise result.failure.shared()
        # Of a query, or a refusal that has become that of its query.
        if any(result.error is not None for result in results):
            return None
        if name == MULTI_MATCH:
            return _encode([self._match(page, *each) for each in zip(arguments["queries"], results, strict=True)])
        if name == PARTS:
            return b"[%b]" % b",".join(result.items[1:-1] or b"null" for result in results)
        return _encode(self._result_set(page, results[0]))

    def _match(self, page: _Page, query: Mapping[str, Any], result: RenderedResult) -> dict[str, Any]:
        """Return a SupPartMatch (contract graphql.md §1.3)."""
        values_ = {
            TYPENAME: self._type_name,
            "reference": query.get("reference"),
            "hits": result.hits,
            "parts": msgspec.Raw(result.items),
            "error": result.error,
        }
        return {field.key: values_[field.name] for field in page.fields}

    def _result_set(self, page: _Page, result: RenderedResult) -> dict[str, Any]:
        """Return a SupPartResultSet with its results; null where the upstream sent null."""
        results = None
        if result.details is not None:
            details = zip(
                _items(result.items),
                result.details[queries.AKA_MPNS],
                result.details[queries.DESCRIPTIONS],
                strict=True,
            )
            results = [
                {
                    field.key: {
                        TYPENAME: self._result_type,
                        "part": part,
                        "akaMpn": aka_mpn,
                        "description": description,
                    }[field.name]
                    for field in page.results
                }
                for part, aka_mpn, description in details
            ]
        values_ = {TYPENAME: self._type_name, "hits": result.hits, "results": results}
        return {field.key: values_[field.name] for field in page.fields}


def _page(selections: Selections, name: str, below: list[Field]) -> _Page | None:
    """Return how a root field for parts is shown from records; None for another one. Raises NotHeldError."""
    if name == PARTS:
        return _Page([], [], compile_part(selections, below))
    if name == MULTI_MATCH:
        parts = _only(below, "parts", "reference", "hits", "error")
        return _Page(below, [], _compiled(selections, parts))
    if name in SEARCHES:
        results = _only(below, "results", "hits")
        shown = [] if results is None else selections.below(results)
        return _Page(below, shown, _compiled(selections, _only(shown, "part", "akaMpn", "description")))
    return None


def _compiled(selections: Selections, parts: Field | None) -> CompiledObject | None:
    return None if parts is None else compile_part(selections, selections.below(parts))


def _only(fields: list[Field], listed: str, *others: str) -> Field | None:
    """Return the one field with a name, None without it. Raises NotHeldError for a second one, and for a field that
    is not among the others."""
    found = [field for field in fields if field.name == listed]
    if len(found) > 1 or any(field.name not in (listed, *others, TYPENAME) for field in fields):
        raise NotHeldError(listed)
    return found[0] if found else None


def _is_plain(name: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether records are the same as for any other caller, and the arguments within the limits of the service,
    whose own errors say what is wrong with others (contract graphql.md §2.1)."""
    if any(arguments.get(each) for each in LIVE_OFFERS):
        return False
    if name == PARTS:
        return 0 < len(arguments["ids"]) <= PARTS_MAX and all(arguments["ids"])
    if name in SEARCHES:
        return True
    matched = arguments["queries"]
    texts = [query.get(key, "x") for query in matched for key in _CRITERIA]
    return (
        0 < sum(query["limit"] for query in matched) <= PARTS_MAX
        and len(matched) <= PARTS_MAX
        and all(
            query["start"] >= 0 and query["limit"] > 0 and query["start"] + query["limit"] <= START_MAX
            for query in matched
        )
        and "" not in texts
        and all(any(query.get(key) for key in _NUMBERS) for query in matched)
    )


def _match_query(query: Mapping[str, Any]) -> PartsMatchQuery:
    return PartsMatchQuery(
        mpn=query.get("mpn"),
        brand=query.get("manufacturer"),
        sku=query.get("sku"),
        seller=query.get("seller"),
        mpn_or_sku=query.get("mpnOrSku"),
        start=query["start"],
        limit=query["limit"],
    )


def _options(arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the options of a match; None for those that change nothing."""
    options = {key: value for key, value in (arguments.get("options") or {}).items() if value}
    return options or None


def _page_arguments(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a search without those that change nothing, so that it has one record."""
    given = {key: value for key, value in arguments.items() if value or (value is not None and key in ("q", "limit"))}
    return {key: value for key, value in given.items() if key not in (*MARKET, *LIVE_OFFERS, TIMEOUT)}


def _at_market(request: GatewayRequest, arguments: Mapping[str, Any]) -> GatewayRequest:
    country, currency = (arguments[name] for name in MARKET)
    context = msgspec.structs.replace(request.context, country=country, currency=currency)
    return request._replace(context=context)
