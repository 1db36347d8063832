"""The admin interface as an aiohttp application: its routes, and handlers of pages, actions and files."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.web import early_refusals, operator_endpoints
from proxy.web.admin import auditing, guard, openapi, pages, rendering, requests, sign_in
from proxy.web.admin.page import ActionResult, AdminAction, AdminContext, AdminDocument, AdminPage, PageData, Query
from proxy.web.service import RunningService

STATIC = Path(__file__).parent / "static"
# Files that pages load, and their types.
FILES = {"admin.css": "text/css", "admin.js": "text/javascript", "icon.svg": "image/svg+xml"}
HELD = "V3bridge-Held"  # header with the digests of the pieces that a page shows
NOTICE = "__Host-v3bridge-notice"  # cookie with the result of an action, for the page that is shown next
NOTICE_SECONDS = 30
NOTICE_MAX = 1_000  # characters
FORM_BYTES = 262_144  # of a form; the longest has a v3 request

log = structlog.get_logger()


def create(service: RunningService, settings: config.AdminSettings, clock: Clock) -> web.Application:
    """Build the application around the running service, in its event loop."""
    context = AdminContext(service, clock)
    guarded = guard.Guard(context, settings.host)
    app = web.Application(middlewares=[guarded.middleware], client_max_size=FORM_BYTES)

    async def refuse(request: web.Request) -> web.StreamResponse:
        return await guarded.respond(request, early_refusals.refuse)

    app[early_refusals.REFUSED] = refuse
    operator_endpoints.add_health(app)
    operator_endpoints.add_monitoring(app, service)
    audit = auditing.AuditLog(context, guarded)
    sign_in.SignIn(guarded, audit).add_to(app)
    app.router.add_get("/static/{name}", _file)
    app.router.add_get("/openapi.json", _openapi)
    for page in pages.PAGES:
        for path in page.paths:
            app.router.add_get(path, _page_handler(page, context))
        app.router.add_get(f"/{page.name}.json", _json_handler(page, context))
        if page.posts:
            app.router.add_post(page.url, _page_handler(page, context))
            app.router.add_post(f"/{page.name}.json", _json_handler(page, context))
        if page.csv is not None:
            app.router.add_get(f"/{page.name}.csv", _csv_handler(page.name, page.csv, context))
    for action in pages.ACTIONS:
        app.router.add_post(action.path, _action_handler(action, context, audit))
    for document in pages.DOCUMENTS:
        app.router.add_get(document.path, _document_handler(document, context))
    return app


def _page_handler(page: AdminPage, context: AdminContext) -> Handler:
    async def show(request: web.Request) -> web.Response:
        data = await page.data(context, await _parameters(request))
        viewer = rendering.Viewer(request[guard.ROLE], request.get(guard.CSRF, ""))
        if (held := request.headers.get(HELD)) is not None:
            return await _changes(page, data, set(held.split()), viewer)
        notice = _decoded(request.cookies.get(NOTICE, ""))
        # In a thread: 200 requests with long targets take 50 ms, in which no v3 client would get a response.
        text = await asyncio.to_thread(rendering.page, page, pages.PAGES, data, viewer, notice=notice)
        response = web.Response(text=text, content_type="text/html")
        if notice:
            sign_in.set_cookie(response, NOTICE, "", 0)
        return response

    return show


async def _changes(page: AdminPage, data: PageData, held: set[str], viewer: rendering.Viewer) -> web.Response:
    """Return the pieces of a page that have changed, for its script."""
    pieces = await asyncio.to_thread(rendering.changes, page, data, held, viewer)
    if not pieces:
        return web.Response(status=204)
    return web.Response(body=msgspec.json.encode(pieces), content_type="application/json")


def _json_handler(page: AdminPage, context: AdminContext) -> Handler:
    async def show(request: web.Request) -> web.Response:
        data = await page.data(context, await _parameters(request))
        return web.Response(body=msgspec.json.encode(data), content_type="application/json")

    return show


def _document_handler(document: AdminDocument, context: AdminContext) -> Handler:
    async def show(_: web.Request) -> web.Response:
        rendered = await document.render(context)
        # Its script runs without the session and the origin of this interface.
        policy = {"Content-Security-Policy": f"{rendered.policy}; frame-ancestors 'none'; sandbox allow-scripts"}
        return web.Response(text=rendered.html, content_type="text/html", headers=policy)

    return show


async def _parameters(request: web.Request) -> Query:
    """Return the parameters of a page: those of the URL, or the fields of a form."""
    return await requests.form(request) if request.method == "POST" else request.query


def _csv_handler(
    name: str, chunks: Callable[[AdminContext, Query], Awaitable[list[bytes]]], context: AdminContext
) -> Handler:
    async def download(request: web.Request) -> web.Response:
        headers = {hdrs.CONTENT_DISPOSITION: f'attachment; filename="{name}.csv"'}
        body = _in_turns(await chunks(context, request.query))
        return web.Response(body=body, content_type="text/csv", charset="utf-8", headers=headers)

    return download


async def _in_turns(chunks: list[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a body; other tasks run in between."""
    for chunk in chunks:
        yield chunk
        await asyncio.sleep(0)


def _action_handler(action: AdminAction, context: AdminContext, audit: auditing.AuditLog) -> Handler:
    """POST: a form's result is shown by its page, after a redirect, so that reloading does not repeat the action."""
    page = next(page for page in pages.PAGES if page.name == action.page)
    # Of all forms of the page: their fields may stand in one form, whose buttons name the actions.
    names = [each.name for other in pages.ACTIONS if other.page == action.page for each in other.parameters]
    accepted = {"csrf", *names}

    async def run(request: web.Request) -> web.Response:
        form = await _parameters(request)
        log.info("admin action requested", action=action.path, address=audit.address(request))
        result = await recorded(request, form)
        if not requests.wants_page(request):
            return web.Response(body=msgspec.json.encode(result), content_type="application/json")
        if result.shown:  # not in a cookie, which browsers write to the disk
            return await _shown_once(page, context, result, request)
        response = web.Response(status=303, headers={hdrs.LOCATION: page.url})
        sign_in.set_cookie(response, NOTICE, result.message[:NOTICE_MAX].encode().hex(), NOTICE_SECONDS)
        return response

    async def recorded(request: web.Request, form: Query) -> ActionResult:
        fields = {each.name: form.get(each.name, "") for each in action.parameters}
        outcome = "failed: an internal error"
        try:
            # A misspelled name would clear every cache, or take the last day of a key away.
            if request.query or not form.keys() <= accepted:
                only = " and ".join(fields) or "none"
                raise errors.BadRequest(f"nothing is changed: the fields of {action.path} are {only}, sent in the body")
            result = await action.run(context, form)
            outcome = result.message
        except errors.BridgeError as error:
            outcome = f"refused: {error.message}"
            raise
        finally:
            await audit.record(request, auditing.who(request), outcome, fields)
        return result

    return run


async def _shown_once(
    page: AdminPage, context: AdminContext, result: ActionResult, request: web.Request
) -> web.Response:
    viewer, data = rendering.Viewer(request[guard.ROLE], request.get(guard.CSRF, "")), await page.data(context, {})
    values = {"notice": result.message, "shown": result.shown}
    text = await asyncio.to_thread(rendering.page, page, pages.PAGES, data, viewer, **values)
    return web.Response(text=text, content_type="text/html")


def _decoded(cookie: str) -> str:
    try:
        return bytes.fromhex(cookie).decode()[:NOTICE_MAX]
    except ValueError:
        return ""


async def _openapi(_: web.Request) -> web.Response:
    return web.Response(body=_openapi_body(), content_type="application/json", charset="utf-8")


@functools.cache
def _openapi_body() -> bytes:
    return msgspec.json.encode(openapi.document())  # 10 ms, in which no v3 client gets a response


async def _file(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in FILES:
        raise web.HTTPNotFound
    return web.Response(body=_content(name), content_type=FILES[name], charset="utf-8")


@functools.cache
def _content(name: str) -> bytes:
    return (STATIC / name).read_bytes()
