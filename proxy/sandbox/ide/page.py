"""HTML page of the IDE, which loads the scripts of `client/` under a strict Content-Security-Policy.

The query service responds with it to browsers.
"""

import secrets
from pathlib import Path

import jinja2
from aiohttp import web

from proxy.sandbox import pages
from proxy.sandbox.ide import assets, vendored


class IdePage:
    """Renders the page."""

    def __init__(self) -> None:
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
        text = Path(__file__).with_name("ide.html").read_text(encoding="utf-8")
        self._template = environment.from_string(text)
        names = [file.name for package in vendored.packages() for file in package.files]
        self._styles = [f"{assets.PATH}/{name}" for name in (*_ending(names, ".css"), "ide.css")]
        # React comes before the libraries that use it.
        self._scripts = [f"{assets.PATH}/{name}" for name in sorted(_ending(names, ".js"), key=_before)]
        self._main = f"{assets.PATH}/main.js"

    def show(self, request: web.Request) -> web.Response:
        """The page."""
        nonce = secrets.token_urlsafe(16)
        url = str(request.url.with_query(None))
        text = self._template.render(styles=self._styles, scripts=self._scripts, main=self._main, nonce=nonce, url=url)
        headers = {**pages.HEADERS, "Vary": "Accept", "Content-Security-Policy": _policy(request, nonce)}
        return web.Response(text=text, content_type="text/html", headers=headers)


def _ending(names: list[str], suffix: str) -> list[str]:
    return [name for name in names if name.endswith(suffix)]


def _before(name: str) -> tuple[bool, str]:
    return not name.startswith("react"), name


def _policy(request: web.Request, nonce: str) -> str:
    """The policy. Fonts and some images are data URLs in stylesheets. A library that locks scrolling behind dialogs
    adds a style element with the nonce. Older browsers do not include WebSockets in 'self'."""
    socket = f"{'wss' if request.secure else 'ws'}://{request.url.raw_authority}"
    rules = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": f"'self' 'nonce-{nonce}'",
        "img-src": "'self' data:",
        "font-src": "data:",
        "connect-src": f"'self' {socket}",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())
