"""Authorization endpoint: login, consent and redirect with a code (RFC 6749 §4.1, OpenID Connect Core §3.1.2; contract
graphql.md §4.3). Errors are only redirected to registered redirect URIs.
"""

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from aiohttp import web

from nexar_sandbox import pages
from nexar_sandbox.identity import forms, login, oauth, sessions

AUTHORIZE_PATH, CONSENT_PATH = "/connect/authorize", "/account/consent"
LOGIN_PROMPTS = frozenset({"login", "select_account"})

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AuthorizationEndpoint:
    server: oauth.OAuthServer
    browser_sessions: sessions.BrowserSessions
    html_pages: pages.Pages

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
            asked = self.server.read_authorization(pairs)
            if session is None or session.sign_in is None or asked.prompt & LOGIN_PROMPTS:
                if "none" in asked.prompt:
                    raise asked.error("login_required")
                raise web.HTTPSeeOther(login.login_url(f"{AUTHORIZE_PATH}?{urlencode(_after_login(pairs))}"))
            user, client_id = session.sign_in.user, asked.application.client_id
            consents = self.server.authorization_store.has_consent(user, client_id, asked.scopes)
            if "none" in asked.prompt and not consents:
                raise asked.error("consent_required")
        except oauth.OAuthError as error:
            return self._refused(request, error)
        if "consent" in asked.prompt or not consents:
            return self._consent(pairs, asked, session)
        return self._redirect(request, asked.redirect_uri, self.server.issue_code(asked, session.sign_in), asked.state)

    async def decide(self, request: web.Request) -> web.Response:
        form = await forms.page_form(request)
        session = self.browser_sessions.of(request)
        is_own = self.browser_sessions.is_own(session, form.get(sessions.CSRF_FIELD))
        if session is None or session.sign_in is None or not is_own:
            return self._refused(request, oauth.OAuthError("invalid_request", login.STALE_FORM))
        try:
            # Validated again: the query comes back from a page that its user can edit.
            asked = self.server.read_authorization(tuple(parse_qsl(form.get("query", ""))))
            if form.get("decision") != "allow":
                raise asked.error("access_denied")
        except oauth.OAuthError as error:
            return self._refused(request, error)
        client_id = asked.application.client_id
        self.server.authorization_store.consent(session.sign_in.user, client_id, asked.scopes)
        return self._redirect(request, asked.redirect_uri, self.server.issue_code(asked, session.sign_in), asked.state)

    def _consent(
        self, pairs: Pairs, asked: oauth.AuthorizationRequest, session: sessions.BrowserSession
    ) -> web.Response:
        user = self.server.users.by_id(session.sign_in.user) if session.sign_in else None
        return self.html_pages.render(
            "consent.html",
            leads_to=[asked.redirect_uri],
            application=asked.application.name,
            user=user,
            scopes=[(name, oauth.ALL_SCOPES[name]) for name in asked.scopes],
            redirect_uri=asked.redirect_uri,
            query=urlencode(pairs),
            action=CONSENT_PATH,
            csrf=session.csrf_token,
        )

    def _refused(self, request: web.Request, error: oauth.OAuthError) -> web.Response:
        """Redirect the error to the application if its redirect URI is valid, else show it."""
        if isinstance(error, oauth.RedirectedError):
            told = {"error": error.code, "error_description": error.description or None, "state": error.state}
            parameters = {**told, "iss": forms.issuer(request)}
            return pages.redirect(oauth.redirect_address(error.redirect_uri, parameters), 302)
        return self.html_pages.message("Sign-in failed", error.description, status=400, code=error.code)

    def _redirect(self, request: web.Request, redirect_uri: str, code: str, state: str | None) -> web.Response:
        """Redirect to the application with a code, and with the issuer against mix-up attacks (RFC 9207)."""
        parameters = {"code": code, "state": state, "iss": forms.issuer(request)}
        return pages.redirect(oauth.redirect_address(redirect_uri, parameters), 302)


def _after_login(pairs: Pairs) -> list[tuple[str, str]]:
    """Return the request after the login that it requires."""
    remaining = [
        (name, " ".join(word for word in value.split() if word not in LOGIN_PROMPTS))
        if name == "prompt"
        else (name, value)
        for name, value in pairs
    ]
    return [(name, value) for name, value in remaining if name != "prompt" or value]
