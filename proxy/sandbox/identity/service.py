"""Composition of the identity service (OAuth 2.0 authorization server and OpenID provider)."""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from proxy.kit import clock as clocks
from proxy.sandbox import applications, pages, user_directory
from proxy.sandbox import settings as chosen
from proxy.sandbox.identity import (
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
from proxy.sandbox.injection import exchanges
from proxy.sandbox.state import store as state


@dataclass(frozen=True, slots=True)
class IdentityService:
    """What others need of it: `issued` checks tokens, `allowed` are users' consents and what came of them, `sessions`
    says who has signed in, `pages` makes pages, `token` is where tokens are asked for."""

    issued: tokens.TokenIssuer
    ring: keys.KeyRing
    allowed: authorizations.AuthorizationStore
    sessions: sessions.BrowserSessions
    pages: pages.Pages
    token: endpoints.TokenEndpoint
    _handlers: tuple[
        authorization_endpoint.AuthorizationEndpoint | login.LoginPages | endpoints.ResourceEndpoints,
        ...,
    ]

    def add_routes(self, router: web.UrlDispatcher, watch: exchanges.ExchangeMiddleware) -> None:
        """All of the service."""
        self.pages.add_routes(router)
        self.token.add_routes(router, watch)
        for handlers in self._handlers:
            handlers.add_routes(router)


def create_service(
    settings: chosen.SandboxSettings,
    known: applications.ApplicationRegistry,
    users: user_directory.UserDirectory,
    *,
    kept: state.StateStore,
    key: keys.SigningKey | None,
    clock: clocks.Clock,
    rng: random.Random,
    seen: Callable[[], None],
) -> IdentityService:
    """`rng` names tokens and may be foreseen; what nobody may guess comes from the machine. `seen` is called at each
    token request."""
    logging.getLogger("authlib.oauth2").setLevel(logging.INFO)  # at DEBUG it writes whole tokens
    secret = random.SystemRandom()
    ring = keys.KeyRing(key, clock, settings.token_lifetime, kept)
    # An id must not come again where those that were ended are remembered.
    names = secret if kept.is_persistent else rng
    lifetime, audience = settings.token_lifetime, settings.audience
    issued = tokens.TokenIssuer(
        ring,
        clock,
        names,
        lifetime,
        audience,
        is_user=lambda id_: users.by_id(id_) is not None,
        is_application=lambda client_id: known.by_client_id(client_id) is not None,
        kept=kept,
    )
    allowed = authorizations.AuthorizationStore(issued, clock, secret, settings.refresh_lifetime, kept)
    server = authorization_server.OAuthServer(known, users, issued, allowed)
    grants.register_grants(server)
    authorization_server.register_token_endpoints(server, ring)
    open_, shown, issuer = sessions.BrowserSessions(users, clock, secret, kept), pages.Pages(), settings.issuer
    asking = authorization_endpoint.AuthorizationEndpoint(
        server=server, known=known, users=users, kept=open_, shown=shown, clock=clock, issuer=issuer
    )
    signing = login.LoginPages(server=server, users=users, kept=open_, shown=shown, leads=asking.leads)
    rest = endpoints.ResourceEndpoints(server=server, known=known, users=users, issued=issued, ring=ring, issuer=issuer)
    token = endpoints.TokenEndpoint(
        server=server,
        known=known,
        users=users,
        limits=settings.token_windows,
        clock=clock,
        issuer=issuer,
        seen=seen,
    )
    return IdentityService(issued, ring, allowed, open_, shown, token, (asking, signing, rest))
