"""Login page, the user's page, and signing out.

Other pages redirect to `login_url`, which redirects back to them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from aiohttp import web

from nexar_sandbox import pages
from nexar_sandbox.identity import forms, oauth, sessions

LOGIN_PATH, LOGOUT_PATH, ACCOUNT_PATH = "/account/login", "/account/logout", "/account"
STALE_FORM = "This form has been open for too long, or another window has signed out. Try again."
WRONG_CREDENTIALS = "There is no user with this e-mail address and this password."

# Finds the application name and redirect URI that a `return_to` leads to; None: no application.
RedirectLookup = Callable[[str], tuple[str, str] | None]


def login_url(return_to: str) -> str:
    """URL of the login page that redirects to `return_to`, a path of the sandbox with its query, after the login."""
    return f"{LOGIN_PATH}?{urlencode({'return_to': return_to})}"


@dataclass(frozen=True, slots=True)
class LoginPages:
    server: oauth.OAuthServer
    browser_sessions: sessions.BrowserSessions
    html_pages: pages.Pages
    leads: RedirectLookup

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get(LOGIN_PATH, self.form)
        router.add_post(LOGIN_PATH, self.sign_in)
        router.add_post(LOGOUT_PATH, self.sign_out)
        router.add_get(ACCOUNT_PATH, self.user_page)

    async def form(self, request: web.Request) -> web.Response:
        return_to = _local_path(request.query.get("return_to"))
        return self._form(request, return_to, dict(parse_qsl(urlsplit(return_to).query)).get("login_hint", ""))

    async def sign_in(self, request: web.Request) -> web.Response:
        """Sign in and redirect to `return_to`; 400 with the page for wrong credentials or a stale form."""
        form = await forms.page_form(request)
        email, password, return_to = (form.get(name, "") for name in ("email", "password", "return_to"))
        return_to = _local_path(return_to)
        # A form of another site would sign the user in as somebody else (login CSRF).
        if not self.browser_sessions.is_own(self.browser_sessions.of(request), form.get(sessions.CSRF_FIELD)):
            return self._form(request, return_to, email, STALE_FORM)
        user = await self.server.users.authenticate(email, password)
        if user is None:
            return self._form(request, return_to, email, WRONG_CREDENTIALS)
        response = pages.redirect(return_to)
        self.browser_sessions.sign_in(request, response, user)
        return response

    async def user_page(self, request: web.Request) -> web.Response:
        session, user = self.browser_sessions.of(request), self.browser_sessions.user(request)
        if session is None or user is None:
            raise web.HTTPSeeOther(login_url(ACCOUNT_PATH))
        organization = self.server.users.organization(user.organization)
        return self.html_pages.render(
            "account.html",
            user=user,
            organization=organization.name if organization else "",
            action=LOGOUT_PATH,
            csrf=session.csrf_token,
        )

    async def sign_out(self, request: web.Request) -> web.Response:
        form = await forms.page_form(request)
        session = self.browser_sessions.of(request)
        if session is not None and not self.browser_sessions.is_own(session, form.get(sessions.CSRF_FIELD)):
            return self.html_pages.message(
                "Not signed out", STALE_FORM, status=400, link=ACCOUNT_PATH, link_text="Back"
            )
        response = self.html_pages.message("Signed out", "You are signed out.", link=LOGIN_PATH, link_text="Sign in")
        self.browser_sessions.sign_out(request, response)
        return response

    def _form(self, request: web.Request, return_to: str, email: str = "", mistake: str = "") -> web.Response:
        session, leads = self.browser_sessions.begin(request), self.leads(return_to)
        response = self.html_pages.render(
            "login.html",
            status=400 if mistake else 200,
            # The Content-Security-Policy also covers where the form leads to after the login.
            leads_to=[leads[1]] if leads else [],
            application=leads[0] if leads else "",
            mistake=mistake,
            email=email,
            demo=self.server.users.with_default_password,
            return_to=return_to,
            action=LOGIN_PATH,
            csrf=session.csrf_token,
        )
        self.browser_sessions.keep(request, response, session)
        return response


def _local_path(return_to: str | None) -> str:
    """Return a path of the sandbox; anything that browsers may read as another site is replaced (open redirect)."""
    if not return_to or not return_to.startswith("/") or not return_to.isprintable():
        return ACCOUNT_PATH
    return ACCOUNT_PATH if return_to.startswith("//") or "\\" in return_to else return_to
