"""Explains v3 requests: parses and plans them with the code that serves them, but sends nothing."""

from pathlib import Path

import msgspec

from proxy import config, errors
from proxy.explain import response_fields, understanding
from proxy.explain.explanation import Cost, ExplainedError, Explanation, StoredQuery, StoredResults, UnderstoodClient
from proxy.explain.inputs import InputRequest
from proxy.explain.planning import PlannedRequest, RequestPlanner
from proxy.gateway.core import Applications, Client
from proxy.kit import shipped
from proxy.kit.wording import duration
from proxy.mapping import loader
from proxy.planning import listing
from proxy.planning.queries import Query
from proxy.redaction import HIDDEN, Redaction
from proxy.store.protocol import FRESH_SECONDS, STORED_SECONDS
from proxy.traffic import estimate
from proxy.traffic.v3_request import V3Request, redact_request
from proxy.v3 import endpoints
from proxy.v3.endpoints import Endpoint
from proxy.v3.parsing import path_suggestions
from proxy.v3.parsing.request_parameters import RequestParameters


class Explainer:
    """Explains requests under one configuration. Documents are compiled once for each projection."""

    def __init__(self, settings: config.Config) -> None:
        """Load the mappings. Raises MappingError."""
        self.settings = settings
        site = "octopart" if settings.upstream == "sandbox" else settings.upstream.site
        self.mappings = loader.load(shipped.path("mappings"), site, Path(settings.uids) if settings.uids else None)
        self._clients = Applications(settings.applications)
        self._planner = RequestPlanner(settings, self.mappings)

    def supply_list(self, name: str, body: bytes) -> None:
        """Use the response to the operation of a list in further explanations."""
        self._planner.supply_list(name, body)

    def explain(
        self,
        request: V3Request,
        *,
        apikey: str | None = None,
        application: str | None = None,
        method: str = "GET",
        keyless: bool = False,
    ) -> Explanation:
        """Explain one request, executed with `application`, or with that of its API key. `keyless`: it comes from a
        source without API keys, such as a parts list, so that the lack of one is no mistake. Raises
        ConfigError for an application that is not configured, LookupError for a path that v3 never had."""
        endpoint = endpoints.of(request.path)
        if endpoint is None:
            raise LookupError(f"{request.path[:80]} is not a v3 path")
        client, understood_client = self._client(apikey, application)
        if keyless:
            understood_client = msgspec.structs.replace(understood_client, problem=None)
        # First of all, so that no value of the explanation can hold the key, in whichever parameter it stands.
        request = redact_request(
            request, Redaction([apikey] if apikey else [], lambda text: config.digest(text) in self._clients.clients)
        )
        explanation = Explanation(
            request=request_target(endpoint, request, has_key=apikey is not None),
            method=method,
            endpoint=request.endpoint,
            action=endpoint.action,
            object=endpoint.object,
            client=understood_client,
        )
        return self._explained(explanation, endpoint, request, client)

    def explain_input(self, given: InputRequest, application: str | None) -> Explanation:
        """Explain a request as it was given. Raises ConfigError."""
        if given.request is None:
            return self.explain_unknown_path(given.path, given.method)
        return self.explain(given.request, apikey=given.apikey, application=application, method=given.method)

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
            if explanation.method not in endpoints.READ_METHODS:
                raise errors.MethodNotAllowed.of(explanation.method)
            parameters = RequestParameters(request.target())
            suppress = parameters.response_format().suppress_status_codes
            plan = self._planner.plan(endpoint, request, parameters, client)
        except errors.ClientError as error:
            return _failed(explanation, error, suppress)
        operations = tuple(plan.operations)
        return msgspec.structs.replace(
            explanation,
            parameters=understanding.parameter_values(endpoint, parameters),
            queries=plan.understood,
            ignored=(*understanding.ignored(endpoint, parameters, self.mappings), *plan.ignored),
            operations=operations,
            lists=tuple(plan.lists),
            cost=_cost(request, plan),
            stored=_stored_results(plan),
            items=response_fields.ITEMS[endpoint.action],
            envelope=response_fields.envelope_fields(endpoint, operations),
            fields=response_fields.object_fields(self.mappings, endpoint.object, plan.request.projection),
        )

    def _client(self, apikey: str | None, application: str | None) -> tuple[Client, UnderstoodClient]:
        """Choose the client: of the named application, else of the API key, else the first one."""
        clients, problem = list(self._clients.clients.values()), None
        chosen, chosen_by = clients[0], "the first API key of the configuration"
        try:
            chosen, chosen_by = self._clients.client(apikey), "the request's API key"
        except errors.MissingKey as error:
            problem = f"The request has no API key: as it is, the proxy responds with {error.status} {error.message}."
        except errors.ForbiddenKey as error:
            problem = f"The configuration does not have the API key: the proxy responds with {error.status} to it."
        if application is not None:
            named = [each for each in clients if application in (each.application.name, each.name)]
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
            features=tuple(name for name in config.FEATURES if name in own.allowed_features),
            chosen_by=chosen_by,
            problem=problem,
        )


def request_target(endpoint: Endpoint, request: V3Request, has_key: bool) -> str:
    """Return the request for display. Values of parameters that the service does not read are hidden: a client may
    have its key, or a password, in one of them."""
    query = tuple((name, value if understanding.is_read(endpoint, name) else HIDDEN) for name, value in request.query)
    target = f"/v3{msgspec.structs.replace(request, query=query).target()}"
    return f"{target}{'&' if query else '?'}apikey=$APIKEY" if has_key else target


def _cost(request: V3Request, plan: PlannedRequest) -> Cost:
    always = [each for each in plan.operations if each.condition is None]
    parts = sum(each.parts_max for each in plan.operations)
    if plan.asked is None:
        # Operations that cannot be planned for want of a list cost no more than the estimate.
        parts = estimate.worst_case_parts(request)
    note = "Parts are billed as they are returned: fewer where less is found." if parts else "Nothing of it is billed."
    for account in plan.request.client.charged:
        if parts and account.limit is not None:
            limit = f"{account.limit} in {'a month' if account.period == 'month' else 'all'}"
            note += f" Quota of {account.name}: {limit}; with fewer than {parts} left, the response is a 429."
    return Cost(parts_max=parts, requests=len(always), requests_max=len(plan.operations), note=note)


def _failed(explanation: Explanation, error: errors.ClientError, suppress_status: bool = False) -> Explanation:
    status = 200 if suppress_status else error.status
    described = ExplainedError(status=status, v3_class=error.v3_class, message=error.message)
    return msgspec.structs.replace(explanation, error=described)


def _key(query: Query) -> str:
    """Return what the key of a query is made of; the store has a digest of it."""
    text = f"{query.root} {msgspec.json.encode(query.criteria).decode()}"
    return f"{text} from {query.first}" if query.first else text


def _stored_results(plan: PlannedRequest) -> StoredResults:
    """Describe what is stored for the queries of a request."""
    asked = plan.asked or []
    notes = [
        "A part that any answer holds serves all requests for it by uid.",
        "The encoded response is kept for requests with the same URL, while its results are fresh.",
        "Equal queries, of one request or of several in flight, are sent once.",
    ]
    if plan.asked is None:
        seconds = listing.FRESH_SECONDS
        notes = [
            f"The list is kept in memory for {duration(seconds)}, for all requests; then it is fetched again in the "
            "background."
        ]
    return StoredResults(
        application=plan.request.client.application.name,
        queries=tuple(StoredQuery(queries=numbers, key=_key(query)) for query, numbers in asked),
        seconds=FRESH_SECONDS,
        stale_seconds=STORED_SECONDS - FRESH_SECONDS,
        notes=tuple(notes) if asked or plan.asked is None else (),
    )
