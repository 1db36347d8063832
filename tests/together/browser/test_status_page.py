"""The operators' status page in a browser: on a phone, a laptop and a wide screen, light and dark."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from support import running_admin, running_proxy
from support.running_admin import AdminClient
from together.browser.background import Background, read_console
from together.browser.layout import check_readable, set_width
from together.environment import target

import nexar_sandbox
from proxy import config
from proxy.kit import clock
from proxy.model import Seen
from proxy.store.protocol import CLIENT, FAILURE, UNKNOWN_KEY, Account

NOW = clock.ManualClock().now()  # 14 November 2023
DAY = int(NOW // 86_400)
TRAP = "<script>window.hacked = 1</script><img src=x onerror=hacked()> " + "x" * 150


@pytest.fixture(scope="module")
def admin(background: Background) -> AdminClient:
    """The operators' port of a service with 30 days of use, three keys, many callers and failures."""
    return background.enter(_service())


@asynccontextmanager
async def _service() -> AsyncIterator[AdminClient]:
    names = {"erp": running_proxy.KEY, "shop": "SHOP_KEY", "bom-tool": "BOM_KEY"}
    keys = tuple(config.ApiKeySettings(config.digest(key), name=name, parts="50%") for name, key in names.items())
    async with nexar_sandbox.serve(nexar_sandbox.SandboxSettings()) as sandbox:
        settings = running_proxy.in_front_of(sandbox, application={"apikeys": keys, "parts": 9000})
        async with running_admin.running(settings, clock.ManualClock(), config.AdminSettings(port=0)) as admin:
            await _use(admin)
            yield admin


async def _use(admin: AdminClient) -> None:
    """Write a month of use to the store, and send one request that fails."""
    store, today = admin.gateway.process.store, datetime.fromtimestamp(NOW, UTC).date()
    for charged in admin.gateway.applications.charged.values():
        for past in range(14):
            day = (today - timedelta(past)).isoformat()
            await store.set_usage(Account(charged.id, day), 40 * (past % 5) + 160)
        await store.set_usage(Account(charged.id, "2023-11"), 6800)
    seen = [Seen(CLIENT, DAY, "demo", "erp", "parts/match", f"{TRAP} {n}", TRAP, n, NOW - n * 9000) for n in range(20)]
    seen += [Seen(UNKNOWN_KEY, DAY, "", f"{n:02}ff", "2001:db8::1", TRAP, "", n, NOW - n) for n in range(5)]
    failure = {"request": "lost", "method": "GET", "status": 503, "ms": 1.5, "error": "UpstreamUnreachable"}
    detail = json.dumps(failure | {"message": TRAP, "target": "/v3/parts/match?queries=[{%22mpn%22:%22LM358%22}]"})
    seen += [Seen(FAILURE, DAY, "demo", "shop", "/v3/parts/match", "", detail, 1, NOW - 60)]
    await store.add_seen("1", seen)
    await admin.proxy.get(target({"mpn": "X"}, more="&slice[offers]=x"))
    await admin.seen.write()


def test_page_is_readable_and_runs_nothing_of_clients(browser: Chrome, admin: AdminClient) -> None:
    browser.get(f"{admin.url}/status?explain=lost")
    assert browser.find_element(By.TAG_NAME, "h1").text.endswith("Ready")
    check_readable(browser)
    assert browser.execute_script("return typeof window.hacked") == "undefined"
    assert browser.find_elements(By.CSS_SELECTOR, "script, img, iframe") == []
    assert read_console(browser) == []
    address = browser.find_element(By.XPATH, "//td[.='2001:db8::1']")
    lines = (
        "const text = document.createRange(); text.selectNode(arguments[0].firstChild); return text.getClientRects()"
    )
    assert len(browser.execute_script(lines, address)) == 1


def test_parts_are_bars_of_the_month_with_the_day_on_which_they_end(browser: Chrome, admin: AdminClient) -> None:
    set_width(browser, 1180)
    browser.get(f"{admin.url}/status")
    [card] = browser.find_elements(By.CSS_SELECTOR, "article")
    assert "2,200 left of 9,000" in card.text
    assert "the rest ends on Fri 24 Nov" in card.text
    [chart, *of_keys] = card.find_elements(By.CSS_SELECTOR, "svg")
    assert len(of_keys) == 3
    titles = [each.get_attribute("textContent") for each in chart.find_elements(By.TAG_NAME, "title")]
    assert (len(titles), titles[13], titles[14]) == (30, "Tue 14 Nov: 160 parts", "Wed 15 Nov")
    bars = chart.find_elements(By.CSS_SELECTOR, "rect:not(.room)")
    assert [round(bars[day].size["height"] / bars[9].size["height"], 1) for day in (13, 12, 9, 20)] == [0.5, 0.6, 1, 0]
    erp = next(row for row in card.find_elements(By.TAG_NAME, "tr") if row.text.startswith("erp"))
    assert erp.text.split() == ["erp", "6,800", "0", "225", "used", "up"]


def test_failure_is_explained_where_it_stands(browser: Chrome, admin: AdminClient) -> None:
    set_width(browser, 1180)
    browser.get(f"{admin.url}/status")
    rows = browser.find_elements(By.CSS_SELECTOR, "[aria-labelledby=failures] tbody tr")
    assert [row.text.split()[0] for row in rows] == ["demo/erp", "demo/shop"]
    assert "400 BadRequest slice[offers] must be a range like [0:5], not 'x'" in rows[0].text
    rows[1].find_element(By.LINK_TEXT, "explain").click()
    explained = browser.find_element(By.CSS_SELECTOR, ".explained").text
    assert 'GET /v3/parts/match?queries=[{"mpn":"LM358"}]' in explained
    assert "Costs at most\n3 parts" in explained
    assert 'queries: [{"limit": 3, "mpn": "LM358", "start": 0}]' in explained
    browser.find_element(By.LINK_TEXT, "Close").click()
    assert browser.find_elements(By.CSS_SELECTOR, ".explained") == []
