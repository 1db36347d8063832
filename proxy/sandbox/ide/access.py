"""What the IDE's page asks for beside queries: who has signed in, with which application the organisation's IDE
authorises, and a token for it.

Nobody is given another organisation's application. What changes something needs the session's CSRF token in a header.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from proxy.sandbox import applications, part_usage, user_directory
from proxy.sandbox.ide import tokens
from proxy.sandbox.identity import authorization, discovery, forms, scopes, sessions, signing_in
from proxy.sandbox.state import file

SESSION_PATH, TOKEN_PATH, AUTHORIZATION_PATH = "/ide/session", "/ide/token", "/ide/authorization"
IDE_PATH, PORTAL_PATH = "/graphql", "/portal"
# The vendor's documents name the IDE's redirect URI with the slash; the page is at both.
REDIRECT_PATH = "/graphql/"
CSRF_HEADER = "X-CSRF-Token"

# A state file that takes nothing more is no fault of the page's, and no traceback.
REFUSALS = (tokens.RefusedError, file.StateError)
Visit = tuple[sessions.Session, applications.SandboxApplication]


class Access:
    """The handlers."""

    def __init__(
        self,
        *,
        kept: sessions.Sessions,
        known: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        counted: part_usage.PartUsage,
        asking: tokens.Asking,
        issuer: str | None,
        token_required: bool,
    ) -> None:
        self._sessions, self._known, self._users, self._counted = kept, known, users, counted
        self._asking, self._issuer, self._token_required = asking, issuer, token_required

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """All that the page asks for."""
        router.add_get(SESSION_PATH, self.session)
        router.add_post(TOKEN_PATH, self.token)
        router.add_post(AUTHORIZATION_PATH, self.authorization)

    async def session(self, request: web.Request) -> web.Response:
        """200 with who has signed in and the application, null for what there is not."""
        session, user = self._sessions.of(request), self._sessions.user(request)
        links = {"sign_in": signing_in.login_url(IDE_PATH), "account": signing_in.ACCOUNT_PATH, "portal": PORTAL_PATH}
        said: dict[str, Any] = {"user": None, "organisation": None, "application": None, "csrf": None, "links": links}
        said["token_required"] = self._token_required
        if session is not None and user is not None:
            organisation = self._users.organisation(user.organisation)
            account = self._known.ide_application(user.organisation)
            said |= {
                "user": {"name": user.name, "email": user.email},
                "organisation": organisation.name if organisation else None,
                "application": self._described(session, account, request) if account else None,
                "csrf": self._sessions.csrf_token(session),
            }
        return forms.reply(said, 200)

    async def token(self, request: web.Request) -> web.Response:
        """200 with a token: the one that is held, else a new one; `renew` wants a new one, `grant` by this grant,
        `code` and `state` are what the browser came back with. 409 where the browser has to be sent away first."""
        try:
            (session, account), said = self._visit(request), await _body(request)
            return forms.reply(_shown(await self._token(session, account, said, request)), 200)
        except REFUSALS as refused:
            return _refused(refused)

    async def authorization(self, request: web.Request) -> web.Response:
        """200 with the address of an authorization request, for the scopes in `scope`. The IDE's own address is added
        to the application's redirect URIs, as the portal would."""
        try:
            (session, account), said = self._visit(request), await _body(request)
            address = _ide_address(request)
            self._let_back(account, address)
        except REFUSALS as refused:
            return _refused(refused)
        query = self._asking.start(session, account, address, said.get("scope") or _scope(account))
        return forms.reply({"url": f"{request.url.origin()}{authorization.AUTHORIZE_PATH}?{query}"}, 200)

    def _let_back(self, account: applications.SandboxApplication, address: str) -> None:
        if address not in account.redirect_uris:
            self._known.replace(dataclasses.replace(account, redirect_uris=(*account.redirect_uris, address)))

    async def _token(
        self,
        session: sessions.Session,
        account: applications.SandboxApplication,
        said: Mapping[str, str],
        request: web.Request,
    ) -> tokens.Held:
        if "code" in said:
            return await self._asking.finish(session, account, said["code"], said.get("state", ""), request)
        held = self._asking.held(session, account)
        if held is not None and "renew" not in said and "grant" not in said:
            return held
        grant = said.get("grant") or _grant(account)
        if grant == applications.CLIENT_CREDENTIALS:
            return await self._asking.by_itself(session, account, request)
        refreshed = await self._asking.refresh(session, account, request)
        if refreshed is None:
            raise tokens.RefusedError(409, "interaction_required", "The user has to let the application in.")
        return refreshed

    def _visit(self, request: web.Request) -> Visit:
        """Whose page it is. Raises RefusedError."""
        session, user = self._sessions.of(request), self._sessions.user(request)
        if session is None or user is None:
            raise tokens.RefusedError(401, "login_required", "Nobody is signed in.")
        if not self._sessions.is_own(session, request.headers.get(CSRF_HEADER)):
            raise tokens.RefusedError(403, "invalid_csrf", f"{CSRF_HEADER} is not this session's; reload the page.")
        account = self._known.ide_application(user.organisation)
        if account is None:
            raise tokens.RefusedError(404, "no_application", "Your organisation has no application.")
        return session, account

    def _described(
        self, session: sessions.Session, account: applications.SandboxApplication, request: web.Request
    ) -> dict[str, Any]:
        issuer, grant = forms.issuer(request, self._issuer), _grant(account)
        return {
            "name": account.name,
            "application_id": account.application_id,
            "parts_used": self._counted.used(account.application_id),
            "part_limit": self._counted.limit(account),
            "grant": grant,
            "needs_user": grant == applications.AUTHORIZATION_CODE and self._asking.needs_user(session, account),
            "grants": sorted(account.flows & {applications.CLIENT_CREDENTIALS, applications.AUTHORIZATION_CODE}),
            "settings": {
                "authorize_url": issuer + authorization.AUTHORIZE_PATH,
                "token_url": issuer + discovery.TOKEN_PATH,
                "client_id": account.client_id,
                "redirect_uri": _ide_address(request),
                "scope": _scope(account),
                "code_challenge_method": "S256",
            },
        }


def _ide_address(request: web.Request) -> str:
    """The IDE's redirect URI: the query service's address (contract graphql.md §4.3)."""
    return f"{request.url.origin()}{REDIRECT_PATH}"


def _grant(account: applications.SandboxApplication) -> str:
    """By which the IDE authorises by itself: a user's token where it is good for more than the application's own."""
    by_user = applications.AUTHORIZATION_CODE in account.flows
    if by_user and ("design" in account.domains or applications.CLIENT_CREDENTIALS not in account.flows):
        return applications.AUTHORIZATION_CODE
    return applications.CLIENT_CREDENTIALS


def _scope(account: applications.SandboxApplication) -> str:
    return " ".join((*scopes.ABOUT_USERS, *account.scopes))


async def _body(request: web.Request) -> dict[str, str]:
    """A JSON object of texts. Raises RefusedError."""
    try:
        said = orjson.loads(await request.read() or b"{}")
    except orjson.JSONDecodeError:
        said = None
    if not isinstance(said, dict) or not all(isinstance(value, str) for value in said.values()):
        raise tokens.RefusedError(400, "invalid_request", "The body must be a JSON object of texts.")
    return said


def _shown(held: tokens.Held) -> dict[str, Any]:
    return {
        "access_token": held.access_token,
        "expires_at": held.expires,
        "scope": held.scope,
        "by_user": held.by_user,
    }


def _refused(refused: tokens.RefusedError | file.StateError) -> web.Response:
    if isinstance(refused, file.StateError):
        refused = tokens.RefusedError(500, "server_error", f"It cannot be kept: {refused}.")
    headers = {"Retry-After": str(refused.retry_after)} if refused.retry_after else {}
    return forms.reply({"error": refused.code, "error_description": refused.description}, refused.status, headers)
