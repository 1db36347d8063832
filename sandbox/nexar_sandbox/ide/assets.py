"""The IDE's page under a strict Content-Security-Policy, and its scripts, styles and licenses.

Files of others have their version in the name and are cached forever; the IDE's own are revalidated.
"""

import gzip
import secrets
from pathlib import Path

from aiohttp import web

from nexar_sandbox import pages

VENDORED = Path(__file__).parent / "vendor"
LICENSES = "LICENSES.txt"
OWN = Path(__file__).parent / "client"
PATH = "/ide/assets"
TYPES = {".json": "application/json", ".js": "text/javascript", ".css": "text/css", ".txt": "text/plain"}
# Minimum size in bytes for compression.
GZIP_FROM = 1024


class Assets:
    def __init__(self, html_pages: pages.Pages) -> None:
        self._pages = html_pages
        paths = [path for folder in (VENDORED, OWN) for path in sorted(folder.iterdir()) if path.suffix in TYPES]
        self._files = {path.name: path.read_bytes() for path in paths}
        self._packed: dict[str, bytes] = {}
        self._versioned = [path.name for path in paths if path.parent == VENDORED and path.name != LICENSES]

    def page(self, request: web.Request) -> web.Response:
        """Render the page. React comes before the libraries that use it."""
        nonce = secrets.token_urlsafe(16)
        scripts = [name for name in self._versioned if name.endswith(".js")]
        return self._pages.render(
            "ide.html",
            policy=_policy(request, nonce),
            folder=PATH,
            styles=[*(name for name in self._versioned if name.endswith(".css")), "ide.css"],
            scripts=sorted(scripts, key=lambda name: not name.startswith("react")),
            nonce=nonce,
            url=str(request.url.with_query(None)),
        )

    async def file(self, request: web.Request) -> web.Response:
        """200 with a file, 304 if the client has it, 404."""
        name = request.match_info["name"]
        content = self._files.get(name)
        if content is None:
            raise web.HTTPNotFound(text="there is no such file")
        headers = {
            "Cache-Control": "public, max-age=31536000, immutable" if name in self._versioned else "no-cache",
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
        }
        if "gzip" in request.headers.get("Accept-Encoding", "").lower() and len(content) >= GZIP_FROM:
            if name not in self._packed:
                self._packed[name] = gzip.compress(content, 6, mtime=0)
            content = self._packed[name]
            headers["Content-Encoding"] = "gzip"
        # Compressed and plain content differ, and so do their tags (RFC 9110 §8.8.3).
        return pages.tagged(request, content, headers, TYPES[Path(name).suffix])


def _policy(request: web.Request, nonce: str) -> str:
    """Return the policy. Fonts and some images are data URLs in stylesheets. A library that locks scrolling behind
    dialogs adds a style element with the nonce. Older browsers do not include WebSockets in 'self'."""
    socket = f"{'wss' if request.secure else 'ws'}://{request.url.raw_authority}"
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
        f"font-src data:; connect-src 'self' {socket}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
