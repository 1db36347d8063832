"""Trace of a request: executes it in a gateway, and returns what each step of the pipeline did, decided and took.

`--trace` executes on the embedded sandbox unless it is given a configuration. The gateway is the usual one, with its
quota, tokens and caches, so that a trace costs what the request costs. It holds no API key, secret or token.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from proxy import errors
from proxy.explain import explainer
from proxy.explain.explanation import ExplainedError, Explanation
from proxy.gateway.applications import Client
from proxy.gateway.assembly import Gateway
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.planning import parts
from proxy.telemetry import steps
from proxy.traffic.v3_request import V3Request
from proxy.v3 import encoding, endpoints
from proxy.v3.actions import AuthenticatedRequest, V3Actions
from proxy.v3.endpoints import Endpoint
from proxy.v3.parsing import requests
from proxy.v3.parsing.request_parameters import RequestParameters, ResponseFormat


class TracedStep(msgspec.Struct, frozen=True, kw_only=True):
    """Step of a request, with the steps that it consists of. Milliseconds count from the beginning of the request;
    `duration_ms` is None for what still runs in the background. `error` is only at the step where it arose."""

    name: str
    began_ms: float
    duration_ms: float | None
    facts: dict[str, steps.Fact] = {}
    error: str | None = None
    steps: "tuple[TracedStep, ...]" = ()

    @property
    def uncertain_parts(self) -> int:
        parts = self.facts.get("uncertain_parts", 0)
        return parts if isinstance(parts, int) else 0

    def walk(self) -> "Iterator[TracedStep]":
        yield self
        for step in self.steps:
            yield from step.walk()


class TracedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Query of a request for parts: its position, and where its result comes from (None: it was not executed)."""

    position: int
    query: str
    source: steps.Source | None


class QuotaAfter(msgspec.Struct, frozen=True, kw_only=True):
    """Quota after the request: parts used or uncertain, their limit (None: unlimited), whole seconds to its reset."""

    used: int
    limit: int | None
    resets_in: int | None


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Execution of one request. With an `error` the steps end where it arose.

    `parts` are those billed, `uncertain_parts` those that may have been by a request that failed. `response` is the
    JSON of the body, or the text of a JSONP response. `unsupported` are the parameters that it ignores.
    """

    request: str
    endpoint: str
    application: str | None
    api_key: str | None
    status: int
    error: ExplainedError | None
    retry_after: int | None
    duration_ms: float
    parts: int
    uncertain_parts: int
    cache: str | None
    upstream_requests: int
    token_requests: int
    quota: QuotaAfter | None
    queries: tuple[TracedQuery, ...]
    unsupported: tuple[str, ...]
    steps: tuple[TracedStep, ...]
    response: Any

    def walk(self) -> Iterator[TracedStep]:
        for step in self.steps:
            yield from step.walk()


class TracedRequest(msgspec.Struct, frozen=True):
    """Explanation of a request, and the trace of its execution; None for one that no v3 endpoint would execute."""

    explanation: Explanation
    trace: Trace | None


async def trace(
    gateway: Gateway, request: V3Request, authenticate: Callable[[], Client], metadata: ResponseMetadata | None = None
) -> Trace:
    """Execute a request, and trace it. `authenticate` returns its client, or raises the error that its sender gets.
    `metadata` are filled in for a caller that needs them.

    Raises LookupError for a path that v3 never had.
    """
    endpoint = endpoints.of(request.path)
    if endpoint is None:
        raise LookupError(f"{request.path[:80]} is not a v3 path")
    metadata = metadata or ResponseMetadata(gateway.clock.monotonic())
    return await _Execution(gateway, request, endpoint, metadata).trace(authenticate)


class _Execution:
    def __init__(self, gateway: Gateway, request: V3Request, endpoint: Endpoint, metadata: ResponseMetadata) -> None:
        self._gateway = gateway
        self._request = request
        self._endpoint = endpoint
        self._parameters = RequestParameters(request.target())
        self._metadata = metadata
        self._root = steps.RecordedStep("request", gateway.clock)
        self._client: Client | None = None

    async def trace(self, authenticate: Callable[[], Client]) -> Trace:
        error, status = None, 200
        with self._root:
            try:
                body = await self._execute(authenticate)
            except errors.BridgeError as raised:
                error, response_format = raised, self._response_format()
                body = encoding.encode_body(encoding.error_body(error, response_format), response_format, gzip=False)
                status = 200 if response_format.suppress_status_codes else error.status
        return self._traced(status, body, error)

    async def _execute(self, authenticate: Callable[[], Client]) -> encoding.EncodedBody:
        with steps.step("authenticate"):
            self._client = client = authenticate()
            self._metadata.strict = self._metadata.strict or client.strict
            steps.add(application=client.application.name, api_key=client.key)
        with steps.step("admit"):
            await self._gateway.pipeline.admit(client)
        actions = V3Actions(self._gateway.pipeline, self._gateway.mappings, self._gateway.metrics)
        path = f"{endpoints.PREFIXES[0]}{self._request.path}"
        uid = self._request.path.rpartition("/")[2]
        return await actions.execute(
            AuthenticatedRequest(
                self._endpoint, self._parameters, client, self._metadata, self._root.began, path=path, uid=uid
            )
        )

    def _response_format(self) -> ResponseFormat:
        try:
            return self._parameters.response_format()
        except errors.BridgeError:
            return ResponseFormat()  # the format itself may be the mistake

    def _traced(self, status: int, body: encoding.EncodedBody, error: errors.BridgeError | None) -> Trace:
        root = _traced_step(self._root, self._root.began)
        traced = root.steps
        if error is not None and not any(step.error for step in root.walk()):
            # Nothing failed: the request is invalid, or what it names does not exist.
            name = "reply" if any(step.name == "parse" for step in traced) else "parse"
            at = max([0.0, *(step.began_ms + (step.duration_ms or 0.0) for step in traced)])
            took = round((root.duration_ms or 0.0) - at, 3)
            traced = (*traced, TracedStep(name=name, began_ms=at, duration_ms=took, error=error.message))
        names = [step.name for step in root.walk()]
        client, metadata = self._client, self._metadata
        is_json = body.headers["Content-Type"] == encoding.JSON["Content-Type"]
        uncertain = sum(step.uncertain_parts for step in root.walk())
        return Trace(
            request=explainer.request_target(self._endpoint, self._request, has_key=False),
            endpoint=self._request.endpoint,
            application=client.application.name if client else None,
            api_key=client.key if client else None,
            status=status,
            error=None
            if error is None
            else ExplainedError(status=error.status, v3_class=error.v3_class, message=error.message),
            retry_after=error.retry_after if error else None,
            duration_ms=root.duration_ms or 0.0,
            parts=metadata.cost - uncertain,
            uncertain_parts=uncertain,
            cache=metadata.source,
            upstream_requests=names.count("send"),
            token_requests=names.count("token request"),
            quota=self._quota_after(client) if client else None,
            queries=tuple(self._queries()),
            unsupported=metadata.unsupported,
            steps=traced,
            response=msgspec.Raw(body.body) if is_json else body.body.decode(),
        )

    def _quota_after(self, client: Client) -> QuotaAfter:
        status = self._gateway.pipeline.quota_status(client)
        return QuotaAfter(used=status.used, limit=status.limit, resets_in=status.reset)

    def _queries(self) -> Iterator[TracedQuery]:
        """Yield the queries that were looked up: the pipeline numbers them without invalid and repeated ones."""
        if self._root.sources:
            for number, (position, text) in enumerate(self._numbered()):
                yield TracedQuery(position=position, query=text, source=self._root.sources.get(number))

    def _numbered(self) -> list[tuple[int, str]]:
        """Return position and text of each query, in the pipeline's order. They have been parsed before."""
        if self._endpoint.action == "match":
            _, request = requests.parse_match(self._parameters)
            return [
                (position, ", ".join(value for value in query.criteria if value and isinstance(value, str)))
                for position, query in enumerate(request.queries)
                if query.error is None
            ]
        if self._endpoint.action == "search":
            return [(0, self._parameters.text("q") or "search")]
        uids = [self._request.path.rpartition("/")[2]]
        if self._endpoint.action == "get_multi":
            uids = requests.parse_uids(self._parameters)
        return [(uids.index(uid), uid) for uid in parts.valid_uids(uids)]


def _traced_step(step: steps.RecordedStep, start: float) -> TracedStep:
    """Convert a step; `start` is when the request began. An error that passed through it is left to the inner step."""
    inner_steps = tuple(_traced_step(each, start) for each in sorted(step.steps, key=lambda inner: inner.began))
    error, failure = None, step.failure
    if failure is not None and all(failure is not inner.failure for inner in step.steps):
        # Only this program's own errors have texts that are meant for people, and name no address.
        error = failure.message if isinstance(failure, errors.BridgeError) else type(failure).__name__
        # A failure of the connection passes as another error of the same text.
        error = None if any(error == inner.error for inner in inner_steps) else error
    return TracedStep(
        name=step.name,
        began_ms=_milliseconds(step.began - start),
        duration_ms=None if step.ended is None else _milliseconds(step.ended - step.began),
        facts=step.facts,
        error=error,
        steps=inner_steps,
    )


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
