"""Plans v3 requests for their explanation: the queries and operations with which the gateway would serve them."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import graphql

from proxy import config
from proxy.explain import understanding
from proxy.explain.explanation import ExplainedOperation, IgnoredParameter, UnderstoodQuery
from proxy.gateway.old_core import Client, GatewayRequest, QuerySet, ResponseMetadata, V3Queries
from proxy.kit import slices
from proxy.kit.slices import Slices
from proxy.kit.wording import duration
from proxy.mapping.loader import Mappings
from proxy.mapping.tables import NameIndex
from proxy.planning import listing, parts, search, search_support
from proxy.planning.operations import OperationResult, PlannedOperation
from proxy.planning.projection_cache import ATTRIBUTES, ProjectionCache
from proxy.traffic.v3_request import V3Request
from proxy.v3.endpoints import Endpoint
from proxy.v3.parsing import match_queries, requests
from proxy.v3.parsing import search as search_parser
from proxy.v3.parsing.request_parameters import RequestParameters

ENDLESS = 10**9  # hits that no page shows completely: then a count is needed wherever one can be
COUNTED = (
    "only if the page leaves open how many parts match exactly: v3's `hits` has no partial matches, those of "
    "supSearchMpn has; costs no part"
)
UNKNOWN_SPEC = "; then a supSearch if the list has the spec, which the shipped tables do not have, else a 400"
UNSUPPORTED = "the Nexar API cannot do this, or knows no such value; the response names it in X-V3-Unsupported"


@dataclass(slots=True)
class PlannedRequest:
    """What one request needs of the upstream. `positions` are the numbers of the v3 queries by those of the plan;
    `queries` is None where nothing but lists can be planned."""

    request: GatewayRequest
    queries: QuerySet | None = None
    positions: list[int] = field(default_factory=list)
    operations: list[ExplainedOperation] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    understood: tuple[UnderstoodQuery, ...] = ()
    ignored: list[IgnoredParameter] = field(default_factory=list)

    def add(self, queries: QuerySet, positions: list[int], coalesces: bool = False) -> None:
        """Plan the execution of all queries; `positions` are their numbers in the v3 request. With `coalesces` equal
        ones are sent once."""
        self.queries, self.positions = queries, positions
        equal: dict[Hashable, list[int]] = {}
        for n, each in enumerate(queries.keys):
            equal.setdefault(each.key if coalesces else n, []).append(n)
        resolved = [[positions[n] for n in numbers] for numbers in equal.values()]
        plan = queries.plan([first for first, *_ in equal.values()], {})
        self.operations += [_explained_operation(each, resolved, None) for each in plan.operations]
        # Results that show nothing of endless hits: a count is planned for each query that may need one.
        open_results = {n: OperationResult([], ENDLESS) for each in plan.operations for n in each.positions}
        counts = plan.count_operations(open_results)
        self.operations += [_explained_operation(each, resolved, COUNTED) for each in counts]


class RequestPlanner:
    """Plans requests under one configuration. Documents are compiled once for each projection."""

    def __init__(self, settings: config.Config, mappings: Mappings) -> None:
        self._settings = settings
        self._mappings = mappings
        self._projections = ProjectionCache(mappings, whole=settings.cache.enabled)
        self._queries = V3Queries(self._projections, settings.translation.single_query)
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
        if endpoint.action == "get" and not planned.positions:
            raise requests.unknown_uid(endpoint, uids[0])
        return planned

    def _caller(self, endpoint: Endpoint, parameters: RequestParameters, client: Client) -> GatewayRequest:
        features = client.application.features
        projection, cuts = parameters.projection(features, self._mappings, endpoint.object)
        return GatewayRequest.of(client, projection, cuts, ResponseMetadata(0.0))

    def _match(self, endpoint: Endpoint, parameters: RequestParameters, client: Client) -> PlannedRequest:
        raws, request = requests.parse_match(parameters)
        caller = self._caller(endpoint, parameters, client)
        queries = self._queries.match_parts(caller, request)
        valid = [position for position, query in enumerate(request.queries) if query.error is None]
        plan = PlannedRequest(caller)
        plan.add(queries, valid, self._settings.coalescing.enabled)
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
        features = client.application.features
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
            supplied = self._lists.get(name, _ASSUMED)
        planned = self._listed(caller, *lists, has_records=False)
        planned.add(self._queries.search_parts(caller, request, plan), [0])
        planned.ignored = [IgnoredParameter(name=name, reason=UNSUPPORTED) for name in plan.unsupported]
        return planned

    def _parts(self, caller: GatewayRequest, uids: list[str]) -> PlannedRequest:
        planned, valid = PlannedRequest(caller), parts.valid_uids(uids)
        planned.add(self._queries.parts_by_uid(caller, uids), [uids.index(uid) for uid in valid])
        planned.ignored = [
            IgnoredParameter(name=f"uid[]={uid[:40]}", reason="is not a v3 uid (16 hex digits), so it is not sent")
            for uid in dict.fromkeys(uids)
            if uid not in valid
        ]
        return planned

    def _listed(self, caller: GatewayRequest, *names: str, then: str = "", has_records: bool = True) -> PlannedRequest:
        """Plan a request that needs upstream lists; `then` says what follows. `has_records`: it returns objects of the
        list, and does not only look names up there."""
        seconds = listing.FRESH_SECONDS
        condition = f"only if the proxy does not have this list yet, or has had it for {duration(seconds)}{then}"
        operations = [PlannedOperation(self._definitions[name].document, {}, 0, lambda _: [], ()) for name in names]
        explained = [_explained_operation(each, [], condition, has_records) for each in operations]
        return PlannedRequest(caller, operations=explained, lists=list(names))


class _AssumedIds(NameIndex):
    """Ids of a list that is not at hand, which is assumed to have every name."""

    def get(self, name: str, _default: Any = ()) -> Any:
        """Return a placeholder for the id of a name."""
        return (f"<id of {name}>",)

    def like(self, pattern: str, _matches: Callable[[str], bool]) -> Slices[tuple[str, ...]]:
        """Return a placeholder for the ids of the names that match."""
        yield
        return (f"<ids of {pattern}>",)


class _AssumedList(NamedTuple):
    """Stands in for a Listing."""

    ids: NameIndex


_ASSUMED = _AssumedList(_AssumedIds({}))


def _explained_operation(
    operation: PlannedOperation, resolved: list[list[int]], condition: str | None, has_records: bool = True
) -> ExplainedOperation:
    """Describe an operation; `resolved` are the v3 queries that each query of the plan resolves."""
    document = graphql.parse(operation.document.text, no_location=True)
    # A document of parts/search resolves one query by several operations.
    numbers = tuple(position for n in operation.positions if n < len(resolved) for position in resolved[n])
    return ExplainedOperation(
        name=operation.document.name,
        document=graphql.print_ast(document),
        variables=operation.variables,
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
