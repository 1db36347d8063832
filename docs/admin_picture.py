"""Take the picture of the admin interface for the documentation: `python -m docs.admin_picture`.

Serves requests of an hour from the embedded sandbox, with a clock that runs ahead between them, and opens the page
Overview in Chromium. Needs what `make test` installs, chromium and chromedriver.
"""

import asyncio
import json
import math
import random
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from urllib.parse import quote

import aiohttp
import msgspec
from selenium.webdriver.common.by import By
from yarl import URL

from docs import screenshots
from proxy import config
from proxy.config import loader
from proxy.kit import clock, shipped
from proxy.sandbox import app as sandbox
from proxy.sandbox import settings as sandbox_settings
from proxy.telemetry import history, log
from proxy.web import app, server
from proxy.web.admin import listener
from proxy.web.service import SERVICE

TOKEN = "a-token-for-the-picture"
MINUTES = 60
NUMBERS = ("SN74S74N", "1N4007", "LM358N", "NE555P", "2N3904", "LM317T", "ATMEGA328P-PU", "NO-SUCH-PART")
SIZE = (1180, 900)


class _LeadingClock(clock.SystemClock):
    """Clock that can be ahead of the time, so that an hour of requests takes a minute; durations are real."""

    def __init__(self) -> None:
        self.lead = -MINUTES * 60.0

    def now(self) -> float:
        return super().now() + self.lead


def _settings(upstream: sandbox.Sandbox) -> config.Config:
    loaded = loader.load(shipped.path("config.yaml"), {})
    application = msgspec.structs.replace(
        loaded.applications["demo"],
        client_id=config.ClientId(upstream.default_application.client_id),
        client_secret=config.Secret(upstream.default_application.client_secret),
        parts=20_000,
    )
    return msgspec.structs.replace(
        loaded,
        applications={"erp": application},
        store=config.StoreUrl("memory:"),
        cache=config.CacheSettings(seconds=5),  # of real time: some minutes of that of the picture
        upstream=config.UpstreamSettings(graphql_url=upstream.graphql_url, token_url=upstream.token_url),
        admin=config.AdminSettings(port=0, token=config.Secret(TOKEN)),
    )


def _targets(minute: int, rng: random.Random) -> Iterator[str]:
    """Requests of a minute: more in the middle of the hour, a third of them for parts that nobody requested yet."""
    for _ in range(int(8 + 6 * math.sin(minute / MINUTES * math.pi) + rng.random() * 4)):
        suffix = f"-{rng.randrange(10_000)}" if rng.random() < 0.35 else ""
        query = json.dumps([{"mpn": rng.choice(NUMBERS) + suffix, "limit": rng.randrange(1, 5)}])
        yield f"/v3/parts/match?apikey=EXAMPLE_KEY&queries={quote(query)}"


async def _take() -> None:
    log.configure("error", "console", sys.stderr)
    time, rng = _LeadingClock(), random.Random(4)
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(sandbox.serve(sandbox_settings.SandboxSettings()))
        settings = _settings(upstream)
        service = await app.create_app(settings, time)
        url = await stack.enter_async_context(server.running(service, "127.0.0.1", 0))
        assert settings.admin is not False
        pages = listener.create(service[SERVICE], settings.admin, time)
        admin = await stack.enter_async_context(server.running(pages, "127.0.0.1", 0))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        for minute in range(MINUTES):
            for target in _targets(minute, rng):
                async with session.get(URL(url + target, encoded=True)) as response:
                    await response.read()
            for _ in range(int(60 / history.SAMPLE_SECONDS)):
                time.lead += history.SAMPLE_SECONDS
                await service[SERVICE].figures.publish()
        await asyncio.to_thread(_open, admin)


def _open(admin: str) -> None:
    with screenshots.chromium() as browser:
        browser.set_window_size(*SIZE)
        browser.get(f"{admin}/sign-in")
        browser.find_element(By.ID, "token").send_keys(TOKEN)
        browser.find_element(By.CSS_SELECTOR, "button.primary").click()
        screenshots.wait_for(browser, "Machines and workers")
        # A name of this machine says nothing to readers.
        browser.execute_script("document.querySelector('#machines-title + .scroll tbody th').firstChild.data = 'v3-1'")
        screenshots.save(browser, "admin-overview")


if __name__ == "__main__":
    asyncio.run(_take())
