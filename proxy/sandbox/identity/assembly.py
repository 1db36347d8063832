"""The identity service as a whole: its parts made and joined, for app.py and for what else shares its sign-ins."""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from proxy.kit import clock as clocks
from proxy.sandbox import applications, pages, user_directory
from proxy.sandbox import settings as chosen
from proxy.sandbox.identity import (
    admin,
    authorisations,
    authorization,
    endpoints,
    flows,
    keys,
    protocol,
    resources,
    sessions,
    signing_in,
    token_endpoints,
    tokens,
)
from proxy.sandbox.injection import exchanges
from proxy.sandbox.state import store as state


@dataclass(frozen=True, slots=True)
class Identity:
    """What others need of it: `issued` checks tokens, `allowed` are users' consents and what came of them, `sessions`
    says who has signed in, `pages` makes pages, `token` is where tokens are asked for."""

    issued: tokens.Tokens
    ring: keys.KeyRing
    allowed: authorisations.Authorisations
    sessions: sessions.Sessions
    pages: pages.Pages
    token: endpoints.Endpoints
    _rooms: tuple[authorization.Authorization | signing_in.SigningIn | resources.Resources | admin.Admin, ...]

    def add_routes(self, router: web.UrlDispatcher, watch: exchanges.ExchangeMiddleware) -> None:
        """All of the service."""
        self.pages.add_routes(router)
        self.token.add_routes(router, watch)
        for room in self._rooms:
            room.add_routes(router)


def assemble(
    settings: chosen.SandboxSettings,
    known: applications.ApplicationRegistry,
    users: user_directory.UserDirectory,
    *,
    kept: state.StateStore,
    key: keys.SigningKey | None,
    clock: clocks.Clock,
    rng: random.Random,
    seen: Callable[[], None],
) -> Identity:
    """`rng` names tokens and may be foreseen; what nobody may guess comes from the machine. `seen` is called at each
    token request."""
    logging.getLogger("authlib.oauth2").setLevel(logging.INFO)  # at DEBUG it writes whole tokens
    secret = random.SystemRandom()
    ring = keys.KeyRing(key, clock, settings.token_lifetime, kept)
    # An id must not come again where those that were ended are remembered.
    names = secret if kept.is_persistent else rng
    lifetime, audience = settings.token_lifetime, settings.audience
    issued = tokens.Tokens(
        ring,
        clock,
        names,
        lifetime,
        audience,
        is_user=lambda id_: users.by_id(id_) is not None,
        is_application=lambda client_id: known.by_client_id(client_id) is not None,
        kept=kept,
    )
    allowed = authorisations.Authorisations(issued, clock, secret, settings.refresh_lifetime, kept)
    server = protocol.Server(known, users, issued, allowed)
    flows.register(server)
    token_endpoints.register(server, ring)
    open_, shown, issuer = sessions.Sessions(users, clock, secret, kept), pages.Pages(), settings.issuer
    asking = authorization.Authorization(
        server=server, known=known, users=users, kept=open_, shown=shown, clock=clock, issuer=issuer
    )
    signing = signing_in.SigningIn(server=server, users=users, kept=open_, shown=shown, leads=asking.leads)
    rest = resources.Resources(server=server, known=known, users=users, issued=issued, ring=ring, issuer=issuer)
    token = endpoints.Endpoints(
        server=server,
        known=known,
        users=users,
        limits=settings.token_windows,
        clock=clock,
        issuer=issuer,
        seen=seen,
    )
    return Identity(issued, ring, allowed, open_, shown, token, (asking, signing, rest, admin.Admin(ring)))
