"""Requests to the portal: sign-in and CSRF checks, rendering of pages, and notices after changes.

The other modules of the portal get a `PortalRequest` and respond with `PortalResponder.show` or `PortalResponder.go`.
Objects of other organisations are reported as missing: `PortalNotFoundError`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from cachetools import TTLCache

from nexar_sandbox import pages, user_directory
from nexar_sandbox.identity import forms, login, sessions
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.portal import form_input
from nexar_sandbox.state import file

PATH = "/portal"
ORGANISATION_PATH = f"{PATH}/organisation"
IDE_PATH = "/graphql"
# Lifetime in seconds of a notice that has not been shown, and the maximum number of notices.
NOTICE_SECONDS, MAX_NOTICES = 600, 1_000


class PortalNotFoundError(Exception):
    """The page does not exist for this user. The text names what is missing."""


@dataclass(frozen=True, slots=True)
class PortalRequest:
    """A request of a signed-in user. `form` is empty unless the method is POST."""

    request: web.Request
    session: sessions.BrowserSession
    user: user_directory.SandboxUser
    organisation: user_directory.Organisation
    form: Mapping[str, str] = field(default_factory=dict)

    def named(self, name: str) -> str:
        """A parameter of the path."""
        return self.request.match_info[name]

    def text(self, name: str) -> str:
        """A field of the form, stripped."""
        return self.form.get(name, "").strip()


Page = Callable[[PortalRequest], Awaitable[web.Response]]


class PortalResponder:
    """Wraps page handlers and makes their responses."""

    def __init__(
        self,
        users: user_directory.UserDirectory,
        browser_sessions: sessions.BrowserSessions,
        html_pages: pages.Pages,
        clock: clocks.Clock,
    ) -> None:
        self._users, self._sessions, self._pages = users, browser_sessions, html_pages
        self._notices: TTLCache[str, str] = TTLCache(MAX_NOTICES, NOTICE_SECONDS, clock.now)

    def open(self, page: Page) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Wrap a page handler: redirect to login without a session, refuse forms without a valid CSRF token."""

        async def handler(request: web.Request) -> web.Response:
            sending = request.method == "POST"
            form = await forms.page_form(request) if sending else {}
            session, user = self._sessions.of(request), self._sessions.user(request)
            organisation = self._users.organisation(user.organisation) if user else None
            if session is None or user is None or organisation is None:
                raise web.HTTPSeeOther(login.login_url(PATH if sending else request.path_qs))
            visit = PortalRequest(request, session, user, organisation, form)
            if sending and not self._sessions.is_own(session, form.get(sessions.CSRF_FIELD)):
                return self._message(visit, 400, "Nothing was changed", login.STALE_FORM)
            try:
                return await page(visit)
            except PortalNotFoundError as absent:
                return self._message(visit, 404, "Not found", str(absent))
            except file.StateError as error:
                return self._message(visit, 500, "Nothing was changed", f"The state file cannot be written: {error}.")

        return handler

    def show(self, visit: PortalRequest, template: str, *, status: int = 200, **values: Any) -> web.Response:
        """Render a template of `templates/portal/`."""
        return self._pages.render(
            f"portal/{template}.html",
            status=status,
            csrf=self._sessions.csrf_token(visit.session),
            said=self._notices.pop(visit.session.id, ""),
            user=visit.user,
            organisation=visit.organisation,
            portal=PATH,
            organisation_path=ORGANISATION_PATH,
            ide=IDE_PATH,
            logout=login.LOGOUT_PATH,
            at=visit.request.path,
            **values,
        )

    def show_form(
        self, visit: PortalRequest, template: str, fields: form_input.FormInput, **values: Any
    ) -> web.Response:
        """Render a template with a form as it was sent, beside the mistakes in it; 400 if there are any."""
        status = 400 if fields.mistakes else 200
        # Passwords are not sent back.
        typed = {name: value for name, value in fields.form.items() if name != "password"}
        return self.show(visit, template, status=status, typed=typed, mistakes=fields.mistakes, **values)

    def go(self, visit: PortalRequest, path: str, notice: str) -> web.Response:
        """Redirect to another page, which shows a notice."""
        self._notices[visit.session.id] = notice
        return web.Response(status=303, headers={"Location": path, **pages.HEADERS})

    def _message(self, visit: PortalRequest, status: int, heading: str, text: str) -> web.Response:
        return self.show(visit, "message", status=status, heading=heading, text=text)
