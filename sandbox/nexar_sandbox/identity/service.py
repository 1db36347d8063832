"""Composition of the identity service (OAuth 2.0 authorization server and OpenID provider)."""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from nexar_sandbox import applications, pages, state, user_directory
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
from nexar_sandbox.injection import exchanges
from nexar_sandbox.kit import clock as clocks


@dataclass(frozen=True, slots=True)
class IdentityService:
    """Services and handlers of the identity service. `authorization_store` holds consents, codes and refresh tokens;
    `token` is the token endpoint."""

    token_issuer: tokens.TokenIssuer
    key_ring: keys.KeyRing
    authorization_store: authorizations.AuthorizationStore
    sessions: sessions.BrowserSessions
    pages: pages.Pages
    token: endpoints.TokenEndpoint
    _handlers: tuple[
        authorization_endpoint.AuthorizationEndpoint | login.LoginPages | endpoints.ResourceEndpoints,
        ...,
    ]

    def add_routes(self, router: web.UrlDispatcher, exchange_middleware: exchanges.ExchangeMiddleware) -> None:
        self.pages.add_routes(router)
        self.token.add_routes(router, exchange_middleware)
        for handlers in self._handlers:
            handlers.add_routes(router)


def create_service(
    settings: sandbox_settings.SandboxSettings,
    registry: applications.ApplicationRegistry,
    users: user_directory.UserDirectory,
    *,
    state_store: state.StateStore,
    key: keys.SigningKey | None,
    clock: clocks.Clock,
    rng: random.Random,
    record_request: Callable[[], None],
) -> IdentityService:
    """Create the identity service. `rng` makes token ids and may be predictable; secrets come from the operating
    system's random source. `record_request` is called at each token request."""
    logging.getLogger("authlib.oauth2").setLevel(logging.INFO)  # at DEBUG it writes whole tokens
    secret = random.SystemRandom()
    key_ring = keys.KeyRing(key, clock, settings.behavior.token_lifetime, state_store)
    # Token ids must not repeat when revoked ones are stored.
    names = secret if state_store.is_persistent else rng
    token_issuer = tokens.TokenIssuer(
        key_ring,
        clock,
        names,
        settings.behavior,
        settings.audience,
        is_user=lambda id_: users.by_id(id_) is not None,
        is_application=lambda client_id: registry.by_client_id(client_id) is not None,
        state_store=state_store,
    )
    authorization_store = authorizations.AuthorizationStore(
        token_issuer, clock, secret, settings.refresh_lifetime, state_store
    )
    server = authorization_server.OAuthServer(registry, users, token_issuer, authorization_store, settings.behavior)
    grants.register_grants(server)
    authorization_server.register_token_endpoints(server, key_ring)
    browser_sessions = sessions.BrowserSessions(users, clock, secret, state_store)
    html_pages = pages.Pages()
    authorization_handlers = authorization_endpoint.AuthorizationEndpoint(
        server=server,
        browser_sessions=browser_sessions,
        html_pages=html_pages,
        clock=clock,
        issuer=settings.issuer,
    )
    handlers = (
        authorization_handlers,
        login.LoginPages(
            server=server,
            browser_sessions=browser_sessions,
            html_pages=html_pages,
            leads=authorization_handlers.leads,
        ),
        endpoints.ResourceEndpoints(server=server, key_ring=key_ring, issuer=settings.issuer),
    )
    token = endpoints.TokenEndpoint(
        server=server,
        limits=settings.token_windows,
        clock=clock,
        issuer=settings.issuer,
        record_request=record_request,
    )
    return IdentityService(token_issuer, key_ring, authorization_store, browser_sessions, html_pages, token, handlers)
