"""Plans v3 requests for their explanation: the queries and operations with which the gateway would serve them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import graphql
import msgspec

from proxy import config
from proxy.explain import understanding
from proxy.explain.explanation import ExplainedOperation, IgnoredParameter, UnderstoodQuery
from proxy.gateway.core import Client, GatewayRequest, ResponseMetadata
from proxy.kit import slices
from proxy.kit.wording import duration
from proxy.mapping.loader import Mappings
from proxy.model import PARTS_MAX
from proxy.planning import fetches, listing, match, queries, search, search_support
from proxy.planning.exact_match import FilteredMatches
from proxy.planning.operations import EncodedOperation
from proxy.planning.projection_cache import ATTRIBUTES, ProjectionCache
from proxy.planning.queries import Query
from proxy.traffic.v3_request import V3Request
from proxy.v3.endpoints import Endpoint
from proxy.v3.parsing import match_queries, requests
from proxy.v3.parsing import search as search_parser
from proxy.v3.parsing.request_parameters import RequestParameters

OPEN = FilteredMatches([], 0, certain=False)  # a page that leaves open how many parts match
COUNTED = (
    "only if the page leaves open how many parts match exactly: v3's `hits` has no partial matches, those of "
    "supSearchMpn has; costs no part"
)
UNKNOWN_SPEC = "; then a supSearch if the list has the spec, which the shipped tables do not have, else a 400"
UNSUPPORTED = "the Nexar API cannot do this, or knows no such value; the response names it in X-V3-Unsupported"


@dataclass(slots=True)
class PlannedRequest:
    """What one request needs of the upstream. `asked` are its queries with the numbers of the v3 queries that they
    resolve; None where nothing but lists can be planned."""

    request: GatewayRequest
    asked: list[tuple[Query, tuple[int, ...]]] | None = None
    operations: list[ExplainedOperation] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    understood: tuple[UnderstoodQuery, ...] = ()
    ignored: list[IgnoredParameter] = field(default_factory=list)


class RequestPlanner:
    """Plans requests under one configuration. Documents are compiled once for each projection."""

    def __init__(self, settings: config.Config, mappings: Mappings) -> None:
        self._settings = settings
        self._mappings = mappings
        self._projections = ProjectionCache(mappings)
        self._definitions = self._projections.list_definitions()
        self._lists: dict[str, Any] = {}

    def supply_list(self, name: str, body: bytes) -> None:
        """Use the response to the operation of a list in further plans."""
        definition = self._definitions[name]
        self._lists[name] = definition.build(definition.document.operation({}, 0).decode(body).data)

    def plan(
        self,
        endpoint: Endpoint,
        request: V3Request,
        parameters: RequestParameters,
        client: Client,
    ) -> PlannedRequest:
        """Parse the parameters in the order of the service, so that of several errors the same one is found."""
        if endpoint.action == "match":
            return self._match(endpoint, parameters, client)
        if endpoint.action == "search":
            return self._search(endpoint, parameters, client)
        if endpoint.action == "get":
            uids = [requests.checked_uid(request.path, request.path.rpartition("/")[2])]
        else:
            uids = requests.parse_uids(parameters)
        caller = self._caller(endpoint, parameters, client)
        if endpoint.object != "Part":
            return self._listed(caller, endpoint.object)
        planned = self._parts(caller, uids)
        if endpoint.action == "get" and not planned.asked:
            raise requests.unknown_uid(endpoint, uids[0])
        return planned

    def _caller(self, endpoint: Endpoint, parameters: RequestParameters, client: Client) -> GatewayRequest:
        features = client.application.allowed_features
        projection = parameters.projection(features, self._mappings, endpoint.object)
        return GatewayRequest(client, projection, client.application.context, ResponseMetadata(0.0))

    def _match(self, endpoint: Endpoint, parameters: RequestParameters, client: Client) -> PlannedRequest:
        raws, request = requests.parse_match(parameters)
        caller = self._caller(endpoint, parameters, client)
        plan = PlannedRequest(caller)
        resolved = match.of_request(request, self._settings.translation.single_query)
        numbers = [number for number, query in enumerate(request.queries) if query.error is None]
        self._add(plan, [(number, asked) for number, (_, asked) in zip(numbers, resolved, strict=True)])
        for number, (query, asked) in zip(numbers, resolved, strict=True):
            if match.needs_count(query, asked, OPEN):
                count = match.count(query, caller.context)
                plan.operations.append(_explained_operation(count, (number,), COUNTED))
        plan.understood = understanding.queries(raws, request)
        plan.ignored = [
            IgnoredParameter(name=name, reason="a query has no such key") for name in match_queries.unknown_keys(raws)
        ]
        return plan

    def _search(self, endpoint: Endpoint, parameters: RequestParameters, client: Client) -> PlannedRequest:
        request = search_parser.parse(parameters)
        caller = self._caller(endpoint, parameters, client)
        if endpoint.object != "Part":
            return self._listed(caller, endpoint.object)
        filters = slices.run_to_end(search_support.parse_filters(request))
        features = caller.projection.features
        planning = search.plan_with_lists(request, filters, self._mappings.tables, features)
        supplied: Any = None
        lists: list[str] = []
        while True:
            try:
                name = planning.send(supplied)
            except StopIteration as done:
                plan: search.Plan = done.value
                break
            if name not in self._lists:
                lists.append(name)
            if name not in self._lists and name == ATTRIBUTES:
                # Without the list it is not known whether there is such a spec at all.
                return self._listed(caller, *lists, then=UNKNOWN_SPEC, has_records=False)
            supplied = self._lists.get(name) or _assumed(filters.patterns)
        planned = self._listed(caller, *lists, has_records=False)
        self._add(planned, [(0, asked) for asked in plan.queries()])
        counting = plan.count_operations(self._projections.count, caller.context)
        planned.operations += [_explained_operation(each, (0,)) for each in counting.values()]
        planned.ignored = [IgnoredParameter(name=name, reason=UNSUPPORTED) for name in plan.unsupported]
        return planned

    def _parts(self, caller: GatewayRequest, uids: list[str]) -> PlannedRequest:
        planned, valid = PlannedRequest(caller), queries.valid_uids(uids)
        self._add(planned, [(uids.index(uid), queries.part(uid)) for uid in valid])
        planned.ignored = [
            IgnoredParameter(name=f"uid[]={uid[:40]}", reason="is not a v3 uid (16 hex digits), so it is not sent")
            for uid in dict.fromkeys(uids)
            if uid not in valid
        ]
        return planned

    def _add(self, planned: PlannedRequest, numbered: Iterable[tuple[int, Query]]) -> None:
        """Plan the operations of queries, each with its number in the v3 request, as if nothing were stored. Equal ones
        are sent once."""
        numbers: dict[tuple[str, int], tuple[int, ...]] = {}
        asked: dict[tuple[str, int], Query] = {}
        for number, query in numbered:
            own = query.as_list_of_its_own() if query.start else query
            place = own.key, own.end
            numbers[place] = (*numbers.get(place, ()), number)
            asked.setdefault(place, own)
        planned.asked = [(query, numbers[place]) for place, query in asked.items()]
        market = planned.request.context
        documents = fetches.Documents(self._projections.whole(planned.request.projection.features).selection)
        for group in queries.grouped(asked.values(), PARTS_MAX):
            fetched = [fetches.Fetch(each, None) for each in group]
            operation = documents.operation(fetched, market.country, market.currency)
            resolved = tuple(number for each in group for number in numbers[each.key, each.end])
            planned.operations.append(_explained_operation(operation, resolved))

    def _listed(self, caller: GatewayRequest, *names: str, then: str = "", has_records: bool = True) -> PlannedRequest:
        """Plan a request that needs upstream lists; `then` says what follows. `has_records`: it returns objects of the
        list, and does not only look names up there."""
        seconds = listing.FRESH_SECONDS
        condition = f"only if the proxy does not have this list yet, or has had it for {duration(seconds)}{then}"
        explained = [
            _explained_operation(self._definitions[name].document.operation({}, 0), (), condition, has_records)
            for name in names
        ]
        return PlannedRequest(caller, operations=explained, lists=list(names))


class _AssumedIds(dict[str, tuple[str, ...]]):
    """Ids of a list that is not at hand, which is assumed to have every name, and those that match patterns."""

    def get(self, name: str, _default: Any = ()) -> Any:
        """Return a placeholder for the id of a name."""
        return (f"<id of {name}>",)


class _AssumedList(NamedTuple):
    """Stands in for a Listing."""

    ids: dict[str, tuple[str, ...]]


def _assumed(patterns: Iterable[str]) -> _AssumedList:
    return _AssumedList(_AssumedIds({each.replace("*", ""): (f"<ids of {each}>",) for each in patterns}))


def _explained_operation(
    operation: EncodedOperation, numbers: tuple[int, ...], condition: str | None = None, has_records: bool = True
) -> ExplainedOperation:
    """Describe an operation that resolves the v3 queries of these numbers."""
    payload = msgspec.json.decode(operation.payload)
    document = graphql.parse(payload["query"], no_location=True)
    return ExplainedOperation(
        name=operation.name,
        document=graphql.print_ast(document),
        variables=payload["variables"],
        parts_max=operation.parts_max,
        queries=numbers,
        records=_records(document) if has_records else "",
        condition=condition,
    )


def _records(document: graphql.DocumentNode) -> str:
    """Return the path of the records that a document returns; empty for one that only counts."""
    operation = document.definitions[0]
    assert isinstance(operation, graphql.OperationDefinitionNode)  # noqa: S101 - of planning/documents.py
    root = operation.selection_set.selections[0]
    assert isinstance(root, graphql.FieldNode) and root.selection_set is not None  # noqa: S101, PT018
    name = root.name.value
    selected = {each.name.value for each in root.selection_set.selections if isinstance(each, graphql.FieldNode)}
    if "parts" in selected:
        return f"{name}[].parts[]"
    if "results" in selected:
        return f"{name}.results[].part"
    return "" if "hits" in selected else f"{name}[]"
