"""Signing in to the admin interface, with a token or with OpenID Connect, and signing out."""

import structlog
from aiohttp import hdrs, web

from proxy import errors
from proxy.kit.wording import printable
from proxy.web.admin import auditing, guard, identity_provider, pages, rendering, requests, sessions

ATTEMPT = "__Host-v3bridge-sign-in"  # cookie of a sign-in that has begun; it carries the page to show afterwards
TARGET_MAX = 1_000  # characters of that page's address

log = structlog.get_logger()


class InsecureTransport(errors.ClientError):
    """Signing in over plain HTTP from another machine."""

    status = 403

    def __init__(self) -> None:
        super().__init__(
            "signing in needs an encrypted connection: open a tunnel (ssh -L 8088:127.0.0.1:8088 HOST) and then"
            " http://127.0.0.1:8088, or put a TLS server in front that sends X-Forwarded-Proto and is in"
            " listen.trusted_proxies"
        )


class SignIn:
    """Handlers of the sign-in page, of the way to the identity provider and back, and of signing out."""

    def __init__(self, guarded: guard.Guard, audit: auditing.AuditLog) -> None:
        self._guard = guarded
        self._audit = audit

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/sign-in", self._show)
        app.router.add_post("/sign-in", self._by_token)
        app.router.add_get("/sign-in/oidc", self._leave)
        app.router.add_get("/sign-in/oidc/return", self._return)
        app.router.add_post("/sign-out", self._sign_out)

    async def _show(self, request: web.Request) -> web.Response:
        self._check_transport(request)
        return self._page(request.query.get("next", ""))

    async def _by_token(self, request: web.Request) -> web.Response:
        self._check_transport(request)
        requests.check_same_site(request)
        form = await requests.form(request)
        target = _page_target(form.get("next", ""))
        try:
            role = self._guard.check_token(request, form.get("token", "").strip())
        except errors.ClientError as error:
            return self._page(target, error, "token")
        return await self._signed_in(request, role, self._guard.sessions()[role].new(), "", target)

    async def _leave(self, request: web.Request) -> web.Response:
        """Redirect to the identity provider."""
        self._check_transport(request)
        oidc, target = self._oidc(), _page_target(request.query.get("next", ""))
        attempt = oidc.attempts.new(target if len(target) <= TARGET_MAX else "/")
        try:
            self._guard.check_failures(request)
            location = await oidc.provider.authorization_url(_secrets(oidc, attempt))
        except errors.BridgeError as error:
            return self._refused(request, target, error)
        response = web.Response(status=303, headers={hdrs.LOCATION: location})
        # Lax: browsers do not send a strict one when the identity provider sends them back.
        set_cookie(response, ATTEMPT, attempt, identity_provider.SIGN_IN_SECONDS, samesite="Lax")
        return response

    async def _return(self, request: web.Request) -> web.Response:
        """Sign in the person whom the identity provider sends back. An attempt counts once."""
        self._check_transport(request)
        oidc, attempt = self._oidc(), request.cookies.get(ATTEMPT, "")
        target = oidc.attempts.text(attempt)
        try:
            if target is None or not oidc.attempts.is_derived("state", attempt, request.query.get("state", "")):
                raise identity_provider.SignInRefused(
                    "this sign-in did not begin in this browser, or too long ago: begin again, at"
                    f" {oidc.settings.public_url}"
                )
            self._guard.check_failures(request)
            try:
                person = await oidc.provider.person(request.query, _secrets(oidc, attempt))
            except identity_provider.SignInRefused:
                self._guard.count_failure(request)
                raise
        except errors.BridgeError as error:
            response = self._refused(request, target or "/", error)
        else:
            cookie = oidc.by_role[person.role].new(person.name)
            response = await self._signed_in(request, person.role, cookie, person.name, _page_target(target))
        set_cookie(response, ATTEMPT, "", 0, samesite="Lax")
        return response

    async def _signed_in(
        self, request: web.Request, role: guard.Role, cookie: str, name: str, target: str
    ) -> web.Response:
        log.info("admin signed in", role=role, address=self._audit.address(request))
        if role == "operator":  # else readers could fill the audit log until the actions of operators leave it
            await self._audit.record(request, auditing.named(role, cookie, name), "signed in")
        response = web.Response(status=303, headers={hdrs.LOCATION: target})
        set_cookie(response, guard.COOKIE, cookie, sessions.SESSION_SECONDS)
        return response

    async def _sign_out(self, request: web.Request) -> web.Response:
        if request[guard.ROLE] == "operator":
            await self._audit.record(request, auditing.who(request), "signed out")
        response = web.Response(status=303, headers={hdrs.LOCATION: "/sign-in"})
        set_cookie(response, guard.COOKIE, "", 0)
        return response

    def _check_transport(self, request: web.Request) -> None:
        """Raise InsecureTransport where the token could be read on the way, and browsers drop the session's cookie."""
        if not self._guard.transport.is_private(request):
            raise InsecureTransport

    def _oidc(self) -> guard.OidcSessions:
        if self._guard.oidc is None:
            raise web.HTTPNotFound
        return self._guard.oidc

    def _refused(self, request: web.Request, target: str, error: errors.BridgeError) -> web.Response:
        log.warning("admin sign-in refused", address=self._audit.address(request), reason=printable(error.message))
        return self._page(target, error)

    def _page(self, target: str, error: errors.BridgeError | None = None, field: str = "") -> web.Response:
        oidc = self._guard.oidc
        values = {
            "next": _page_target(target),
            "mistake": error.message if error else "",
            "wrong": field,
            "issuer": oidc.settings.issuer if oidc else "",
            "public_url": oidc.settings.public_url.rstrip("/") if oidc else "",
        }
        text = rendering.render("sign_in.html", title="Sign in", **values)
        response = web.Response(text=text, status=error.status if error else 200, content_type="text/html")
        if error is not None and error.retry_after is not None:
            response.headers[hdrs.RETRY_AFTER] = str(error.retry_after)
        return response


def _secrets(oidc: guard.OidcSessions, attempt: str) -> identity_provider.AttemptSecrets:
    return identity_provider.AttemptSecrets(
        *(oidc.attempts.derived(purpose, attempt) for purpose in identity_provider.AttemptSecrets._fields)
    )


def _page_target(text: str) -> str:
    """Return a target that is a page of this interface, else the overview: never another site (open redirect)."""
    path = text.partition("?")[0]
    return text if any(path in page.paths for page in pages.PAGES) and text.isprintable() else "/"


def set_cookie(response: web.Response, name: str, value: str, seconds: int, samesite: str = "Strict") -> None:
    """Set a cookie for this host that no script reads; without seconds, delete it."""
    response.set_cookie(name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite=samesite)
