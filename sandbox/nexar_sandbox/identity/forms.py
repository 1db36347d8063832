"""Reading of forms and bearer tokens, and JSON responses of the identity endpoints."""

from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

FORM = "application/x-www-form-urlencoded"
NO_STORE = {"Cache-Control": "no-store, no-cache, max-age=0", "Pragma": "no-cache"}


async def oauth_form(request: web.Request) -> dict[str, str] | None:
    """Return the fields of a form; None for another method or another content, one that cannot be read, or one in
    which a field is given twice (RFC 6749 §3.2)."""
    if request.method != "POST" or request.content_type != FORM:
        return None
    fields = await _fields(request)
    return None if fields is None or len(fields) < len(await request.post()) else fields


async def page_form(request: web.Request) -> dict[str, str]:
    """Return the fields of a page's form. Raises HTTPBadRequest where they cannot be read."""
    fields = await _fields(request)
    if fields is None:
        raise web.HTTPBadRequest(text="the form cannot be read")
    return fields


async def _fields(request: web.Request) -> dict[str, str] | None:
    try:
        return {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
    except (ValueError, LookupError):  # no such characters, no such character set
        return None


def issuer(request: web.Request) -> str:
    """Return the issuer of tokens: the address that the client uses."""
    return str(request.url.origin())


def json_response(
    body: Mapping[str, object], status: int, headers: Mapping[str, str] | None = None, store: bool = False
) -> web.Response:
    """Return a JSON response, not cacheable unless `store`."""
    every = {**({} if store else NO_STORE), **(headers or {})}
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json", headers=every)


def access_token(headers: Any) -> str | None:
    """Return the access token in `Authorization: Bearer` or in `token`, which some clients of the service use."""
    kind, _, value = headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return str(value).strip()
    token = headers.get("token")
    return None if token is None else str(token)
