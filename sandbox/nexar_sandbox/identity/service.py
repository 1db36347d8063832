"""Composition of the identity service (OAuth 2.0 authorization server and OpenID provider)."""

import random
from collections.abc import Callable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class IdentityService:
    """Services and handlers of the identity service. `authorization_store` holds consents, codes and refresh tokens;
    `token` is the token endpoint."""

    server: oauth.OAuthServer
    token_issuer: tokens.TokenIssuer
    authorization_store: authorizations.AuthorizationStore
    sessions: sessions.BrowserSessions
    pages: pages.Pages
    token: endpoints.TokenEndpoint

    def add_routes(self, router: web.UrlDispatcher) -> None:
        self.pages.add_routes(router)
        self.token.add_routes(router)
        authorize = authorization_endpoint.AuthorizationEndpoint(self.server, self.sessions, self.pages)
        authorize.add_routes(router)
        login.LoginPages(self.server, self.sessions, self.pages, authorize.leads).add_routes(router)
        endpoints.ResourceEndpoints(self.server).add_routes(router)


def create_service(
    settings: sandbox_settings.SandboxSettings,
    registry: applications.ApplicationRegistry,
    users: user_directory.UserDirectory,
    *,
    key: tokens.SigningKey | None,
    clock: clocks.Clock,
    rng: random.Random,
    record_request: Callable[[], None],
    exchange_middleware: exchanges.ExchangeMiddleware,
) -> IdentityService:
    """Create the identity service. `rng` makes token ids and may be predictable; secrets come from the operating
    system's random source. `record_request` is called at each token request."""
    secret = random.SystemRandom()
    token_issuer = tokens.TokenIssuer(
        key or tokens.generate_key(),
        clock,
        rng,
        settings.token_lifetime,
    )
    authorization_store = authorizations.AuthorizationStore(token_issuer, clock, secret)
    server = oauth.OAuthServer(registry, users, token_issuer, authorization_store)
    return IdentityService(
        server,
        token_issuer,
        authorization_store,
        sessions.BrowserSessions(users, clock, secret),
        pages.Pages(),
        endpoints.TokenEndpoint(server, settings.token_windows, clock, record_request, exchange_middleware),
    )
