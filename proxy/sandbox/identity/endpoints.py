"""The token endpoint over HTTP, with its request windows and its faults (contract graphql.md §4.1).

Whose the credentials are comes first, then Authlib's flows have their say (`flows.py`). Other endpoints are in
`resources.py`, those for browsers in `authorization.py` and `signing_in.py`.
"""

import math
from collections.abc import Callable, Mapping
from email.utils import formatdate

from aiohttp import web

from proxy.kit import clock as clocks
from proxy.kit import windows
from proxy.sandbox import applications, faults, user_directory
from proxy.sandbox.identity import credentials, discovery, forms, protocol, tokens
from proxy.sandbox.identity.clients import Asked
from proxy.sandbox.injection import exchanges

LACKS = {"expires_in": frozenset({"expires_in"}), "exp": frozenset({"exp"}), "both": frozenset({"expires_in", "exp"})}


class Endpoints:
    """The handler. `limits` are for token requests of one client id; `seen` is called at each of them."""

    def __init__(
        self,
        *,
        server: protocol.Server,
        known: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        limits: tuple[windows.Window, ...],
        clock: clocks.Clock,
        issuer: str | None,
        seen: Callable[[], None],
    ) -> None:
        self._server, self._known, self._users, self._issuer = server, known, users, issuer
        self._clock, self._limits, self._seen = clock, limits, seen
        self._windows: dict[str, windows.Windows] = {}

    def add_routes(self, router: web.UrlDispatcher, watch: exchanges.ExchangeMiddleware) -> None:
        """Any method reaches the token endpoint: the service answers a wrong one as invalid_request."""
        router.add_route("*", discovery.TOKEN_PATH, watch.wrap("token", self.token))

    async def token(self, request: web.Request, exchange: exchanges.Exchange) -> web.Response:
        """200 with the token, 400 with an OAuth error, 429 with Retry-After over a request window."""
        self._seen()
        form = await forms.form(request)
        if form is None:
            return forms.reply({"error": "invalid_request"}, 400)
        return await self._ask(form, request, request.headers.get("Authorization"), exchange)

    async def ask_for(
        self,
        account: applications.SandboxApplication,
        form: Mapping[str, str],
        request: web.Request,
        exchange: exchanges.Exchange,
    ) -> web.Response:
        """The same for a page of the sandbox that asks in an application's name: it counts in the same windows.
        `request` is the page's."""
        self._seen()
        secret = {"client_id": account.client_id, "client_secret": account.client_secret}
        return await self._ask({**form, **secret}, request, None, exchange)

    async def _ask(
        self, form: Mapping[str, str], request: web.Request, authorization: str | None, exchange: exchanges.Exchange
    ) -> web.Response:
        try:
            given = credentials.given(form, authorization)
            account = self._known.by_client_id(given.client_id)
            # The window is the client id's, whatever the secret: guessing is limited like asking.
            wait = self._wait(given.client_id) if account else 0.0
            if wait:
                # The body is ours: the contract knows none for this case.
                slow = {"error": "slow_down", "error_description": "too many token requests for this client"}
                return forms.reply(slow, 429, {"Retry-After": str(math.ceil(wait))})
            account = credentials.authenticate(account, given)
        except credentials.RefusedError as refused:
            return forms.reply({"error": refused.code}, 400)
        exchange.entry.application = account.application_id
        sign_in = await self._sign_in(account, form)
        return self._answer(form, account, sign_in, forms.issuer(request, self._issuer), exchange)

    def _wait(self, client_id: str) -> float:
        """Applications come and go while the sandbox runs."""
        if client_id not in self._windows:
            self._windows = {known: kept for known, kept in self._windows.items() if self._known.by_client_id(known)}
            self._windows[client_id] = windows.Windows(self._limits, self._clock)
        return self._windows[client_id].try_take()

    async def _sign_in(self, account: applications.SandboxApplication, form: Mapping[str, str]) -> tokens.SignIn | None:
        """Whose password it is, where the application may bring passwords."""
        if form.get("grant_type") != applications.PASSWORD or applications.PASSWORD not in account.flows:
            return None
        user = await self._users.authenticate(form.get("username", ""), form.get("password", ""))
        return None if user is None else tokens.SignIn(user.id, int(self._clock.now()))

    def _answer(
        self,
        form: Mapping[str, str],
        account: applications.SandboxApplication,
        sign_in: tokens.SignIn | None,
        issuer: str,
        exchange: exchanges.Exchange,
    ) -> web.Response:
        """What the flow says, as far as no fault spoils it."""
        fault = exchange.fault
        ahead = fault.seconds if isinstance(fault, faults.ClockSkewFault) else 0
        lacks = LACKS[fault.lacks] if isinstance(fault, faults.MissingExpiryFault) else frozenset()
        asked = Asked("POST", tuple(form.items()), issuer, account, sign_in, ahead, "exp" in lacks)
        answer = self._server.token(asked)
        if answer.status != 200:
            return forms.reply(answer.body, answer.status)
        body = {name: value for name, value in forms.ordered(answer.body).items() if name not in lacks}
        if fault is not None and (ahead or lacks):
            exchange.record_fault(type(fault))
        return forms.reply(body, 200, {"Date": formatdate(self._clock.now() + ahead, usegmt=True)} if ahead else None)
