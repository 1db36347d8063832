"""Explains v3 requests: parses and plans them with the code that serves them, but sends nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import graphql
import msgspec

from proxy import config, endpoints, errors
from proxy.compare.redaction import HIDDEN, Redaction, redact_request
from proxy.compare.requests import V3Request
from proxy.compare.running import estimate
from proxy.endpoints import Endpoint
from proxy.explain import caching, changes, envelope, response_fields, understanding
from proxy.explain.explanation import (
    Cost,
    ExplainedError,
    ExplainedOperation,
    Explanation,
    IgnoredParameter,
    UnderstoodClient,
    UnderstoodQuery,
)
from proxy.gateway.applications import Applications, Client
from proxy.gateway.queries import GatewayRequest, MatchQueries, QuerySet, SearchQuery, UidQueries
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.kit import shipped, slices
from proxy.kit.slices import Slices
from proxy.mapping import loader
from proxy.mapping.tables import NameIndex
from proxy.parsing import match_queries, path_suggestions, requests
from proxy.parsing import search as search_parser
from proxy.parsing.request_parameters import RequestParameters
from proxy.planning import search, search_support
from proxy.planning.operations import OperationResult, PlannedOperation
from proxy.planning.projection_cache import ATTRIBUTES, ProjectionCache

READ_METHODS = ("GET", "HEAD")
ENDLESS = 10**9  # hits that no page shows completely: then a count is needed wherever one can be
COUNTED = (
    "only if the page leaves open how many parts match exactly: v3's `hits` has no partial matches, those of "
    "supSearchMpn has; costs no part"
)
UNKNOWN_SPEC = "; then a supSearch if the list has the spec, which the shipped tables do not have, else a 400"
UNSUPPORTED = "the Nexar API cannot do this, or knows no such value; the response names it in X-V3-Unsupported"


@dataclass(slots=True)
class _Plan:
    """What one request needs of the upstream. `positions` are the numbers of the v3 queries by those of the plan."""

    request: GatewayRequest
    queries: QuerySet | None = None
    positions: list[int] = field(default_factory=list)
    operations: list[ExplainedOperation] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    understood: tuple[UnderstoodQuery, ...] = ()
    ignored: list[IgnoredParameter] = field(default_factory=list)

    def add(self, queries: QuerySet, positions: list[int]) -> None:
        """Plan the execution of all queries; `positions` are their numbers in the v3 request."""
        self.queries, self.positions = queries, positions
        plan = queries.plan(list(range(len(queries.keys))))
        self.operations += [_explained_operation(each, positions, None) for each in plan.operations]
        # Results that show nothing of endless hits: a count is planned for each query that may need one.
        open_results = {n: OperationResult([], ENDLESS) for each in plan.operations for n in each.positions}
        counts = plan.count_operations(open_results)
        self.operations += [_explained_operation(each, positions, COUNTED) for each in counts]


class Explainer:
    """Explains requests under one configuration. Documents are compiled once for each projection."""

    def __init__(self, settings: config.Config) -> None:
        """Raises MappingError."""
        self.settings = settings
        site = "octopart" if settings.upstream == "sandbox" else settings.upstream.site
        self.mappings = loader.load(shipped.path("mappings"), site, Path(settings.uids) if settings.uids else None)
        self._projections = ProjectionCache(self.mappings)
        self._clients = Applications(settings.applications)
        self._definitions = self._projections.list_definitions()
        self._lists: dict[str, Any] = {}

    def supply_list(self, name: str, body: bytes) -> None:
        """Use the response to the operation of a list in further explanations."""
        definition = self._definitions[name]
        self._lists[name] = definition.build(definition.document.operation({}, 0).decode(body).data)

    def explain(
        self,
        request: V3Request,
        *,
        apikey: str | None = None,
        application: str | None = None,
        method: str = "GET",
    ) -> Explanation:
        """Explain one request, executed with `application`, or with that of its API key. Raises ConfigError for an
        application that is not configured, LookupError for a path that v3 never had."""
        endpoint = endpoints.of(request.path)
        if endpoint is None:
            raise LookupError(f"{request.path[:80]} is not a v3 path")
        client, understood_client = self._client(apikey, application)
        # First of all, so that no value of the explanation can hold the key, in whichever parameter it stands.
        request = redact_request(request, Redaction([apikey] if apikey else []))
        explanation = Explanation(
            request=request_target(endpoint, request, has_key=apikey is not None),
            method=method,
            endpoint=request.endpoint,
            action=endpoint.action,
            object=endpoint.object,
            client=understood_client,
        )
        return self._explained(explanation, endpoint, request, client)

    @staticmethod
    def explain_unknown_path(path: str, method: str = "GET") -> Explanation:
        """Explain a request for a path that v3 never had. The path, which may hold an API key, is not repeated."""
        error = errors.NotFound(path_suggestions.message(path))
        return _failed(Explanation(request="", method=method, endpoint="", action=None, object="", client=None), error)

    def _explained(
        self, explanation: Explanation, endpoint: Endpoint, request: V3Request, client: Client
    ) -> Explanation:
        suppress = False
        try:
            if explanation.method not in READ_METHODS:
                raise errors.MethodNotAllowed.of(explanation.method)
            parameters = RequestParameters(request.target())
            suppress = parameters.response_format().suppress_status_codes
            plan = self._plan(endpoint, request, parameters, client)
        except errors.ClientError as error:
            return _failed(explanation, error, suppress)
        operations = tuple(plan.operations)
        values = understanding.parameter_values(endpoint, parameters)
        projection = plan.request.projection
        return msgspec.structs.replace(
            explanation,
            parameters=values,
            queries=plan.understood,
            ignored=(*understanding.ignored(endpoint, parameters, self.mappings), *plan.ignored),
            operations=operations,
            lists=tuple(plan.lists),
            cost=_cost(request, plan),
            cache=caching.of_request(self.settings, plan.request, plan.queries, plan.positions),
            items=envelope.ITEMS[endpoint.action],
            envelope=envelope.of_endpoint(endpoint, operations),
            fields=response_fields.of_object(self.mappings, endpoint.object, projection),
            changes=changes.of_request(endpoint, self.settings, operations, plan.understood, values),
        )

    def _client(self, apikey: str | None, application: str | None) -> tuple[Client, UnderstoodClient]:
        """Choose the client: of the named application, else of the API key, else the first one."""
        clients, problem = self._clients.all, None
        chosen, chosen_by = clients[0], "the first API key of the configuration"
        try:
            chosen, chosen_by = self._clients.client(apikey), "the request's API key"
        except errors.MissingKey as error:
            problem = f"The request has no API key: as it is, the proxy responds with {error.status} {error.message}."
        except errors.ForbiddenKey as error:
            problem = f"The configuration does not have the API key: the proxy responds with {error.status} to it."
        if application is not None:
            named = [each for each in clients if application in (each.application.name, each.accounts.key.name)]
            if not named:
                names = ", ".join(dict.fromkeys(each.application.name for each in clients))
                raise errors.ConfigError(f"no application is called {application!r}; there are {names}")
            chosen, chosen_by, problem = named[0], "chosen by name", None
        own, context = chosen.application, chosen.application.context
        return chosen, UnderstoodClient(
            application=own.name,
            api_key=chosen.key,
            country=context.country,
            currency=context.currency,
            features=tuple(name for name in config.FEATURES if name in own.features),
            chosen_by=chosen_by,
            problem=problem,
        )

    def _plan(self, endpoint: Endpoint, request: V3Request, parameters: RequestParameters, client: Client) -> _Plan:
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
        return self._parts(caller, uids) if endpoint.object == "Part" else self._listed(caller, endpoint.object)

    def _caller(self, endpoint: Endpoint, parameters: RequestParameters, client: Client) -> GatewayRequest:
        features = client.application.features
        projection, cuts = parameters.projection(features, self.mappings, endpoint.object)
        return GatewayRequest.of(client, projection, cuts, ResponseMetadata(0.0))

    def _match(self, endpoint: Endpoint, parameters: RequestParameters, client: Client) -> _Plan:
        raws, request = requests.parse_match(parameters)
        caller = self._caller(endpoint, parameters, client)
        single = self.settings.translation.single_query
        queries = MatchQueries(caller, request, self._projections, single)
        valid = [position for position, query in enumerate(request.queries) if query.error is None]
        plan = _Plan(caller)
        plan.add(queries, valid)
        plan.understood = understanding.queries(raws, request)
        plan.ignored = [
            IgnoredParameter(name=name, reason="a query has no such key") for name in match_queries.unknown_keys(raws)
        ]
        return plan

    def _search(self, endpoint: Endpoint, parameters: RequestParameters, client: Client) -> _Plan:
        request = search_parser.parse(parameters)
        caller = self._caller(endpoint, parameters, client)
        if endpoint.object != "Part":
            return self._listed(caller, endpoint.object)
        filters = slices.run_to_end(search_support.parse_filters(request))
        features = client.application.features
        planning = search.plan_with_lists(request, filters, self.mappings.tables, features)
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
                return self._listed(caller, *lists, then=UNKNOWN_SPEC)
            supplied = self._lists.get(name, _ASSUMED)
        planned = self._listed(caller, *lists)
        planned.add(SearchQuery(caller, request, plan, self._projections), [0])
        planned.ignored = [IgnoredParameter(name=name, reason=UNSUPPORTED) for name in plan.unsupported]
        return planned

    def _parts(self, caller: GatewayRequest, uids: list[str]) -> _Plan:
        queries = UidQueries(caller, uids, self._projections)
        planned = _Plan(caller)
        planned.add(queries, [uids.index(uid) for uid in queries.uids])
        planned.ignored = [
            IgnoredParameter(name=f"uid[]={uid[:40]}", reason="is no v3 uid (16 hex digits): not sent, as if unknown")
            for uid in dict.fromkeys(uids)
            if uid not in queries.uids
        ]
        return planned

    def _listed(self, caller: GatewayRequest, *names: str, then: str = "") -> _Plan:
        """Plan a request that needs upstream lists; `then` says what follows."""
        seconds = self.settings.lists.seconds
        condition = f"only if the proxy does not have this list yet, or has had it for {seconds:g} seconds{then}"
        operations = [PlannedOperation(self._definitions[name].document, {}, 0, lambda _: [], ()) for name in names]
        explained = [_explained_operation(each, [], condition) for each in operations]
        return _Plan(caller, operations=explained, lists=list(names))


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
    operation: PlannedOperation, positions: list[int], condition: str | None
) -> ExplainedOperation:
    document = graphql.parse(operation.document.text, no_location=True)
    # A document of parts/search resolves one query by several operations.
    numbers = tuple(positions[n] for n in operation.positions if n < len(positions))
    return ExplainedOperation(
        name=operation.document.name,
        document=graphql.print_ast(document),
        variables=operation.variables,
        parts_max=operation.parts_max,
        queries=numbers,
        records=_records(document),
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


def request_target(endpoint: Endpoint, request: V3Request, has_key: bool) -> str:
    """Return the request for display. Values of parameters that the service does not read are hidden: a client may
    have its key, or a password, in one of them."""
    query = tuple((name, value if understanding.is_read(endpoint, name) else HIDDEN) for name, value in request.query)
    target = f"/v3{msgspec.structs.replace(request, query=query).target()}"
    return f"{target}{'&' if query else '?'}apikey=$APIKEY" if has_key else target


def _cost(request: V3Request, plan: _Plan) -> Cost:
    always = [each for each in plan.operations if each.condition is None]
    parts = sum(each.parts_max for each in plan.operations)
    if plan.queries is None:
        # Operations that cannot be planned for want of a list cost no more than the estimate.
        parts = estimate.worst_case_parts(request)
    note = "Parts are billed as they are returned: fewer where less is found." if parts else "Nothing of it is billed."
    for account in plan.request.client.accounts.limited:
        if parts:
            limit = f"{account.limit} in {'a month' if account.period == 'month' else 'all'}"
            note += f" Quota of {account.name}: {limit}; with fewer than {parts} left, the response is a 429."
    return Cost(parts_max=parts, requests=len(always), requests_max=len(plan.operations), note=note)


def _failed(explanation: Explanation, error: errors.ClientError, suppress_status: bool = False) -> Explanation:
    status = 200 if suppress_status else error.status
    described = ExplainedError(status=status, v3_class=error.v3_class, message=error.message)
    return msgspec.structs.replace(explanation, error=described)
