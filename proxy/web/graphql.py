"""GraphQL over HTTP: `POST /graphql`, `GET /graphql` for queries, `POST /connect/token` (contract graphql.md §3, §4).

API keys come as a bearer token, in the header `token`, or in the URL; also as an access token of this service.
"""

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp import BasicAuth, hdrs, web
from multidict import istr

from proxy import errors
from proxy.gateway.core import Client, Gateway, ResponseMetadata
from proxy.graphql.documents import DocumentRequest, InvalidDocumentError
from proxy.graphql.service import GraphQLService, error_of
from proxy.log import REDACTION
from proxy.model import GRAPHQL_PATHS
from proxy.redaction import Redaction
from proxy.v3.encoding import EncodedBody, compress
from proxy.web import responses, routing
from proxy.web.authentication import Authenticator
from proxy.web.bodies import RequestBodies
from proxy.web.responses import with_retry
from proxy.web.routing import STATE

PATH, V4_PATH = GRAPHQL_PATHS
TOKEN_PATH = "/connect/token"  # noqa: S105 - a path
# Of the caller's own access token, for design data, the organization and mutations.
OWN_AUTHORIZATION = istr("X-Nexar-Authorization")
NO_OWN_TOKEN = (
    f"design data, the organization and mutations need your own access token: send it as {OWN_AUTHORIZATION}: Bearer …"
)
PASSED_ON = (hdrs.CONTENT_TYPE, hdrs.RETRY_AFTER)  # of the upstream's response to the caller's own token
BEARER = "bearer "
GRAPHQL_RESPONSE = "application/graphql-response+json"
JSON = "application/json"
MISSING = "no API key: send it as header `Authorization: Bearer KEY` or `token: KEY`, or as ?token=KEY"
BATCH = "a list of requests is not served: send them one by one"


class _Body(msgspec.Struct):
    """GraphQL request (contract graphql.md §3.1)."""

    query: str | None = None
    variables: dict[str, Any] | None = None
    operation_name: str | None = msgspec.field(default=None, name="operationName")


# Reads a document with its operation name and variables. Raises InvalidDocumentError.
Prepare = Callable[[str, str | None, Mapping[str, Any]], DocumentRequest]


_decode = msgspec.json.Decoder(_Body).decode
_variables = msgspec.json.Decoder(dict[str, Any] | None).decode


# The argument in the names of both APIs. Names in GraphQL have one spelling, so that no document with it is missed.
_PRICING_CREDENTIALS = re.compile(r"custom_?pricing_?credentials", re.IGNORECASE)
_STRINGS = re.compile(r'"""(.*?)"""|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)


class GraphQLRoutes:
    """Handlers of the GraphQL paths."""

    def __init__(
        self,
        service: GraphQLService,
        gateway: Gateway,
        authenticator: Authenticator,
    ) -> None:
        self._service = service
        self._gateway = gateway
        self._authenticator = authenticator
        self._tokens = gateway.access_tokens
        self._bodies = RequestBodies()
        self._clock = gateway.clock

    def add_to(self, routes: routing.Routes) -> None:
        """Register the paths."""
        self.add_path(routes, PATH, self._prepared)
        routes.add(TOKEN_PATH, self._issue_token, hdrs.METH_POST)
        routes.add(TOKEN_PATH, _refuse_method)

    def add_path(self, routes: routing.Routes, path: str, prepare: Prepare) -> None:
        """Register a path whose documents are read by `prepare`."""
        routes.add(path, functools.partial(self._post, prepare), hdrs.METH_POST)
        routes.add(path, functools.partial(self._get, prepare), hdrs.METH_GET)
        routes.add(path, _refuse_method)

    def _prepared(self, text: str, operation_name: str | None, variables: Mapping[str, Any]) -> DocumentRequest:
        return DocumentRequest(self._service.documents.read(text), operation_name, variables)

    async def _post(self, prepare: Prepare, request: web.BaseRequest) -> web.Response:
        begin(request)
        client = await self.client(request)  # before the body is read
        body = await self._bodies.read(request)
        if body.lstrip()[:1] == b"[":
            raise errors.BadRequest(BATCH)
        try:
            sent = _decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise errors.BadRequest(f"the body is not a GraphQL request in JSON: {error}") from error
        return await self._respond(prepare, request, client, sent, body)

    async def _get(self, prepare: Prepare, request: web.BaseRequest) -> web.Response:
        begin(request)
        client, query = await self.client(request), request.query
        try:
            variables = _variables(query.get("variables") or "null")
        except (msgspec.MsgspecError, RecursionError) as error:
            raise errors.BadRequest(f"variables is not a JSON object: {error}") from error
        sent = _Body(query.get("query"), variables, query.get("operationName"))
        return await self._respond(prepare, request, client, sent, msgspec.json.encode(sent))

    async def _respond(
        self, prepare: Prepare, request: web.BaseRequest, client: Client, sent: _Body, body: bytes
    ) -> web.Response:
        """Execute a request; errors of its document are those of the response."""
        request[STATE].metadata = metadata = ResponseMetadata(self._clock.monotonic())
        if not sent.query:
            raise errors.BadRequest("the request has no query: send it in `query`")
        _hide_credentials(sent)
        try:
            executed = prepare(sent.query, sent.operation_name, sent.variables or {})
            if executed.document.is_passed_on:
                if request.method == hdrs.METH_GET:
                    raise errors.BadRequest("GET serves queries for parts and their lists only; send a POST")
                authorization = request.headers.get(OWN_AUTHORIZATION)
                if not authorization:
                    raise errors.BadRequest(NO_OWN_TOKEN)
                passed = await self._gateway.pass_on(body, authorization)
                shown = {name: passed.headers[name] for name in PASSED_ON if name in passed.headers}
                return web.Response(body=passed.body, status=passed.status, headers=shown)
            response = await self._service.execute(executed, client, self._gateway.deadline(metadata.since))
            metadata.add(response.answers, self._clock)
        except InvalidDocumentError as error:
            # As the upstream: a client that asks for plain JSON reads the errors of its document under 200.
            status = 200 if JSON in request.headers.get(hdrs.ACCEPT, "") else 400
            refusal = msgspec.json.encode({"errors": [each.formatted for each in error.errors]})
            return _response(request, refusal, status)
        status = _status(response.failure)
        request[STATE].failure = response.failure
        answer = with_retry(_response(request, response.body, status), response.failure if status >= 400 else None)
        age = self._clock.monotonic() - metadata.stored
        answer.headers.update(responses.usage_headers(metadata, self._gateway.quota_status(client), age))
        return answer

    async def client(self, request: web.BaseRequest) -> Client:
        """Return the client of a request, and count the request against its rate. Raises MissingKey, ForbiddenKey,
        ExpiredKey and TooManyRequests."""
        text = credentials(request)
        client = await self._tokens.client(text) if text and text.count(".") == 2 else None
        if client is None:
            try:
                client = self._authenticator.client(request, text)
            except errors.MissingKey:
                raise errors.MissingKey(MISSING) from None
        else:
            self._authenticator.check(request[STATE].origin, client)
        request[STATE].client = client
        if (expired := client.expiry(self._clock.now())) is not None:
            raise expired
        self._gateway.admit(client)
        return client

    async def _issue_token(self, request: web.BaseRequest) -> web.Response:
        """Issue an access token for an API key that is sent as the client's secret (RFC 6749 §4.4)."""
        begin(request)
        request[STATE].render = _token_error
        secret = _basic_secret(request.headers.get(hdrs.AUTHORIZATION, ""))
        try:
            client = self._authenticator.client(request, secret) if secret else None  # before the body is read
            form = await self._form(request, client)
            if form.get("grant_type") != "client_credentials":
                return web.json_response({"error": "unsupported_grant_type"}, status=400)
            client = client or self._authenticator.client(request, form.get("client_secret"))
        except (errors.ForbiddenKey, errors.MissingKey):
            return web.json_response({"error": "invalid_client"}, status=400)
        request[STATE].client = client
        if client.expiry(self._clock.now()) is not None:
            return web.json_response({"error": "invalid_client"}, status=400)
        token, seconds = await self._tokens.issue(client), self._tokens.seconds
        answer = {
            "access_token": token,
            "expires_in": seconds,
            "token_type": "Bearer",
            "scope": "supply.domain",
        }
        return web.json_response(answer, headers={"Cache-Control": "no-store"})

    async def _form(self, request: web.BaseRequest, client: Client | None) -> dict[str, str]:
        """Return a form; one that cannot be read is a failed authentication, unless its sender is known."""
        try:
            return await self._bodies.form(request)
        except errors.ClientError:
            if client is None:
                self._authenticator.fail(request[STATE].origin)
            raise


def begin(request: web.BaseRequest) -> None:
    """Let errors be those of GraphQL. Raises UpstreamLoop for a request of a v3bridge."""
    request[STATE].render = error_response
    if request.headers.get(hdrs.USER_AGENT, "").startswith("v3bridge/"):
        raise errors.UpstreamLoop(
            "this request comes from a v3bridge whose upstream leads here: set upstream.connect_to"
        )


async def _refuse_method(request: web.BaseRequest) -> web.StreamResponse:
    """Refuse another method, such as doctor's HEAD, which asks whose address this is. Raises UpstreamLoop to it."""
    begin(request)
    raise errors.MethodNotAllowed(f"{request.method[:20]} is not allowed here; send a POST")


def credentials(request: web.BaseRequest) -> str | None:
    """Return the API key or access token of a request: a bearer token, the header `token`, or `token` or `apikey` in
    the URL, for programs whose token cannot be set."""
    authorization = request.headers.get(hdrs.AUTHORIZATION, "")
    if authorization[: len(BEARER)].lower() == BEARER:
        return authorization[len(BEARER) :].strip()
    return request.headers.get(responses.TOKEN) or request.query.get("token") or request.query.get("apikey")


def _basic_secret(authorization: str) -> str | None:
    """Return the client's secret in a Basic header (RFC 6749 §2.3.1); None without one."""
    try:
        return unquote(BasicAuth.decode(authorization).password)
    except ValueError:
        return None


def error_response(error: errors.BridgeError, request: web.BaseRequest) -> web.Response:
    """Return an error that no field is about. A missing or wrong key has the status of the upstream's."""
    is_key = isinstance(error, errors.MissingKey | errors.ForbiddenKey)
    body = msgspec.json.encode({"errors": [error_of(error)]})
    response = _response(request, body, 401 if is_key else error.status)
    if error.status == 405:
        response.headers[hdrs.ALLOW] = "POST" if request.path == TOKEN_PATH else "GET, POST"
    return with_retry(response, error)


def _hide_credentials(sent: _Body) -> None:
    """Hide in what is logged from now on all strings of a request that has credentials of the caller, valid or not."""
    if _PRICING_CREDENTIALS.search(sent.query or ""):
        text = f"{sent.query} {msgspec.json.encode(sent.variables).decode()}"
        secrets = {string for pair in _STRINGS.findall(text) for string in pair if string}
        REDACTION.set((REDACTION.get() or Redaction()).hiding(secrets))


def _token_error(error: errors.BridgeError, _: web.BaseRequest) -> web.Response:
    """Return an error as OAuth clients read it (RFC 6749 §5.2)."""
    kind = "invalid_request" if error.status in (400, 408, 413, 415) else "temporarily_unavailable"
    response = web.json_response({"error": kind, "error_description": error.message}, status=error.status)
    return with_retry(response, error)


def _response(request: web.BaseRequest, body: bytes, status: int) -> web.Response:
    kind = GRAPHQL_RESPONSE if GRAPHQL_RESPONSE in request.headers.get(hdrs.ACCEPT, "") else JSON
    encoded = compress(EncodedBody(body, {"Content-Type": kind}), responses.accepts_gzip(request))
    return web.Response(body=encoded.body, status=status, headers=encoded.headers)


def _status(failure: errors.BridgeError | None) -> int:
    """Return the HTTP status of a response: as the upstream, 200 where its document or its parts are refused."""
    return (
        200 if failure is None or isinstance(failure, errors.QueryRefused | errors.QuotaExhausted) else failure.status
    )
