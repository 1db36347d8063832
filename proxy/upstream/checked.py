"""The upstream's services as checks use them: one request at a time, without retry, circuit breaker and quota."""

import ssl
from typing import Any, NamedTuple

from proxy import config, errors, model
from proxy.kit.clock import Clock
from proxy.upstream import classify, http_post, session
from proxy.upstream.auth import identity

RESPONSE_BYTES = 4_194_304  # limit of a response to an operation


class TokenReply(NamedTuple):
    """Response to a token request: the access token, or why there is none, and its Date header."""

    token: identity.AccessToken | None
    failure: errors.BridgeError | None
    date: str | None = None


def token_reply(reply: http_post.HttpResponse, application: str, now: float) -> TokenReply:
    """Read the response to a token request that was sent at `now`."""
    try:
        return TokenReply(identity.parse(reply, application, now), None, reply.date)
    except errors.BridgeError as failure:
        return TokenReply(None, failure, reply.date)


class Upstream:
    """Services of the upstream. `http` is the session of all requests, as the service opens it."""

    def __init__(self, settings: config.UpstreamSettings, clock: Clock) -> None:
        """Open the session, to be closed by the caller. Raises ConfigError for a CA file that cannot be used."""
        self.settings = settings
        self.http = session.open_session(settings)
        self._clock = clock

    async def aclose(self) -> None:
        await self.http.close()

    @staticmethod
    def tls_context(ca_file: str | None) -> ssl.SSLContext | bool:
        """Return the TLS context of all requests; True is aiohttp's own. Raises ConfigError."""
        return session.tls_context(ca_file)

    async def request_token(self, name: str, application: config.ApplicationSettings) -> TokenReply:
        """Send one token request. Raises CredentialsRefused for an application without credentials, and
        ServerError where there is no whole response."""
        credentials = identity.Credentials(name, application.client_id, application.client_secret)
        sent, settings = self._clock.now(), self.settings
        reply = await identity.request_token(self.http, settings.token_url, settings.scope, credentials)
        return token_reply(reply, name, sent)

    async def execute(self, operation: classify.GraphQLOperation[Any], token: str) -> model.GraphQLReply:
        """Send an operation that costs nothing, with an access token. Raises ServerError where there is no whole
        response."""
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        request = http_post.HttpRequest(
            self.settings.graphql_url,
            classify.SERVICE,
            operation.payload,
            headers,
            billed=False,
            max_bytes=RESPONSE_BYTES,
        )
        return classify.read(operation, await http_post.post(self.http, request), self._clock.now())
