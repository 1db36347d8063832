"""Explanation of one v3 request: the service's own actions are run on objects that note what is asked of them."""

import dataclasses
import difflib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import msgspec

from proxy import config, errors, model
from proxy.gateway import Applications, Client, GatewayRequest, Rendered, ResponseMetadata
from proxy.kit import clock, shipped
from proxy.mapping import loader, rules
from proxy.planning import documents, lucene, match, queries, search
from proxy.planning.documents import ATTRIBUTES, LISTS, ProjectionCache
from proxy.planning.listing import ListSearchResult
from proxy.planning.queries import Page, Query
from proxy.redaction import HIDDEN, Redaction
from proxy.traffic.v3_request import V3Request, parse_target, redact_request
from proxy.v3 import endpoints
from proxy.v3.actions import AuthenticatedRequest, V3Actions, parse_projection
from proxy.v3.encoding import Parameters, bare
from proxy.v3.endpoints import Endpoint

FOUND = msgspec.Raw(b"{}")
Verdict = Literal["works", "loses", "refused"]
NEXAR_LACKS = "the Nexar API cannot do this; the response names it in X-V3-Unsupported"


class Operation(msgspec.Struct, frozen=True):
    """GraphQL operation that is sent if nothing is stored, and the most parts that it costs."""

    name: str
    document: str
    variables: dict[str, Any]
    parts_max: int


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Explanation of one request, without API keys. `error` is what a client gets in place of a response; `mistakes`
    are the errors of single queries. `ignored` are parameters without effect, and fields that are named and empty,
    `unknown` parameters that v3 did not read either, `sourceless` all fields of the response that are empty, each with
    the reason. `free` are operations that cost nothing."""

    request: str
    endpoint: str = ""
    client: str = ""
    status: int = 200
    error: str = ""
    mistakes: list[str] = []
    operations: list[Operation] = []
    free: list[str] = []
    parts_max: int = 0
    parts_likely: int = 0
    ignored: list[str] = []
    unknown: list[str] = []
    sourceless: list[str] = []

    @property
    def verdict(self) -> Verdict:
        """What becomes of the request."""
        if self.error or (self.mistakes and not self.operations):
            return "refused"
        return "loses" if self.mistakes or self.ignored else "works"


class Explainer:
    """Explains requests under one configuration, with its `projections` where they are at hand. Sends nothing."""

    def __init__(self, settings: config.Config, projections: ProjectionCache | None = None) -> None:
        """Load the mappings. Raises ConfigError."""
        if projections is None:
            site = "octopart" if settings.upstream == "sandbox" else settings.upstream.site
            uids = Path(settings.uids) if settings.uids else None
            projections = ProjectionCache(loader.load(shipped("mappings"), site, uids))
        self.projections, self.mappings = projections, projections.mappings
        self.applications = Applications(settings.applications)
        clients = self.applications.clients
        self.redaction = Redaction((), lambda text: config.hex_digest(text) in clients)
        self.single_query = settings.translation.single_query

    def client(self, apikey: str | None) -> Client:
        """Return the client of an API key, else the first one."""
        try:
            return self.applications.client(apikey)
        except errors.ClientError:
            return next(iter(self.applications.clients.values()))

    async def explain(
        self, request: V3Request, client: Client, apikey: str | None, method: str = "GET"
    ) -> tuple[Explained, list[Query]]:
        """Explain a request, and return its queries. Raises LookupError for a path that v3 never had."""
        # First of all, so that no value of the explanation can hold the key, in whichever parameter it stands.
        request = redact_request(request, self.redaction.hiding([apikey] if apikey else []))
        explained = Explained(request=_target(request), endpoint=request.endpoint, client=client.name)
        asked, metadata = _AskedObjects(self), ResponseMetadata(0.0)
        endpoint = cast(Endpoint, endpoints.of(request.path))
        try:
            if method not in ("GET", "HEAD"):
                raise errors.MethodNotAllowed(f"{method[:20]} is not allowed here; v3 is read with GET")
            parameters = Parameters(request.target())
            uid = request.path.rpartition("/")[2]
            received = AuthenticatedRequest(endpoint, parameters, client, metadata, request.path, uid)
            await V3Actions(cast(Any, asked), self.mappings, clock.ManualClock()).execute(received)
        except errors.ClientError as error:
            return msgspec.structs.replace(explained, status=error.status, error=error.message), []
        if method == "HEAD":
            asked.queries.clear()
        application = client.application
        whole = self.projections.whole(self.projections.features & application.features)
        operations = [*_operations(asked.queries, documents.of_parts(whole.selection), application.context)]
        # Most numbers have one maker; a search fills its page.
        ranges = {(each.key, each.end): (each.end - each.start, bool(each.numbers)) for each in asked.queries}
        likely = sum(min(1, number) if is_number else number for number, is_number in ranges.values())
        projection = parse_projection(parameters, application.features, self.mappings, endpoint.object)
        if asked.queries and self.projections.part(projection).reads_sellers:
            asked.free.append(LISTS["Seller"])
        read, unknown = _read(endpoint), []
        for name in parameters.names(""):
            if name.partition("[")[0] not in read:
                similar = difflib.get_close_matches(name[:40], read.values(), 1)
                unknown.append(f"{name}{f' (did you mean {similar[0]}?)' if similar else ''}")
        explained = msgspec.structs.replace(
            explained,
            operations=operations,
            free=[*dict.fromkeys(asked.free)],
            parts_max=sum(each.parts_max for each in operations),
            parts_likely=likely,
            ignored=[*(f"{name} ({NEXAR_LACKS})" for name in metadata.unsupported), *metadata.sourceless],
            unknown=unknown,
            sourceless=list(_sourceless(self.mappings, endpoint.object, projection, ())),
            mistakes=asked.mistakes,
        )
        return explained, asked.queries


@dataclasses.dataclass(eq=False)
class _AskedObjects:
    """Stands in for the gateway's objects: notes what is asked, and finds nothing. Lists have every name."""

    explainer: Explainer
    queries: list[Query] = dataclasses.field(default_factory=list)
    free: list[str] = dataclasses.field(default_factory=list)  # operations that cost no parts
    mistakes: list[str] = dataclasses.field(default_factory=list)

    async def match_parts(self, _: GatewayRequest, parameters: model.PartsMatchRequest) -> list[Rendered]:
        for plan in match.plans(parameters, self.explainer.single_query):
            self.queries.append(plan.asked)
            if plan.is_counted:
                self.free.append("supMultiMatch")
        self.mistakes += [query.error for query in parameters.queries if query.error is not None]
        return [Rendered((), 0, query.error) for query in parameters.queries]

    async def parts(self, _: GatewayRequest, uids: list[str]) -> dict[str, msgspec.Raw]:
        valid = queries.valid_uids(uids)
        self.queries += map(queries.part, valid)
        return dict.fromkeys(valid, FOUND)

    async def search_parts(self, request: GatewayRequest, parameters: model.SearchRequest) -> Rendered:
        *_, filters = lucene.parse_filters(parameters)
        any_name = _AnyName({each.replace("*", ""): (f"<ids of {each}>",) for each in filters.patterns})
        features, tables = request.projection.features, self.explainer.mappings.tables
        steps = search.plan_with_lists(parameters, filters, tables, features)
        supplied: Any = None
        try:
            while True:
                name = steps.send(supplied)
                self.free.append("supAttributes" if name == ATTRIBUTES else LISTS[name])
                supplied = tables.specs if name == ATTRIBUTES else SimpleNamespace(ids=any_name)
        except StopIteration as done:
            plan: search.Plan = done.value
        request.metadata.unsupported += plan.unsupported
        self.queries += plan.queries
        counting = search.count_operations(plan, request.context)
        self.free += [operation.name for operation in counting.values()]
        return Rendered((), 0, details=plan.details(Page([], 0), {}))

    async def listed(self, _: GatewayRequest, name: str, uids: list[str]) -> dict[str, msgspec.Raw]:
        self.free.append(LISTS[name])
        return dict.fromkeys(uids, FOUND)

    async def search_listed(
        self, _: GatewayRequest, name: str, _parameters: model.SearchRequest
    ) -> tuple[list[Any], ListSearchResult]:
        self.free.append(LISTS[name])
        return [], ListSearchResult([], 0, {}, {})


class _AnyName(dict[str, tuple[str, ...]]):
    """Ids of a list that is not at hand."""

    def get(self, name: str, _default: Any = ()) -> Any:
        return (f"<id of {name}>",)


def _operations(asked: list[Query], whole: documents.Documents, market: model.MappingContext) -> Iterator[Operation]:
    """Yield the operations of queries as if nothing were stored; equal ones are sent once."""
    own = [query.as_list_of_its_own() if query.start else query for query in asked]
    for group in queries.grouped({(each.key, each.end): each for each in own}.values(), model.PARTS_MAX):
        sent = queries.operation(whole, [query.fetch() for query in group], market.country, market.currency)
        payload = msgspec.json.decode(sent.payload)
        yield Operation(sent.name, payload["query"], payload["variables"], sent.parts_max)


def shown_target(target: str, redaction: Redaction) -> str:
    """Return the target of a v3 request for display, without API keys; nothing of any other request."""
    try:
        path, query, _ = parse_target(target)
    except ValueError:
        return ""
    return _target(redact_request(V3Request(path, query), redaction))


def _target(request: V3Request) -> str:
    """Return the request for display, without values that the service does not read: they may be a key."""
    read = _read(endpoints.of(request.path))
    query = tuple((name, value if name.partition("[")[0] in read else HIDDEN) for name, value in request.query)
    return f"/v3{msgspec.structs.replace(request, query=query).target()}"


def _read(endpoint: Endpoint | None) -> dict[str, str]:
    """Return the parameters that an endpoint reads, by their names without brackets, in which fields stand."""
    described = (*endpoint.parameters, *endpoints.GLOBALS) if endpoint else ()
    names = (bare(each.name) for each in described if each.name not in ("userkey", "apikey"))
    return {name.partition("[")[0]: name for name in names}


def _sourceless(mappings: loader.Mappings, name: str, projection: model.Projection, at: model.Path) -> Iterator[str]:
    """Yield the fields of a response that are empty for want of a source, with the reasons."""
    for field, rule in mappings.rules[name].fields.items():
        path = (*at, field)
        if not rules.shows(projection, rule, path):
            continue
        if reason := mappings.missing_source(name, (field,), projection.features):
            yield f"{'.'.join(path)} ({reason})"
        elif rule.target and len(at) < 2:
            yield from _sourceless(mappings, rule.target, projection, path)
