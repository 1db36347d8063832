"""Authorization endpoint: login, consent and redirect with a code (RFC 6749 §4.1, OpenID Connect Core §3.1.2; contract
graphql.md §4.3).

Authlib validates requests and makes responses; this module handles the browser session and the pages. Errors are only
redirected to registered redirect URIs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from aiohttp import web
from authlib.common.urls import add_params_to_uri
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oidc.core.errors import ConsentRequiredError

from nexar_sandbox import clocks, pages
from nexar_sandbox.identity import authorization_server, forms, grants, login, scopes, sessions, tokens
from nexar_sandbox.identity.clients import ProtocolRequest

AUTHORIZE_PATH, CONSENT_PATH = "/connect/authorize", "/account/consent"
LOGIN_PROMPTS = frozenset({"login", "select_account"})

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AuthorizationEndpoint:
    server: authorization_server.OAuthServer
    browser_sessions: sessions.BrowserSessions
    html_pages: pages.Pages
    clock: clocks.Clock

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get(AUTHORIZE_PATH, self.authorize)
        router.add_post(AUTHORIZE_PATH, self.posted)
        router.add_post(CONSENT_PATH, self.decide)

    def leads(self, return_to: str) -> tuple[str, str] | None:
        """Application name and redirect URI of the authorization request in `return_to` (`login.RedirectLookup`)."""
        parts = urlsplit(return_to)
        parameters = dict(parse_qsl(parts.query))
        client_id = parameters.get("client_id", "") if parts.path == AUTHORIZE_PATH else ""
        application = self.server.registry.by_client_id(client_id)
        if application is None or parameters.get("redirect_uri") not in application.redirect_uris:
            return None
        return application.name, parameters["redirect_uri"]

    async def posted(self, request: web.Request) -> web.Response:
        """Redirect to GET: cross-site forms carry no session cookie."""
        raise web.HTTPSeeOther(f"{AUTHORIZE_PATH}?{urlencode(await forms.page_form(request))}")

    async def authorize(self, request: web.Request) -> web.Response:
        """Redirect to the login page, show the consent page, or redirect to the application."""
        pairs = tuple(request.query.items())
        session = self.browser_sessions.of(request)
        try:
            grant = self._grant(request, pairs, session)
            if grant.prompt in LOGIN_PROMPTS:
                raise web.HTTPSeeOther(login.login_url(f"{AUTHORIZE_PATH}?{urlencode(_after_login(pairs))}"))
            if session is None or session.sign_in is None:
                # Not reached: without a sign-in the prompt is login.
                raise TypeError("no user is signed in, and no login is required")
            if self._must_ask(grant, session.sign_in):
                return self._consent(pairs, grant, session)
        except (OAuth2Error, ValueError) as error:
            return self._refused(request, error)
        return self._sent(request, self.server.finish(grant, session.sign_in).headers)

    async def decide(self, request: web.Request) -> web.Response:
        form = await forms.page_form(request)
        session = self.browser_sessions.of(request)
        if (
            session is None
            or session.sign_in is None
            or not self.browser_sessions.is_own(session, form.get(sessions.CSRF_FIELD))
        ):
            return self._refused(request, InvalidRequestError("The form is out of date or from another site."))
        try:
            # Validated again: the query comes back from a page that its user can edit.
            grant = self._grant(request, tuple(parse_qsl(form.get("query", ""))), session)
        except (OAuth2Error, ValueError) as error:
            return self._refused(request, error)
        if form.get("decision") != "allow":
            return self._sent(request, self.server.finish(grant, None).headers)
        names = grant.request.scope.split()
        self.server.authorization_store.consent(session.sign_in.user, grant.client.get_client_id(), names)
        return self._sent(request, self.server.finish(grant, session.sign_in).headers)

    def _grant(
        self, request: web.Request, pairs: Pairs, session: sessions.BrowserSession | None
    ) -> authorization_server.ConsentRequest:
        """Validate the authorization request. Raises OAuth2Error, or ValueError for texts that Authlib's errors cannot
        hold."""
        sign_in = session.sign_in if session else None
        if sign_in is not None and self._is_over(sign_in, dict(pairs).get("max_age")):
            sign_in = None
        issuer = forms.issuer(request)
        return self.server.consent(ProtocolRequest("GET", pairs, issuer, sign_in=sign_in))

    def _is_over(self, sign_in: tokens.SignIn, max_age: str | None) -> bool:
        seconds = grants.max_age(max_age)
        return seconds is not None and self.clock.now() - sign_in.at > seconds

    def _must_ask(self, grant: authorization_server.ConsentRequest, sign_in: tokens.SignIn) -> bool:
        """Return true if consent is needed. Raises ConsentRequiredError if `prompt` is none."""
        data, names = grant.request.payload.data, grant.request.scope.split()
        if grant.prompt != "consent" and self.server.authorization_store.has_consent(
            sign_in.user, grant.client.get_client_id(), names
        ):
            return False
        if data.get("prompt") == "none":
            raise ConsentRequiredError(redirect_uri=grant.redirect_uri, state=data.get("state"))
        return True

    def _consent(
        self, pairs: Pairs, grant: authorization_server.ConsentRequest, session: sessions.BrowserSession
    ) -> web.Response:
        user = self.server.users.by_id(session.sign_in.user) if session.sign_in else None
        return self.html_pages.render(
            "consent.html",
            leads_to=[grant.redirect_uri],
            application=grant.client.application.name,
            user=user,
            scopes=[(name, scopes.ALL[name]) for name in dict.fromkeys(grant.request.scope.split())],
            redirect_uri=grant.redirect_uri,
            query=urlencode(pairs),
            action=CONSENT_PATH,
            csrf=self.browser_sessions.csrf_token(session),
        )

    def _refused(self, request: web.Request, error: Exception) -> web.Response:
        """Redirect the error to the application if its redirect URI is valid, else show it."""
        if isinstance(error, OAuth2Error) and error.redirect_uri:
            return self._sent(request, dict(error(None)[2]))
        code, text = "invalid_request", "The request is not valid."
        if isinstance(error, OAuth2Error):
            code, text = str(error.error), error.get_error_description() or text
        return self.html_pages.message("Sign-in failed", text, status=400, code=code)

    def _sent(self, request: web.Request, headers: Mapping[str, str]) -> web.Response:
        """Redirect to the application, with the issuer against mix-up attacks (RFC 9207)."""
        address = add_params_to_uri(headers["Location"], [("iss", forms.issuer(request))])
        return pages.redirect(address, 302)


def _after_login(pairs: Pairs) -> list[tuple[str, str]]:
    """Return the request after the login that it requires: without `max_age`, which 0 would require again and again."""
    remaining = [
        (name, " ".join(word for word in value.split() if word not in LOGIN_PROMPTS))
        if name == "prompt"
        else (name, value)
        for name, value in pairs
        if name != "max_age"
    ]
    return [(name, value) for name, value in remaining if name != "prompt" or value]
