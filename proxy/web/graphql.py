"""GraphQL over HTTP: `POST /graphql`, `GET /graphql` for queries, `POST /connect/token` (contract graphql.md §3, §4).

API keys come as a bearer token, in the header `token`, or in the URL; also as an access token of this service.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp import BasicAuth, hdrs, web
from multidict import istr

from proxy import errors
from proxy.gateway import Client, Gateway
from proxy.graphql.documents import DocumentReader, InvalidDocumentError
from proxy.graphql.service import GraphQLService, error_of
from proxy.log import REDACTION
from proxy.model import GRAPHQL_PATHS
from proxy.redaction import Redaction
from proxy.v3.encoding import ResponseFormat, encode_body
from proxy.web import messages
from proxy.web.authentication import Authenticator
from proxy.web.messages import Request, with_retry

TOKEN_PATH = "/connect/token"  # noqa: S105 - a path
# Of the caller's own access token, for design data, the organization and mutations.
OWN_AUTHORIZATION = istr("X-Nexar-Authorization")
NO_OWN_TOKEN = (
    f"design data, the organization and mutations need your own access token: send it as {OWN_AUTHORIZATION}: Bearer …"
)
BEARER = "bearer "
GRAPHQL_RESPONSE = "application/graphql-response+json"
JSON = "application/json"
MISSING = "no API key: send it as header `Authorization: Bearer KEY` or `token: KEY`, or as ?token=KEY"


class _Body(msgspec.Struct):
    """GraphQL request (contract graphql.md §3.1)."""

    query: str | None = None
    variables: dict[str, Any] | None = None
    operation_name: str | None = msgspec.field(default=None, name="operationName")


_decode = msgspec.json.Decoder(_Body).decode
_variables = msgspec.json.Decoder(dict[str, Any] | None).decode

# The argument in the names of both APIs. Names in GraphQL have one spelling, so that no document with it is missed.
_PRICING_CREDENTIALS = re.compile(r"custom_?pricing_?credentials", re.IGNORECASE)
_STRINGS = re.compile(r'"""(.*?)"""|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)


class GraphQLRoutes:
    """Handlers, which are added to the routes. `readers` read the documents of today's API, and of v4."""

    def __init__(
        self,
        routes: messages.Routes,
        service: GraphQLService,
        gateway: Gateway,
        authenticator: Authenticator,
        readers: Iterable[DocumentReader],
    ) -> None:
        self._service, self._gateway, self._authenticator = service, gateway, authenticator
        self._tokens, self._clock = gateway.access_tokens, gateway.clock
        self._bodies = messages.RequestBodies()
        for path, reader in zip(GRAPHQL_PATHS, readers, strict=True):
            routes.add(path, partial(self._respond, reader))
        routes.add(TOKEN_PATH, self._issue_token)

    async def _respond(self, documents: DocumentReader, request: Request) -> web.Response:
        """Execute what was sent in a body, or in the URL; errors of its document are those of the response."""
        _begin(request, hdrs.METH_POST, hdrs.METH_GET)
        client = await self._client(request)  # before the body is read
        body, query = b"", request.query
        try:
            if request.method == hdrs.METH_GET:
                variables = _variables(query.get("variables") or "null")
                sent = _Body(query.get("query"), variables, query.get("operationName"))
            else:
                body = await self._bodies.read(request)
                if body.lstrip()[:1] == b"[":
                    raise errors.BadRequest("a list of requests is not served: send them one by one")
                sent = _decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise errors.BadRequest(f"this is not a GraphQL request in JSON: {error}") from error
        request.metadata = metadata = self._gateway.metadata()
        if not sent.query:
            raise errors.BadRequest("the request has no query: send it in `query`")
        if _PRICING_CREDENTIALS.search(sent.query):
            # All strings of a request with credentials of the caller, valid or not, are hidden in what is logged.
            text = f"{sent.query} {msgspec.json.encode(sent.variables).decode()}"
            secrets = {string for pair in _STRINGS.findall(text) for string in pair if string}
            REDACTION.set((REDACTION.get() or Redaction()).hiding(secrets))
        try:
            received = documents.request(sent.query, sent.operation_name, sent.variables or {})
            if received.document.is_passed_on:
                return await self._passed_on(request, body)
            response = await self._service.execute(received, client, metadata)
        except InvalidDocumentError as error:
            # As the upstream: a client that asks for plain JSON reads the errors of its document under 200.
            status = 200 if JSON in request.headers.get(hdrs.ACCEPT, "") else 400
            body = msgspec.json.encode({"errors": [each.formatted for each in error.errors]})
            return _response(request, body, status)
        request.added |= messages.usage_headers(self._gateway, client, metadata)
        request.failure = response.failure
        status = response.status
        return with_retry(_response(request, response.body, status), response.failure if status >= 400 else None)

    async def _client(self, request: Request) -> Client:
        """Admit a request by an API key or access token, as a bearer token, in the header `token`, or in the URL, for
        programs whose token cannot be set. Raises MissingKey, ForbiddenKey, ExpiredKey and TooManyRequests."""
        text = request.headers.get(hdrs.AUTHORIZATION, "")
        if text[: len(BEARER)].lower() == BEARER:
            text = text[len(BEARER) :].strip()
        else:
            query = request.query
            text = request.headers.get(messages.TOKEN) or query.get("token") or query.get("apikey") or ""
        if not text:
            raise errors.MissingKey(MISSING)
        client = await self._tokens.client(text) if text.count(".") == 2 else None
        client = client or self._authenticator.client(request, text)
        self._authenticator.admit(request, client, is_v3=False)
        return client

    async def _passed_on(self, request: Request, body: bytes) -> web.Response:
        """Pass on what is not charged to the API key, with the caller's own access token."""
        if request.method == hdrs.METH_GET:
            raise errors.BadRequest("GET serves queries for parts and their lists only; send a POST")
        authorization = request.headers.get(OWN_AUTHORIZATION)
        if not authorization:
            raise errors.BadRequest(NO_OWN_TOKEN)
        passed = await self._gateway.sender.pass_on(body, authorization)
        names = (hdrs.CONTENT_TYPE, hdrs.RETRY_AFTER)
        shown = {name: passed.headers[name] for name in names if name in passed.headers}
        return web.Response(body=passed.body, status=passed.status, headers=shown)

    async def _issue_token(self, request: Request) -> web.Response:
        """Issue an access token for an API key that is sent as the client's secret (RFC 6749 §4.4)."""
        _begin(request, hdrs.METH_POST)
        request.render = _token_error
        secret, client = "", None
        with suppress(ValueError):  # not a Basic header (§2.3.1)
            secret = unquote(BasicAuth.decode(request.headers.get(hdrs.AUTHORIZATION, "")).password)
        try:
            if secret:  # before the body is read
                client = self._authenticator.client(request, secret)
                self._authenticator.check(request.origin, client)
            try:
                form = await self._bodies.form(request)
            except errors.ClientError:
                if client is None:  # a form that cannot be read is a failed authentication
                    self._authenticator.throttle(request.origin)
                raise
            if form.get("grant_type") != "client_credentials":
                return web.json_response({"error": "unsupported_grant_type"}, status=400)
            if client is None:
                client = self._authenticator.client(request, form.get("client_secret", ""))
                self._authenticator.check(request.origin, client)
            request.client = client
            if (expired := client.refusal(self._clock.now(), is_v3=False)) is not None:
                raise expired
        except (errors.ForbiddenKey, errors.MissingKey):
            return web.json_response({"error": "invalid_client"}, status=400)
        answer = {"access_token": await self._tokens.issue(client), "expires_in": self._tokens.seconds}
        answer |= {"token_type": "Bearer", "scope": "supply.domain"}
        return web.json_response(answer, headers={"Cache-Control": "no-store"})


def _begin(request: Request, *methods: str) -> None:
    """Let errors be those of GraphQL. Raises MethodNotAllowed, and UpstreamLoop for a request of a v3bridge, such as
    doctor's HEAD, which asks whose address this is."""
    request.render = _error_response
    if request.headers.get(hdrs.USER_AGENT, "").startswith("v3bridge/"):
        why = "this request comes from a v3bridge whose upstream leads here: set upstream.connect_to"
        raise errors.UpstreamLoop(why)
    if request.method not in methods:
        raise errors.MethodNotAllowed(f"{request.method[:20]} is not allowed here; send a POST")


def _error_response(error: errors.BridgeError, request: Request) -> web.Response:
    """Return an error that no field is about. A missing or wrong key has the status of the upstream's."""
    is_key = isinstance(error, errors.MissingKey | errors.ForbiddenKey)
    response = _response(request, msgspec.json.encode({"errors": [error_of(error)]}), 401 if is_key else error.status)
    if error.status == 405:
        response.headers[hdrs.ALLOW] = "POST" if request.path == TOKEN_PATH else "GET, POST"
    return with_retry(response, error)


def _token_error(error: errors.BridgeError, _: Request) -> web.Response:
    """Return an error as OAuth clients read it (RFC 6749 §5.2)."""
    kind = "invalid_request" if error.status in (400, 408, 413, 415) else "temporarily_unavailable"
    response = web.json_response({"error": kind, "error_description": error.message}, status=error.status)
    return with_retry(response, error)


def _response(request: Request, body: bytes, status: int) -> web.Response:
    kind = GRAPHQL_RESPONSE if GRAPHQL_RESPONSE in request.headers.get(hdrs.ACCEPT, "") else JSON
    encoded = encode_body(body, ResponseFormat(), messages.accepts_gzip(request), {"Content-Type": kind})
    return web.Response(body=encoded.body, status=status, headers=encoded.headers)
