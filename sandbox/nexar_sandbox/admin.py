"""Admin interface: declare, list and remove faults; read and clear the journal.

JSON, and for browsers the journal's page, whose form needs the session's CSRF token. No authentication, because the
sandbox protects nothing. It therefore accepts only known host names: a web page could otherwise reach it by DNS
rebinding. Invalid requests get a 400 with the reason.
"""

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass

import msgspec
import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from nexar_sandbox import applications, faults, journal, pages
from nexar_sandbox.identity import forms, login, sessions

FAULTS_PATH = "/admin/faults"
JOURNAL_PATH = "/admin/journal"
HOST = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?", re.ASCII)
LAST_PORT = 65_535
ADMIN = "/admin"
LAST = 100
# Numbers of entries that the journal's page offers.
CHOICES = (20, LAST, 500, 2_000)


@web.middleware
async def require_valid_host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Respond with 400 to an invalid Host header, on every path: URLs in responses are made from it."""
    host = HOST.fullmatch(request.host)
    if host is None or int(host[2] or 0) > LAST_PORT:
        return web.Response(text="the Host header is not a host with an optional port", status=400)
    return await handler(request)


def restrict_admin(names: Collection[str]) -> Middleware:
    """Respond with 403 to /admin unless the host is a loopback name, an IP address or one of `names`."""
    allowed_hosts = {name.lower().rstrip(".") for name in names}

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith(ADMIN):
            host = HOST.fullmatch(request.host)
            name = host[1].lower().rstrip(".") if host else ""
            if not (_is_local(name) or name in allowed_hosts):
                text = f"/admin is not served under the host {name}; start the sandbox with --admin-host {name}\n"
                return web.Response(text=text, status=403)
        return await handler(request)

    return guarded


def _is_local(name: str) -> bool:
    """Return true if the name cannot be rebound: loopback names (RFC 6761 §6.3) and IP addresses."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class AdminEndpoints:
    """Handlers of faults and journal."""

    fault_injector: faults.FaultInjector
    request_journal: journal.RequestJournal
    registry: applications.ApplicationRegistry
    html_pages: pages.Pages
    browser_sessions: sessions.BrowserSessions

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Other methods are 405. POST is for the form of the journal's page."""
        router.add_get(FAULTS_PATH, self.faults)
        router.add_put(FAULTS_PATH, self.replace)
        router.add_delete(FAULTS_PATH, self.lift)
        router.add_get(JOURNAL_PATH, self.entries)
        router.add_delete(JOURNAL_PATH, self.clear)
        router.add_post(JOURNAL_PATH, self.clear_by_form)

    async def faults(self, _request: web.Request) -> web.Response:
        """List the faults with the number of requests left for each (null: unlimited)."""
        listed = [
            {"fault": msgspec.to_builtins(fault), "left": left} for fault, left in self.fault_injector.remaining()
        ]
        return _reply({"faults": listed})

    async def replace(self, request: web.Request) -> web.Response:
        """Replace all faults by the list in the body; nothing changes if it is invalid."""
        try:
            self.fault_injector.replace(faults.read_faults(orjson.loads(await request.read())))
        except orjson.JSONDecodeError as error:
            return _reply({"error": f"the body is not JSON: {error}"}, 400)
        except ValueError as error:
            return _reply({"error": str(error)}, 400)
        return await self.faults(request)

    async def lift(self, request: web.Request) -> web.Response:
        self.fault_injector.clear()
        return await self.faults(request)

    async def entries(self, request: web.Request) -> web.Response:
        """Totals and the `last` entries: oldest first as JSON, newest first as HTML."""
        last = request.query.get("last", str(LAST))
        if not (last.isascii() and last.isdigit()):
            return self._bad_last(request, f"last must be a number of entries, 0 or more; it is {last!r}")
        # A number of more digits than Python converts is more than are kept.
        entries = self.request_journal.last(int(last[:10]))
        if pages.prefers_html(request):
            return self._journal_page(request, entries, last)
        return _reply({"totals": self.request_journal.totals, "entries": entries})

    async def clear(self, _request: web.Request) -> web.Response:
        self.request_journal.clear()
        return _reply({"totals": self.request_journal.totals, "entries": []})

    async def clear_by_form(self, request: web.Request) -> web.Response:
        form = await forms.page_form(request)
        if not self.browser_sessions.is_own(self.browser_sessions.of(request), form.get(sessions.CSRF_FIELD)):
            return self._journal_page(request, self.request_journal.last(LAST), str(LAST), login.STALE_FORM)
        self.request_journal.clear()
        return pages.redirect(JOURNAL_PATH)

    def _journal_page(
        self, request: web.Request, entries: list[journal.JournalEntry], last: str, mistake: str = ""
    ) -> web.Response:
        session = self.browser_sessions.begin(request)
        response = self.html_pages.render(
            "journal.html",
            status=400 if mistake else 200,
            mistake=mistake,
            path=request.path,
            csrf=session.csrf_token,
            entries=entries[::-1],
            totals=self.request_journal.totals,
            names={application.application_id: application.name for application in self.registry.all},
            last=last,
            choices=CHOICES,
        )
        self.browser_sessions.keep(request, response, session)
        return response

    def _bad_last(self, request: web.Request, text: str) -> web.Response:
        if not pages.prefers_html(request):
            return _reply({"error": text}, 400)
        return self.html_pages.message("Bad request", text, status=400, link=JOURNAL_PATH, link_text="Journal")


def _reply(body: object, status: int = 200) -> web.Response:
    headers = {"Vary": "Accept"}
    return web.Response(
        body=orjson.dumps(body) + b"\n", status=status, content_type="application/json", headers=headers
    )
