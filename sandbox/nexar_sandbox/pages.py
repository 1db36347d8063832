"""Renders the sandbox's HTML pages: jinja2 templates with one layout, one stylesheet and security headers.

Every page works without JavaScript; the only script is that of copy buttons (`copies`). The Content-Security-Policy
restricts the resources of a page and the targets of its forms.
"""

import datetime
import shlex
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
from aiohttp import web
from aiohttp.typedefs import Handler

FOLDER = Path(__file__).parent / "templates"
ASSETS = "/assets"
# Files of FOLDER that pages load, and their types.
FILES = {"sandbox.css": "text/css", "copy.js": "text/javascript"}
NAVIGATION = (("/portal", "Portal"), ("/graphql", "IDE"), ("/admin/journal", "Journal"))
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_GATEWAY_ERROR = (
    "<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1></center>\r\n</body>\r\n</html>\r\n"
)


class Pages:
    """Renders templates of `FOLDER`."""

    def __init__(self) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(FOLDER),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        self._environment.globals |= {"assets": ASSETS, "navigation": NAVIGATION, "path": ""}
        self._environment.filters |= {"grouped": format_number, "date": _date, "moment": _moment, "shell": shlex.quote}
        self._files = {name: (FOLDER / name).read_bytes() for name in FILES}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        for name in FILES:
            router.add_get(f"{ASSETS}/{name}", self.file)

    async def file(self, request: web.Request) -> web.Response:
        name = request.path.rpartition("/")[2]
        return web.Response(body=self._files[name], content_type=FILES[name], charset="utf-8")

    def render(
        self,
        template: str,
        *,
        status: int = 200,
        leads_to: Sequence[str] = (),
        copies: bool = False,
        policy: str = "",
        **values: object,
    ) -> web.Response:
        """Render a page. `leads_to`: other origins to which its forms may redirect. `copies`: it has copy buttons.
        `policy`: its Content-Security-Policy instead of that of pages without scripts."""
        text = self._environment.get_template(template).render(copies=copies, **values)
        headers = {**HEADERS, "Vary": "Accept", "Content-Security-Policy": policy or _policy(leads_to, copies)}
        return web.Response(text=text, status=status, content_type="text/html", headers=headers)

    def message(
        self, heading: str, text: str, *, status: int = 200, code: str = "", link: str = "", link_text: str = ""
    ) -> web.Response:
        """Render a page that says one thing, and links to another page."""
        return self.render(
            "message.html", status=status, heading=heading, text=text, code=code, link=link, link_text=link_text
        )

    @web.middleware
    async def not_found(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """HTML page for browsers at unknown paths; other clients get the plain 404."""
        try:
            return await handler(request)
        except web.HTTPNotFound:
            if not prefers_html(request):
                raise
            return self.render("not_found.html", status=404, path=request.path)


def gateway_error(status: int) -> str:
    return _GATEWAY_ERROR.format(f"{status} {HTTPStatus(status).phrase}")


def redirect(address: str, status: int = 303) -> web.Response:
    return web.Response(status=status, headers={"Location": address, **HEADERS})


def format_number(number: int) -> str:
    """Return a number with a narrow space between thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def prefers_html(request: web.Request) -> bool:
    """Return true if the client accepts HTML and did not request `?format=json`."""
    return request.query.get("format") != "json" and "text/html" in request.headers.get("Accept", "")


def _policy(leads_to: Sequence[str], copies: bool) -> str:
    forms = " ".join(["'self'", *map(_source, leads_to)])
    script = "script-src 'self'; " if copies else ""
    own = f"default-src 'none'; {script}style-src 'self'"
    return f"{own}; form-action {forms}; base-uri 'none'; frame-ancestors 'none'"


def _source(address: str) -> str:
    """Return an address as a CSP source: its origin; for a private-use scheme, the scheme."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _date(seconds: float | None) -> str:
    """Return a time as a date. None: it has been there from the start."""
    return "initially" if seconds is None else f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%d}"


def _moment(seconds: float) -> str:
    """Seconds since 1970 as a time in UTC, to the millisecond."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03}"
