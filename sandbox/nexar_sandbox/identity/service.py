"""Composition of the identity service (OAuth 2.0 authorization server and OpenID provider)."""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from nexar_sandbox import applications, clocks, exchanges, pages, user_directory
from nexar_sandbox import settings as sandbox_settings
from nexar_sandbox.identity import (
    authorization_endpoint,
    authorization_server,
    authorizations,
    endpoints,
    grants,
    keys,
    login,
    sessions,
    tokens,
)


@dataclass(frozen=True, slots=True)
class IdentityService:
    """Services and handlers of the identity service. `authorization_store` holds consents, codes and refresh tokens;
    `token` is the token endpoint."""

    server: authorization_server.OAuthServer
    token_issuer: tokens.TokenIssuer
    authorization_store: authorizations.AuthorizationStore
    sessions: sessions.BrowserSessions
    pages: pages.Pages
    token: endpoints.TokenEndpoint
    clock: clocks.Clock

    def add_routes(self, router: web.UrlDispatcher, exchange_middleware: exchanges.ExchangeMiddleware) -> None:
        self.pages.add_routes(router)
        self.token.add_routes(router, exchange_middleware)
        authorize = authorization_endpoint.AuthorizationEndpoint(self.server, self.sessions, self.pages, self.clock)
        authorize.add_routes(router)
        login.LoginPages(self.server, self.sessions, self.pages, authorize.leads).add_routes(router)
        endpoints.ResourceEndpoints(self.server).add_routes(router)


def create_service(
    settings: sandbox_settings.SandboxSettings,
    registry: applications.ApplicationRegistry,
    users: user_directory.UserDirectory,
    *,
    key: keys.SigningKey | None,
    clock: clocks.Clock,
    rng: random.Random,
    record_request: Callable[[], None],
) -> IdentityService:
    """Create the identity service. `rng` makes token ids and may be predictable; secrets come from the operating
    system's random source. `record_request` is called at each token request."""
    logging.getLogger("authlib.oauth2").setLevel(logging.INFO)  # at DEBUG it writes whole tokens
    secret = random.SystemRandom()
    token_issuer = tokens.TokenIssuer(
        key or keys.generate_key(),
        clock,
        rng,
        settings.token_lifetime,
        is_user=lambda id_: users.by_id(id_) is not None,
        is_application=lambda client_id: registry.by_client_id(client_id) is not None,
    )
    authorization_store = authorizations.AuthorizationStore(token_issuer, clock, secret)
    server = authorization_server.OAuthServer(registry, users, token_issuer, authorization_store)
    grants.register_grants(server)
    authorization_server.register_token_endpoints(server)
    return IdentityService(
        server,
        token_issuer,
        authorization_store,
        sessions.BrowserSessions(users, clock, secret),
        pages.Pages(),
        endpoints.TokenEndpoint(server, settings.token_windows, clock, record_request),
        clock,
    )
