"""Composition of the identity service (OAuth 2.0 authorization server and OpenID provider)."""

import random
from collections.abc import Callable

from aiohttp import web

from nexar_sandbox import applications, clocks, exchanges, pages, user_directory
from nexar_sandbox import settings as sandbox_settings
from nexar_sandbox.identity import (
    authorization_endpoint,
    authorizations,
    endpoints,
    login,
    oauth,
    sessions,
    tokens,
)


class IdentityService:
    """Services and handlers of the identity service. `authorization_store` holds consents, codes and refresh tokens;
    `token` is the token endpoint.

    `rng` makes token ids and may be predictable; secrets come from the operating system's random source.
    `record_request` is called at each token request.
    """

    def __init__(
        self,
        settings: sandbox_settings.SandboxSettings,
        registry: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        *,
        key: tokens.SigningKey | None,
        clock: clocks.Clock,
        rng: random.Random,
        record_request: Callable[[], None],
        exchange_middleware: exchanges.ExchangeMiddleware,
    ) -> None:
        secret = random.SystemRandom()
        self.token_issuer = tokens.TokenIssuer(key or tokens.generate_key(), clock, rng, settings.token_lifetime)
        self.authorization_store = authorizations.AuthorizationStore(self.token_issuer, clock, secret)
        self.sessions, self.pages = sessions.BrowserSessions(users, clock, secret), pages.Pages()
        self._server = oauth.OAuthServer(registry, users, self.token_issuer, self.authorization_store)
        self.token = endpoints.TokenEndpoint(
            self._server, settings.token_windows, clock, record_request, exchange_middleware
        )

    def add_routes(self, router: web.UrlDispatcher) -> None:
        self.pages.add_routes(router)
        self.token.add_routes(router)
        authorize = authorization_endpoint.AuthorizationEndpoint(self._server, self.sessions, self.pages)
        authorize.add_routes(router)
        login.LoginPages(self._server, self.sessions, self.pages, authorize.leads).add_routes(router)
        endpoints.ResourceEndpoints(self._server).add_routes(router)
