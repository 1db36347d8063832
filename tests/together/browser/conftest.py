"""Fixtures for tests in Debian's Chromium, driven by selenium, on pages of another origin.

The tests block while the browser works, so the servers run in a thread. No request leaves the machine: the browser
resolves no names, and its own background requests are switched off.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from html import escape
from pathlib import Path

import pytest
import yarl
from aiohttp import web
from selenium import webdriver
from support import running_proxy, scripted_upstream, served
from together.browser.background import Background, read_console

import nexar_sandbox

PAGES = Path(__file__).parent / "pages"
PATIENCE = 20  # seconds for one page

SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


@pytest.fixture(scope="session")
def browser(
    needs_program: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[webdriver.Chrome]:
    """One browser for all tests. selenium gets all paths, so that it downloads nothing."""
    options = webdriver.ChromeOptions()
    options.binary_location = needs_program("chromium")
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    service = webdriver.ChromeService(executable_path=needs_program("chromedriver"))
    with _no_proxies_of_this_machine():
        driver = webdriver.Chrome(options, service)
    try:
        driver.set_page_load_timeout(PATIENCE)
        yield driver
    finally:
        driver.quit()


@pytest.fixture(autouse=True)
def _window_of_its_own(browser: webdriver.Chrome) -> Iterator[None]:
    """Clear the browser's log before each test, and what it is made to look like after it."""
    read_console(browser)
    yield
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture(scope="session")
def background() -> Iterator[Background]:
    with Background() as running:
        yield running


@pytest.fixture(scope="session")
def page_url(background: Background) -> Callable[..., str]:
    """The address of a page of this folder, with `{name}` in it filled in, at an origin that is not the proxy's."""
    site = background.enter(_serving_pages())

    def url(name: str, **words: str) -> str:
        return str(site.with_path(f"/{name}").with_query(words))

    return url


@pytest.fixture(scope="session")
def proxy_url(background: Background) -> str:
    return background.enter(_proxy_on_sandbox())


@pytest.fixture(scope="session")
def upstream(background: Background) -> scripted_upstream.ScriptedUpstream:
    return background.enter(scripted_upstream.running())


@pytest.fixture(scope="session")
def scripted_proxy_url(background: Background, upstream: scripted_upstream.ScriptedUpstream) -> str:
    chosen = running_proxy.settings(upstream.graphql_url, upstream.token_url)
    return background.enter(running_proxy.running(chosen)).url


@contextmanager
def _no_proxies_of_this_machine() -> Iterator[None]:
    """selenium reads the environment when it connects; its driver is on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            patch.delenv(name, raising=False)
            patch.delenv(name.upper(), raising=False)
        yield


@asynccontextmanager
async def _proxy_on_sandbox() -> AsyncIterator[str]:
    async with (
        nexar_sandbox.serve(nexar_sandbox.SandboxSettings()) as sandbox,
        running_proxy.running(running_proxy.in_front_of(sandbox)) as client,
    ):
        yield client.url


@asynccontextmanager
async def _serving_pages() -> AsyncIterator[yarl.URL]:
    server = web.Application()
    server.router.add_get("/{name}", _page)
    async with served.on_loopback(server) as url:
        yield yarl.URL(url)


async def _page(request: web.Request) -> web.Response:
    """The page as a server of the user would send it, with URLs escaped for attributes."""
    text = (PAGES / request.match_info["name"]).read_text(encoding="utf-8")
    for word, value in request.query.items():
        text = text.replace(f"{{{word}}}", escape(value))
    return web.Response(text=text, content_type="text/html")
