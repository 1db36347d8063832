"""Requests with `X-Explain: trace`: executed as any other, and answered with their trace instead of their response.

For operators, who see what a client's request does in the running service. The admin token is needed beside the API
key, because a trace shows how the service works and what its quota is.
"""

from collections.abc import Callable

from aiohttp import hdrs, web

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.assembly import Gateway
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.redaction import Redaction
from proxy.v3.headers import TRACE, X_EXPLAIN
from proxy.v3.parsing import path_suggestions
from proxy.v3.parsing.request_parameters import RequestParameters
from proxy.web.authentication import Authenticator
from proxy.web.explaining import Explaining

NEEDED = "X-Explain needs the admin token beside the API key: send the header Authorization: Bearer TOKEN"


def is_traced(request: web.BaseRequest) -> bool:
    """Return whether the request asks for its trace, with whatever right."""
    return X_EXPLAIN in request.headers


class TracedRequests:
    """Authorizes, executes and traces such requests under one configuration."""

    def __init__(self, gateway: Gateway, authenticator: Authenticator) -> None:
        self._gateway = gateway
        self._authenticator = authenticator
        self._explaining = Explaining()

    async def respond(
        self, request: web.Request, metadata: ResponseMetadata, authenticate: Callable[[str | None], Client]
    ) -> web.Response:
        """Return the trace of a request as JSON, as `v3bridge explain --trace --json` prints it. `authenticate` returns
        the client of an API key. Raises BadRequest, ForbiddenToken and TooManyRequests; an error of the request itself
        is in its trace."""
        token = self._authorize(request)
        # Imported with the first such request: no other one needs them.
        import msgspec

        from proxy.explain import trace
        from proxy.traffic.v3_request import V3Request, parse_target

        try:
            path, query, _ = parse_target(request.raw_path)
        except ValueError:
            raise errors.NotFound(path_suggestions.message(request.path)) from None
        apikey = RequestParameters(request.raw_path).text("apikey")
        v3_request = V3Request(path, query)
        executed = await trace.trace(self._gateway, v3_request, lambda: authenticate(apikey), metadata)
        explanation = await self._explaining.run(
            self._gateway, lambda explainer: explainer.explain(v3_request, apikey=apikey, method=request.method)
        )
        traced = trace.TracedRequest(explanation, executed)
        # Clients may have their key in any parameter, and its value in the response.
        hidden = Redaction([apikey or "", token], self._gateway.applications.is_key).including(request.raw_path)
        body = hidden.body(msgspec.json.format(msgspec.json.encode(traced), indent=2))
        headers = {hdrs.CACHE_CONTROL: "no-store"}
        return web.Response(body=body + b"\n", headers=headers, content_type="application/json")

    def _authorize(self, request: web.Request) -> str:
        """Return the admin token, which the request has."""
        value = request.headers[X_EXPLAIN]
        if value != TRACE:
            raise errors.BadRequest(f"X-Explain: {value[:40]!r} is unknown; the only value is {TRACE}")
        settings = self._gateway.settings.admin
        if not settings or settings.token is None:
            raise errors.ForbiddenToken("X-Explain needs the admin interface, which is off (admin: false)")
        scheme, _, text = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        if scheme.lower() != "bearer":
            raise errors.ForbiddenToken(NEEDED)
        token = settings.token.reveal()
        self._authenticator.check_token(request, text.strip(), token, errors.ForbiddenToken(NEEDED))
        return token
