"""The IDE as a whole: its page, its files and what the page asks for, for app.py."""

import random

from aiohttp import web

from proxy.kit import clock as clocks
from proxy.sandbox import applications, part_usage, user_directory
from proxy.sandbox.ide import access, assets, page, tokens
from proxy.sandbox.identity import assembly
from proxy.sandbox.injection import exchanges


class Ide:
    """All of it. `issuer` None: the address that the page came from. `token_required`: queries need a token."""

    def __init__(
        self,
        *,
        identity: assembly.Identity,
        known: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        counted: part_usage.PartUsage,
        watch: exchanges.ExchangeMiddleware,
        clock: clocks.Clock,
        issuer: str | None,
        token_required: bool,
    ) -> None:
        asking = tokens.Asking(identity.token, watch, clock, random.SystemRandom())
        self._page, self._assets = page.Page(), assets.Assets()
        self._access = access.Access(
            kept=identity.sessions,
            known=known,
            users=users,
            counted=counted,
            asking=asking,
            issuer=issuer,
            token_required=token_required,
        )

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """All but the page, which shares its path with the query service."""
        self._assets.add_routes(router)
        self._access.add_routes(router)

    def page(self, request: web.Request) -> web.Response:
        """What a browser gets at the query service's address."""
        return self._page.show(request)
