"""Requests to the portal: sign-in and CSRF checks, forms, rendering of pages, and notices after changes.

A page returns its template and the template's values. Objects of other organizations are reported as missing:
`PortalNotFoundError`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from aiohttp import web
from cachetools import TTLCache

from nexar_sandbox import clocks, pages, user_directory
from nexar_sandbox.identity import forms, login, sessions
from nexar_sandbox.portal import fields

PATH = "/portal"
# Lifetime in seconds of a notice that has not been shown, and the maximum number of notices.
NOTICE_SECONDS, MAX_NOTICES = 600, 1_000


class PortalNotFoundError(Exception):
    """The page does not exist for this user. The text names what is missing."""


class PortalRequest(NamedTuple):
    """A request of a signed-in user. `form` is empty unless the method is POST."""

    request: web.Request
    session: sessions.BrowserSession
    user: user_directory.SandboxUser
    organization: user_directory.Organization
    form: Mapping[str, str]

    @property
    def id(self) -> str:
        return self.request.match_info["id"]


# Template and values of a page. Path of the page after a saved form, and its notice.
Shown = tuple[str, dict[str, Any]]
Saved = tuple[str, str]
Handler = Callable[[PortalRequest], Awaitable[web.Response]]


class PortalResponder:
    """Registers pages and forms, and makes their responses."""

    def __init__(
        self,
        router: web.UrlDispatcher,
        users: user_directory.UserDirectory,
        browser_sessions: sessions.BrowserSessions,
        html_pages: pages.Pages,
        clock: clocks.Clock,
    ) -> None:
        self._router = router
        self._users = users
        self._sessions = browser_sessions
        self._pages = html_pages
        self._notices: TTLCache[str, str] = TTLCache(MAX_NOTICES, NOTICE_SECONDS, clock.now)

    def add_page(self, path: str, page: Callable[[PortalRequest], Shown]) -> None:
        """Register a page. The values of its form are `typed`, if it has one."""

        async def show(visit: PortalRequest) -> web.Response:
            template, values = page(visit)
            return self._show(visit, template, **values)

        self._router.add_get(path, self._open(show))

    def add_form(
        self,
        path: str,
        form_fields: tuple[fields.Field, ...],
        page: Callable[[PortalRequest], Shown],
        save: Callable[..., Awaitable[Saved]],
    ) -> None:
        """Register the form of a page. `save` gets the request and the parsed values. After a mistake, also one that
        `save` raises, the page is shown again with messages and what was typed."""

        async def send(visit: PortalRequest) -> web.Response:
            values, mistakes = fields.parse(form_fields, visit.form)
            if not mistakes:
                try:
                    return self._go(visit, *await save(visit, **values))
                except fields.MistakeError as mistake:
                    mistakes = {mistake.name: str(mistake)}
            template, shown = page(visit)
            return self._show(visit, template, 400, **{**shown, "typed": visit.form, "mistakes": mistakes})

        self._router.add_post(path, self._open(send))

    def _open(self, handler: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Redirect to login without a session, refuse forms without a valid CSRF token."""

        async def handle(request: web.Request) -> web.Response:
            sending = request.method == "POST"
            form = await forms.page_form(request) if sending else {}
            session, user = self._sessions.of(request), self._sessions.user(request)
            organization = self._users.organization(user.organization) if user else None
            if session is None or user is None or organization is None:
                raise web.HTTPSeeOther(login.login_url(PATH if sending else request.path_qs))
            visit = PortalRequest(request, session, user, organization, form)
            if sending and not self._sessions.is_own(session, form.get(sessions.CSRF_FIELD)):
                return self._message(visit, 400, "Nothing was changed", login.STALE_FORM)
            try:
                return await handler(visit)
            except PortalNotFoundError as absent:
                return self._message(visit, 404, "Not found", str(absent))

        return handle

    def _show(self, visit: PortalRequest, template: str, status: int = 200, **values: Any) -> web.Response:
        shared = {
            "csrf": visit.session.csrf_token,
            "said": self._notices.pop(visit.session.id, ""),
            "user": visit.user,
            "organization": visit.organization,
            "portal": PATH,
            "logout": login.LOGOUT_PATH,
            "path": visit.request.path,
            "typed": {},
            "mistakes": {},
        }
        return self._pages.render(f"portal/{template}.html", status=status, **{**shared, **values})

    def _go(self, visit: PortalRequest, path: str, notice: str) -> web.Response:
        """Redirect to another page, which shows the notice."""
        self._notices[visit.session.id] = notice
        return pages.redirect(path)

    def _message(self, visit: PortalRequest, status: int, heading: str, text: str) -> web.Response:
        return self._show(visit, "message", status, heading=heading, text=text)
