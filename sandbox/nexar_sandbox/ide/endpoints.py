"""The IDE: its page under a strict Content-Security-Policy, its files, the session with user and application, and
access tokens.

Only applications of the user's organization are used; secrets stay on the server. A token needs the session's CSRF
token in a header.
"""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from nexar_sandbox import applications, part_usage, user_directory
from nexar_sandbox.identity import forms, login, oauth, service

SESSION_PATH, TOKEN_PATH = "/ide/session", "/ide/token"
IDE_PATH, PORTAL_PATH = "/graphql", "/portal"
CSRF_HEADER = "X-CSRF-Token"
FILES_PATH = "/ide/assets"
VENDORED, OWN = Path(__file__).parent / "vendor", Path(__file__).parent / "client"
VENDORED_FILES = sorted(path.name for path in VENDORED.iterdir())
FILES = {path.name: path for folder in (VENDORED, OWN) for path in folder.iterdir()}


@dataclass(frozen=True, slots=True)
class Ide:
    """The IDE: page, files and endpoints. `token_required`: queries need a token."""

    identity: service.IdentityService
    registry: applications.ApplicationRegistry
    users: user_directory.UserDirectory
    usage: part_usage.PartUsage
    token_required: bool

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register all but the page, whose path is that of the query service."""
        router.add_get(f"{FILES_PATH}/{{name}}", _file)
        router.add_get(SESSION_PATH, self._session)
        router.add_post(TOKEN_PATH, self._token)

    def page(self, request: web.Request) -> web.Response:
        """Render the page. React comes before the libraries that use it."""
        nonce = secrets.token_urlsafe(16)
        scripts = [name for name in VENDORED_FILES if name.endswith(".js")]
        return self.identity.pages.render(
            "ide.html",
            policy=_policy(request, nonce),
            folder=FILES_PATH,
            styles=[*(name for name in VENDORED_FILES if name.endswith(".css")), "ide.css"],
            scripts=sorted(scripts, key=lambda name: not name.startswith("react")),
            nonce=nonce,
            url=str(request.url.with_query(None)),
            path=request.path,
        )

    async def _session(self, request: web.Request) -> web.Response:
        """200 with user, organization and application, null if missing."""
        session, user = self.identity.sessions.of(request), self.identity.sessions.user(request)
        links = {"sign_in": login.login_url(IDE_PATH), "account": login.ACCOUNT_PATH, "portal": PORTAL_PATH}
        body: dict[str, Any] = {"user": None, "organization": None, "application": None, "csrf": None, "links": links}
        body["token_required"] = self.token_required
        if session is not None and user is not None:
            organization = self.users.organization(user.organization)
            application = self.registry.ide_application(user.organization)
            body |= {
                "user": {"name": user.name, "email": user.email},
                "organization": organization.name if organization else None,
                "application": self._described(application) if application else None,
                "csrf": session.csrf_token,
            }
        return forms.json_response(body, 200)

    def _described(self, application: applications.SandboxApplication) -> dict[str, Any]:
        return {
            "name": application.name,
            "parts_used": self.usage.used_in_period(application),
            "part_limit": self.usage.limit(application),
            "period": application.period,
            "settings": {"client_id": application.client_id},
        }

    async def _token(self, request: web.Request) -> web.Response:
        """200 with a new token of the signed-in user's application."""
        sessions = self.identity.sessions
        session, user = sessions.of(request), sessions.user(request)
        if session is None or session.sign_in is None or user is None:
            return _refused(401, "login_required", "No user is signed in.")
        if not sessions.is_own(session, request.headers.get(CSRF_HEADER)):
            return _refused(403, "invalid_csrf", f"{CSRF_HEADER} is not this session's; reload the page.")
        application = self.registry.ide_application(user.organization)
        if application is None:
            return _refused(404, "no_application", "Your organization has no application.")
        try:
            return forms.json_response(self.identity.token.issue_for(application, session.sign_in, request), 200)
        except oauth.OAuthError as error:
            return _refused(400, error.code, f"The token endpoint says {error.code}.")


def _refused(status: int, error: str, description: str) -> web.Response:
    return forms.json_response({"error": error, "error_description": description}, status)


async def _file(request: web.Request) -> web.FileResponse:
    path = FILES.get(request.match_info["name"])
    if path is None:
        raise web.HTTPNotFound(text="there is no such file")
    return web.FileResponse(path, headers={"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"})


def _policy(request: web.Request, nonce: str) -> str:
    """Return the policy. Fonts and some images are data URLs in stylesheets. A library that locks scrolling behind
    dialogs adds a style element with the nonce. Older browsers do not include WebSockets in 'self'."""
    socket = f"{'wss' if request.secure else 'ws'}://{request.url.raw_authority}"
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
        f"font-src data:; connect-src 'self' {socket}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
