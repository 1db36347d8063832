"""Serves scripts, styles and licences of the IDE page from this package.

Vendored files have their version in the name and are cached forever; the page's own are revalidated.
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from aiohttp import web

from proxy.sandbox.ide import vendored

OWN = Path(__file__).parent / "client"
PATH = "/ide/assets"
TYPES = {".json": "application/json", ".js": "text/javascript", ".css": "text/css", ".txt": "text/plain"}
FOREVER = "public, max-age=31536000, immutable"
# Minimum size in bytes for compression.
GZIP_FROM = 1024


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
        others = [file.name for package in vendored.packages() for file in package.files]
        self._known = {name: _read(vendored.FOLDER / name, FOREVER) for name in others}
        self._known[vendored.LICENCES] = _read(vendored.FOLDER / vendored.LICENCES, "no-cache")
        for path in sorted(OWN.iterdir()):
            if path.suffix in TYPES:
                self._known[path.name] = _read(path, "no-cache")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all files."""
        return tuple(self._known)

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """All files under one path."""
        router.add_get(f"{PATH}/{{name}}", self.serve)

    async def serve(self, request: web.Request) -> web.Response:
        """200 with the file, 304 if the client has it, 404."""
        asset = self._known.get(request.match_info["name"])
        if asset is None:
            raise web.HTTPNotFound(text="there is no such file")
        packed = "gzip" in request.headers.get("Accept-Encoding", "").lower() and len(asset.content) >= GZIP_FROM
        # Compressed and plain content differ, so they need different ETags (RFC 9110 §8.8.3).
        tag = f"{asset.tag}-gzip" if packed else asset.tag
        if any(known.value in (tag, "*") for known in request.if_none_match or ()):
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
