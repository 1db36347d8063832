"""The page `/sheet` of the service: a purchaser drops a parts list, sees what it costs at most, and gets it filled.

Each list is read and filled by a process of its own (page_process.py), which runs the command's code on the store and
with the limits of the service. Its lines of JSON are passed on as they come. Nothing is kept beyond the run: the
browser has the file, and sends it again to be filled.
"""

import asyncio
import os
import pickle
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

import msgspec
from aiohttp import hdrs, web
from msgspec import Meta

import proxy
from proxy import config, errors, metrics
from proxy.gateway import Gateway
from proxy.tools.sheet.columns import KINDS
from proxy.web import messages, pages
from proxy.web.authentication import Authenticator

PATH = "/sheet"
FILE_BYTES = 8_388_608
RUNS_MAX, WAIT_SECONDS = 3, 30.0  # processes of a worker at once; others wait for one of them to end
RUN_SECONDS, STOP_SECONDS = 3600.0, 60.0  # of a run, and after that for what it has in flight
UNKNOWN_KEY = "this API key is not known: check it, or ask those who run the service for yours"
FAILED = "the list takes too much time or memory: split it, or save it as CSV"
HEADERS = {"Content-Type": "application/x-ndjson", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
FOLDER = Path(__file__).parent


class Asked(msgspec.Struct, frozen=True):
    """Parameters of a request: options of the command, and the name of the file. Without a budget nothing is
    fetched."""

    name: str = ""
    columns: str = ""
    read: list[str] = []
    boards: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    budget: Annotated[int, Meta(ge=0, le=config.PARTS_MAX)] | None = None


Task = tuple[config.Config, str, Asked, bytes]  # of a process, with the API key and the file


def mount(routes: messages.Routes, authenticator: Authenticator, gateway: Gateway) -> None:
    """Serve the page."""
    page = SheetPage(authenticator, gateway)
    routes.add(PATH, page.show, *messages.READ)
    routes.add(PATH, page.run, hdrs.METH_POST)


class SheetPage:
    """Handlers of the page."""

    def __init__(self, authenticator: Authenticator, gateway: Gateway) -> None:
        self._authenticator = authenticator
        self._gateway = gateway
        self._bodies = messages.RequestBodies()
        self._places = asyncio.Semaphore(RUNS_MAX)
        template = pages.Template(FOLDER / "sheet.html.j2", (FOLDER / "sheet.js").read_text(encoding="utf-8"))
        self._page, self._policy = template.render(kinds=KINDS, file_bytes=FILE_BYTES), template.policy

    async def show(self, _: web.BaseRequest) -> web.Response:
        headers = {hdrs.CONTENT_SECURITY_POLICY: self._policy, hdrs.CACHE_CONTROL: "no-cache"}
        return web.Response(text=self._page, content_type="text/html", headers=headers)

    async def run(self, request: messages.Request) -> web.StreamResponse:
        """Read or fill the file in the body. Its API key is the header `token`, percent-encoded."""
        apikey, query = unquote(request.headers.get("token", "")), request.rel_url.query
        try:
            client = self._authenticator.client(request, apikey)
        except errors.ForbiddenKey as error:
            raise errors.ForbiddenKey(UNKNOWN_KEY) from error
        except errors.MissingKey as error:
            raise errors.MissingKey("enter your API key: it pays for the parts") from error
        self._authenticator.admit(request, client, is_v3=False)
        try:
            asked = msgspec.convert({**query, "read": query.getall("read", [])}, Asked, strict=False)
        except msgspec.ValidationError as error:
            name, limits = ("budget", ", 0 or more") if "$.budget" in str(error) else ("boards", " from 1 to 1,000,000")
            raise errors.BadRequest(f"{name}: write a whole number{limits}") from error
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            raise errors.TooManyConnections("other lists are being filled; try again soon", retry_after=60) from None
        try:
            data = await self._bodies.read(request, FILE_BYTES)
            return await _passed_on(request, (self._gateway.settings, apikey, asked, data))
        finally:
            self._places.release()


async def _passed_on(request: web.BaseRequest, task: Task) -> web.StreamResponse:
    """Run the process of a list, in a folder for its files, and pass on its lines. A client that leaves stops it; what
    it has in flight is paid for, so it is waited for."""
    response = web.StreamResponse(headers=HEADERS)
    await response.prepare(request)
    environment = os.environ | {"PYTHONPATH": str(Path(proxy.__file__).parents[1])}
    environment.pop(metrics.FOLDER, None)  # workers are measured, and not what they start
    with suppress(ConnectionError), tempfile.TemporaryDirectory(prefix="v3bridge-") as folder:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "proxy.tools.sheet.page_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=folder,
            env=environment,
        )
        kill = asyncio.get_running_loop().call_later(RUN_SECONDS, process.terminate)
        try:
            if process.stdin is not None:
                with suppress(ConnectionError):  # it has ended already: its exit code says so
                    process.stdin.write(pickle.dumps(task))
                    await process.stdin.drain()
                process.stdin.close()
            while piece := await process.stdout.read(2**16) if process.stdout else b"":
                await response.write(piece)
            if await process.wait():
                await response.write(b"\n" + msgspec.json.encode({"error": FAILED}) + b"\n")
        finally:
            kill.cancel()
            if process.returncode is None:  # of one that has ended the signal would take the exit code away
                process.terminate()
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
    return response
