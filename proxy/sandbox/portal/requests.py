"""Who is at the portal: a page is for users who have signed in, a form for those who were given it, and what a change
has done is said on the next page.

All other modules of the portal get a `Visit` and answer with `Desk.show` or `Desk.go`. Whatever is not of the user's
own organisation does not exist: `AbsentError`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from cachetools import TTLCache

from proxy.kit import clock as clocks
from proxy.sandbox import pages, user_directory
from proxy.sandbox.identity import forms, login, sessions
from proxy.sandbox.state import file

PATH = "/portal"
ORGANISATION_PATH = f"{PATH}/organisation"
IDE_PATH = "/graphql"
# Seconds that a message waits for its page, and how many wait.
NOTICE_SECONDS, MAX_NOTICES = 600, 1_000


class PortalNotFoundError(Exception):
    """There is no such page for this user. The text says what there isn't."""


@dataclass(frozen=True, slots=True)
class PortalRequest:
    """A request of a user. `form` is empty unless something is sent."""

    request: web.Request
    session: sessions.BrowserSession
    user: user_directory.SandboxUser
    organisation: user_directory.Organisation
    form: Mapping[str, str] = field(default_factory=dict)

    def named(self, name: str) -> str:
        """A part of the path."""
        return self.request.match_info[name]

    def text(self, name: str) -> str:
        """A field of the form, without the blanks around it."""
        return self.form.get(name, "").strip()


Page = Callable[[PortalRequest], Awaitable[web.Response]]


class PortalResponder:
    """Lets visitors in, and makes answers."""

    def __init__(
        self,
        users: user_directory.UserDirectory,
        kept: sessions.BrowserSessions,
        shown: pages.Pages,
        clock: clocks.Clock,
    ) -> None:
        self._users, self._sessions, self._pages = users, kept, shown
        self._said: TTLCache[str, str] = TTLCache(MAX_NOTICES, NOTICE_SECONDS, clock.now)

    def open(self, page: Page) -> Callable[[web.Request], Awaitable[web.Response]]:
        """The page as a handler: others are sent to sign in first, and a form that is not the portal's is refused."""

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
                return self._message(visit, 500, "Nothing was changed", f"It cannot be kept: {error}.")

        return handler

    def show(self, visit: PortalRequest, template: str, *, status: int = 200, **values: Any) -> web.Response:
        """A page of `templates/portal/`."""
        return self._pages.render(
            f"portal/{template}.html",
            status=status,
            csrf=self._sessions.csrf_token(visit.session),
            said=self._said.pop(visit.session.id, ""),
            user=visit.user,
            organisation=visit.organisation,
            portal=PATH,
            organisation_path=ORGANISATION_PATH,
            ide=IDE_PATH,
            logout=login.LOGOUT_PATH,
            at=visit.request.path,
            **values,
        )

    def go(self, visit: PortalRequest, path: str, said: str) -> web.Response:
        """On to another page, which says what has been done."""
        self._said[visit.session.id] = said
        return web.Response(status=303, headers={"Location": path, **pages.HEADERS})

    def _message(self, visit: PortalRequest, status: int, heading: str, text: str) -> web.Response:
        return self.show(visit, "message", status=status, heading=heading, text=text)
