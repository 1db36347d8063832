"""Serves the IDE: the HTML page under a strict Content-Security-Policy, and its scripts, styles and licences.

The query service responds with the page to browsers. Files of others are listed with their integrity in vendored.toml,
have their version in the name and are cached forever; `vendoring.py` downloads them. The page's own are revalidated.
"""

import base64
import gzip
import hashlib
import secrets
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import jinja2
from aiohttp import web

from nexar_sandbox import pages

VENDORED = Path(__file__).parent / "vendor"
MANIFEST = Path(__file__).with_name("vendored.toml")
LICENCES = "LICENSES.txt"
OWN = Path(__file__).parent / "client"
PATH = "/ide/assets"
TYPES = {".json": "application/json", ".js": "text/javascript", ".css": "text/css", ".txt": "text/plain"}
FOREVER = "public, max-age=31536000, immutable"
# Minimum size in bytes for compression.
GZIP_FROM = 1024


@dataclass(frozen=True, slots=True)
class VendoredFile:
    """A file of `VENDORED`. `origin` is its path in the package, `integrity` as `digest` has it."""

    name: str
    origin: str
    integrity: str


@dataclass(frozen=True, slots=True)
class VendoredPackage:
    """An npm package. `sources` is the path of the source map that lists the packages bundled in its files; "": nothing
    is bundled."""

    name: str
    version: str
    integrity: str
    sources: str
    files: tuple[VendoredFile, ...]


def packages(record: Path = MANIFEST) -> tuple[VendoredPackage, ...]:
    """The packages of the manifest."""
    listed = tomllib.loads(record.read_text(encoding="utf-8"))["package"]
    return tuple(
        VendoredPackage(
            package["name"],
            package["version"],
            package["integrity"],
            package.get("sources", ""),
            tuple(VendoredFile(file["name"], file["from"], file["integrity"]) for file in package["file"]),
        )
        for package in listed
    )


def digest(content: bytes) -> str:
    """Integrity as npm and browsers write it (Subresource Integrity §3.5)."""
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


@dataclass(frozen=True)
class Asset:
    """A file in memory; `tag` is an ETag without its quotes."""

    content: bytes
    media_type: str
    tag: str
    caching: str

    @cached_property
    def packed(self) -> bytes:
        """The compressed content, made at first use."""
        return gzip.compress(self.content, 6, mtime=0)

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every response with the file."""
        return {"Cache-Control": self.caching, "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}


class Assets:
    """All assets by name."""

    def __init__(self) -> None:
        vendored = [file.name for package in packages() for file in package.files]
        self._files = {name: _read(VENDORED / name, FOREVER) for name in vendored}
        self._files[LICENCES] = _read(VENDORED / LICENCES, "no-cache")
        for path in sorted(OWN.iterdir()):
            if path.suffix in TYPES:
                self._files[path.name] = _read(path, "no-cache")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all files."""
        return tuple(self._files)

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """All files under one path."""
        router.add_get(f"{PATH}/{{name}}", self.serve)

    async def serve(self, request: web.Request) -> web.Response:
        """200 with the file, 304 if the client has it, 404."""
        asset = self._files.get(request.match_info["name"])
        if asset is None:
            raise web.HTTPNotFound(text="there is no such file")
        packed = "gzip" in request.headers.get("Accept-Encoding", "").lower() and len(asset.content) >= GZIP_FROM
        # Compressed and plain content differ, so they need different ETags (RFC 9110 §8.8.3).
        tag = f"{asset.tag}-gzip" if packed else asset.tag
        if any(etag.value in (tag, "*") for etag in request.if_none_match or ()):
            response = web.Response(status=304, headers=asset.headers)
        else:
            response = web.Response(body=asset.packed if packed else asset.content, headers=asset.headers)
            response.content_type, response.charset = asset.media_type, "utf-8"
            if packed:
                response.headers["Content-Encoding"] = "gzip"
        response.etag = tag
        return response


def _read(path: Path, caching: str) -> Asset:
    content = path.read_bytes()
    return Asset(content, TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:32], caching)


class IdePage:
    """Renders the page."""

    def __init__(self) -> None:
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
        text = Path(__file__).with_name("ide.html").read_text(encoding="utf-8")
        self._template = environment.from_string(text)
        names = [file.name for package in packages() for file in package.files]
        self._styles = [f"{PATH}/{name}" for name in (*_ending(names, ".css"), "ide.css")]
        # React comes before the libraries that use it.
        self._scripts = [f"{PATH}/{name}" for name in sorted(_ending(names, ".js"), key=_before)]
        self._main = f"{PATH}/main.js"

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
