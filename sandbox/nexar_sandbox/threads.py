"""Runs the sandbox in a thread of its own, for programs and tests that have no event loop."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from nexar_sandbox import app
from nexar_sandbox import settings as sandbox_settings
from nexar_sandbox.catalog import store
from nexar_sandbox.identity import keys


@contextmanager
def running(
    settings: sandbox_settings.SandboxSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    catalog: store.Catalog | None = None,
    key: keys.SigningKey | None = None,
) -> Iterator[app.Sandbox]:
    """Yield the sandbox, which serves until the block ends. Arguments and errors are those of `serve`."""
    started: Future[app.Sandbox] = Future()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with app.serve(settings, host, port, catalog=catalog, key=key) as sandbox:
            started.set_result(sandbox)
            await stop.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(serve())
            except BaseException as error:
                if started.done():
                    raise
                started.set_exception(error)

    thread = threading.Thread(target=run, name="nexar-sandbox", daemon=True)
    thread.start()
    sandbox = started.result()
    try:
        yield sandbox
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
