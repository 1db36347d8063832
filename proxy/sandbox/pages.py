"""The sandbox's pages for browsers: jinja2 templates in one frame with one stylesheet, and headers that let nothing
else in. Login, consent and account pages are made with it, and the portal's.

No JavaScript, nothing from elsewhere; what a page may load or send to is its Content-Security-Policy.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
from aiohttp import web

FOLDER = Path(__file__).parent / "templates"
STYLE_PATH = "/assets/sandbox.css"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Pages:
    """Renders templates of `FOLDER`, and of further folders."""

    def __init__(self, *folders: Path) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader([FOLDER, *folders]),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        self._environment.globals["style_path"] = STYLE_PATH
        self._style = (FOLDER / "sandbox.css").read_bytes()

    def add_filter(self, name: str, made: Callable[..., str]) -> None:
        """A filter for templates."""
        self._environment.filters[name] = made

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """The stylesheet."""
        router.add_get(STYLE_PATH, self.style)

    async def style(self, _request: web.Request) -> web.Response:
        """The stylesheet of all pages."""
        return web.Response(body=self._style, content_type="text/css", charset="utf-8")

    def render(
        self, template: str, *, status: int = 200, leads_to: Sequence[str] = (), **values: object
    ) -> web.Response:
        """A page. `leads_to`: addresses elsewhere to which its forms may lead, by a redirect."""
        text = self._environment.get_template(template).render(values)
        headers = {**HEADERS, "Content-Security-Policy": _policy(leads_to)}
        return web.Response(text=text, status=status, content_type="text/html", headers=headers)


def _policy(leads_to: Sequence[str]) -> str:
    forms = " ".join(["'self'", *map(_source, leads_to)])
    return f"default-src 'none'; style-src 'self'; form-action {forms}; base-uri 'none'; frame-ancestors 'none'"


def _source(address: str) -> str:
    """An address as a policy names it: its origin; for a program's own scheme, the scheme."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"
