"""Access to the admin interface: every request needs an admin token or a session, except for those of OPEN. Operators
may do everything, readers change nothing.

Security headers on every response, errors as pages or JSON, a limit of wrong tokens for each address.
"""

import math
from typing import Literal

import cachetools
import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.kit.windows import Window, Windows
from proxy.web.admin import identity_provider, pages, rendering, requests
from proxy.web.admin.page import AdminContext
from proxy.web.admin.sessions import Sessions
from proxy.web.operator_endpoints import PATHS as CHECKS

OPEN = CHECKS | {"/sign-in", "/sign-in/oidc", "/sign-in/oidc/return", "/static/{name}"}
"""Routes without authentication. A new route needs it unless it is named here."""

READING = {"/sign-out", *(path for page in pages.PAGES if page.posts for path in (page.url, f"/{page.name}.json"))}
"""Routes by POST that change nothing: parameters that must not stand in a URL."""

COOKIE = "__Host-v3bridge"  # the prefix: only over TLS (or loopback), for this host alone, for all paths
WRONG_TOKENS = Window(10, 60.0)  # for each address
CLAIMED = "claimed"  # group of all addresses that a program of this machine has put into X-Forwarded-For
WRONG_TOKENS_CLAIMED = Window(100, 60.0)  # for all of them
ADDRESSES_MAX = 4_096  # addresses whose wrong tokens are counted

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: with it browsers send `Origin: null` with forms of this interface, too.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Role = Literal["operator", "reader"]
ROLE = web.RequestKey("role", str)
"""Role of the token or session of a request."""

CSRF = web.RequestKey("csrf", str)
"""CSRF token of the request's session; missing where a script has sent the bearer token."""

NAME = web.RequestKey("name", str)
"""Name of the person whom an identity provider has signed in; empty for a token."""

log = structlog.get_logger()


class Unauthorized(errors.ClientError):
    """Neither token nor session."""

    status = 401


class ReadOnly(errors.ClientError):
    """A change by a reader."""

    status = 403

    def __init__(self) -> None:
        super().__init__("readers change nothing: use the token of operators, admin.token, or sign in as an operator")


class OidcSessions:
    """Sessions of people whom an identity provider has signed in, and sign-ins that have begun. Their keys are derived
    from the token and all settings of the identity provider."""

    def __init__(self, admin: config.AdminSettings, oidc: config.OidcSettings, clock: Clock) -> None:
        self.settings = oidc
        self.token = admin.token
        self.provider = identity_provider.IdentityProvider(oidc, clock)
        token = "" if admin.token is None else admin.token.reveal()
        key = "\0".join((token, repr(oidc), oidc.client_id, oidc.client_secret.reveal()))
        self.attempts = Sessions(config.Secret(f"{key}\0attempt"), clock, identity_provider.SIGN_IN_SECONDS)
        roles: tuple[Role, ...] = ("operator", "reader")
        self.by_role = {role: Sessions(config.Secret(f"{key}\0{role}"), clock) for role in roles}


class Guard:
    """Middleware that authenticates, and the check of tokens for signing in."""

    def __init__(self, context: AdminContext, host: str) -> None:
        self._context = context
        self._host = host
        self._trusted: tuple[str, ...] = ()
        self._transport = requests.Transport((), host)
        self._sessions: dict[Role, Sessions] = {}
        self._oidc: OidcSessions | None = None
        self._wrong: cachetools.LRUCache[str, Windows] = cachetools.LRUCache(ADDRESSES_MAX)

    @property
    def transport(self) -> requests.Transport:
        """How requests arrive, by the current settings."""
        trusted = self._context.service.gateway.settings.listen.trusted_proxies
        if self._trusted != trusted:
            self._trusted = trusted
            self._transport = requests.Transport(trusted, self._host)
        return self._transport

    def sessions(self) -> dict[Role, Sessions]:
        """Return the sessions of the current tokens: a reload may have changed them."""
        settings = self._context.service.gateway.settings.admin
        if not settings or settings.token is None:
            raise Unauthorized("the admin interface has no token")
        tokens: dict[Role, config.Secret] = {"operator": settings.token}
        if settings.read_token is not None:
            tokens["reader"] = settings.read_token
        if {role: each.token for role, each in self._sessions.items()} != tokens:
            self._sessions = {role: Sessions(token, self._context.clock) for role, token in tokens.items()}
        return self._sessions

    @property
    def oidc(self) -> OidcSessions | None:
        """Sign-in by the identity provider of the current settings, if there is one."""
        settings = self._context.service.gateway.settings.admin
        if not settings or settings.oidc is None:
            return None
        if self._oidc is None or (self._oidc.settings, self._oidc.token) != (settings.oidc, settings.token):
            self._oidc = OidcSessions(settings, settings.oidc, self._context.clock)
        return self._oidc

    def check_token(self, request: web.Request, text: str) -> Role:
        """Return the role of a token. Raises Unauthorized for a wrong one, and TooManyRequests for an address with many
        of them."""
        # Before the token is compared, so that a right guess is refused like a wrong one.
        self.check_failures(request)
        # All are compared, so that the time tells nothing.
        if roles := [role for role, sessions in self.sessions().items() if sessions.is_token(text)]:
            return roles[0]
        self.count_failure(request)
        log.warning("admin token refused", address=self.transport.addresses.from_request(request).address)
        raise Unauthorized("this is not an admin token")

    def check_failures(self, request: web.Request) -> None:
        """Raise TooManyRequests for an address with many wrong tokens or refused sign-ins."""
        groups = self._limits(request)
        if wait := max((self._wrong[group].wait() for group in groups if group in self._wrong), default=0.0):
            raise errors.TooManyRequests("too many wrong tokens from your address", retry_after=math.ceil(wait))

    def count_failure(self, request: web.Request) -> None:
        for group, limit in self._limits(request).items():
            self._wrong.setdefault(group, Windows((limit,), self._context.clock)).try_take()

    def _limits(self, request: web.Request) -> dict[str, Window]:
        limits = {self.transport.addresses.from_request(request).group: WRONG_TOKENS}
        if self.transport.is_address_claimed(request):
            limits[CLAIMED] = WRONG_TOKENS_CLAIMED
        return limits

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        async def authenticated(request: web.Request) -> web.StreamResponse:
            if requests.wants_page(request):
                await rendering.prepare()
            self.transport.check_host(request)
            redirect = None if _route(request) in OPEN else await self._authenticate(request)
            return await handler(request) if redirect is None else redirect

        return await self.respond(request, authenticated)

    async def respond(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Handle a request: errors become responses, and every response has the security headers."""
        try:
            response = await handler(request)
        except errors.BridgeError as error:
            response = self._error(request, error.status, error.message, error.retry_after)
        except web.HTTPException as error:
            reason = "there is no such page" if error.status == 404 else error.reason.lower()
            response = self._error(request, error.status, reason, None)
            if hdrs.ALLOW in error.headers:
                response.headers[hdrs.ALLOW] = error.headers[hdrs.ALLOW]
        except Exception as error:
            # A bug: the log has its type and place, the response nothing of it.
            log.error("internal error caught", exc_info=error)
            response = self._error(request, 500, "internal error; the log has its place", None)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)  # a document has a policy of its own
        return response

    async def _authenticate(self, request: web.Request) -> web.Response | None:
        """Return None for the token or a session, a redirect to the sign-in page for a browser without. Raises
        Unauthorized and ForbiddenOrigin."""
        kind, _, token = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        if kind.lower() == "bearer":
            request[ROLE] = self.check_token(request, token.strip())
            _check_role(request)
            return None
        cookie = request.cookies.get(COOKIE, "")
        issuers = [*self.sessions().items(), *(self.oidc.by_role.items() if self.oidc else ())]
        issuer = next(((role, each) for role, each in issuers if each.text(cookie) is not None), None)
        if issuer is None:
            if request.method in ("GET", "HEAD") and requests.wants_page(request):
                # Browsers send the session (SameSite=Strict) only after a link of this site, which this page follows.
                if request.headers.get("Sec-Fetch-Site") == "cross-site":
                    return web.Response(text=rendering.render("continue.html", "Continue"), content_type="text/html")
                location = request.rel_url.with_path("/sign-in").with_query(next=request.path_qs)
                return web.Response(status=303, headers={hdrs.LOCATION: str(location)})
            raise Unauthorized("send the header Authorization: Bearer TOKEN with an admin token, or sign in")
        request[ROLE], sessions = issuer
        request[NAME], request[CSRF] = sessions.text(cookie) or "", sessions.derived("csrf", cookie)
        if request.method not in ("GET", "HEAD"):
            requests.check_same_site(request)
            fields = await requests.form(request)
            if not sessions.is_derived("csrf", cookie, fields.get("csrf", "")):
                raise requests.ForbiddenOrigin
        _check_role(request)
        return None

    def _error(self, request: web.Request, status: int, message: str, retry_after: int | None) -> web.Response:
        if requests.wants_page(request):
            # With the navigation where there is a session.
            csrf = request.get(CSRF, "")
            listed = pages.PAGES if csrf else ()
            title = _TITLES.get(status, "Error")
            values = {"message": message, "pages": listed, "csrf": csrf, "role": request.get(ROLE, "operator")}
            text = rendering.render("error.html", title, **values)
            response = web.Response(text=text, status=status, content_type="text/html")
        else:
            response = web.json_response({"message": message}, status=status)
        if status == 401:
            response.headers[hdrs.WWW_AUTHENTICATE] = 'Bearer realm="v3bridge admin"'
        if retry_after is not None:
            response.headers[hdrs.RETRY_AFTER] = str(retry_after)
        return response


def _check_role(request: web.Request) -> None:
    """Raise ReadOnly for a change by a reader. A new route that is not GET is a change, unless it is of READING."""
    if request[ROLE] == "reader" and request.method not in ("GET", "HEAD") and _route(request) not in READING:
        log.warning("admin action refused", path=request.path)
        raise ReadOnly


_TITLES = {
    400: "Bad request",
    401: "Sign in",
    403: "Refused",
    404: "No such page",
    405: "Not possible here",
    429: "Too many requests",
}


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource else ""
