"""Overview, Requests and Upstream in Chromium: live rows, charts, filters, without scripts, light and dark."""

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.ui import WebDriverWait
from support import running_admin, running_proxy
from together.browser.background import Background
from together.browser.conftest import PATIENCE, sign_in
from together.browser.contrast import PALE

from proxy.telemetry import history
from proxy.web.admin.page import AdminPage
from proxy.web.admin.pages import overview, requests, upstream

PAGES = (overview.PAGE, requests.PAGE, upstream.PAGE)
Send = Callable[..., None]


@pytest.fixture
def send(background: Background, admin: running_admin.AdminClient) -> Send:
    """`send(mpn, …)` requests these part numbers, one after the other."""

    async def call(numbers: tuple[str, ...], key: str) -> None:
        for mpn in numbers:
            queries = quote(json.dumps([{"mpn": mpn}]))
            await admin.proxy.get(f"/v3/parts/match?apikey={key}&queries={queries}")

    def sending(*numbers: str, key: str = running_proxy.KEY) -> None:
        background.run(call(numbers, key))

    return sending


def rows(window: webdriver.Chrome, region: str) -> list[str]:
    """Texts of the rows of a table's body."""
    return [row.text for row in window.find_elements(By.CSS_SELECTOR, f"#{region} tr")]


def test_requests_arrive_without_reloading(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, send: Send
) -> None:
    send("SN74S74N")
    admin_window.get(f"{admin.url}/requests")
    admin_window.execute_script("window.same = true")
    first = admin_window.find_element(By.CSS_SELECTOR, "#requests summary")
    assert '{"mpn": "SN74S74N"}' in first.text
    first.click()
    assert "Request " in admin_window.find_element(By.CSS_SELECTOR, "#requests details[open] p").text
    send("NEVER-SEEN-BEFORE")
    WebDriverWait(admin_window, PATIENCE).until(lambda window: "NEVER-SEEN-BEFORE" in rows(window, "requests")[0])
    # What was opened stays open, one row further down.
    (opened,) = admin_window.find_elements(By.CSS_SELECTOR, "#requests details[open]")
    assert "SN74S74N" in opened.text
    assert admin_window.execute_script("return window.same")


def test_operations_arrive_without_reloading(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, send: Send
) -> None:
    admin_window.get(f"{admin.url}/upstream")
    before = len(rows(admin_window, "recent"))
    send("ANOTHER-NEW-PART")
    WebDriverWait(admin_window, PATIENCE).until(lambda window: len(rows(window, "recent")) > before)


def test_update_keeps_focus_selection_and_scroll_positions(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, send: Send
) -> None:
    send(*(f"{'LONG' * 20}-{number}" for number in range(40)))
    admin_window.get(f"{admin.url}/requests")
    # In a row in the middle of the page: a text is selected, its control has the focus, its table is scrolled.
    admin_window.execute_script(
        """
        document.querySelector(".scroll table").style.width = "3000px";
        document.querySelector(".scroll").scrollLeft = 40;
        window.row = document.querySelectorAll("#requests tr")[20];
        row.scrollIntoView({block: "center"});
        row.querySelector("summary").focus({preventScroll: true});
        document.getSelection().selectAllChildren(row.querySelector("code"));
        """
    )
    kept = """return [
        document.activeElement === row.querySelector("summary"),
        document.getSelection().toString(),
        document.querySelector(".scroll").scrollLeft,
        Math.round(row.getBoundingClientRect().top),
    ]"""
    before = admin_window.execute_script(kept)
    assert before[0]
    assert "LONG-19" in before[1]
    assert before[2] == 40
    send("ARRIVED-MEANWHILE")
    WebDriverWait(admin_window, PATIENCE).until(lambda window: "ARRIVED-MEANWHILE" in rows(window, "requests")[0])
    assert admin_window.execute_script(kept) == before


def test_selected_text_changes_when_the_selection_has_ended(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, send: Send
) -> None:
    admin_window.get(f"{admin.url}/requests")
    held = admin_window.find_element(By.CSS_SELECTOR, "#held p")
    before = held.text
    admin_window.execute_script("document.getSelection().selectAllChildren(arguments[0])", held)
    send("WHILE-TEXT-IS-SELECTED")
    WebDriverWait(admin_window, PATIENCE).until(lambda window: "WHILE-TEXT-IS-SELECTED" in rows(window, "requests")[0])
    assert admin_window.execute_script("return document.getSelection().toString()").strip() == before
    admin_window.execute_script("document.getSelection().removeAllRanges()")
    WebDriverWait(admin_window, PATIENCE).until(lambda _: held.text != before)


def test_overview_shows_the_requests_of_the_last_minute(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, send: Send
) -> None:
    admin_window.get(admin.url)

    def per_second() -> float:
        return float(admin_window.find_element(By.CSS_SELECTOR, ".figures dd").text.replace(",", ""))

    before = admin_window.find_element(By.CSS_SELECTOR, ".figures dd.quiet").text
    send(*["SN74S74N"] * 60)
    WebDriverWait(admin_window, PATIENCE + history.SAMPLE_SECONDS).until(
        lambda window: window.find_element(By.CSS_SELECTOR, ".figures dd.quiet").text != before
    )
    assert per_second() > 0
    chart = admin_window.find_element(By.CSS_SELECTOR, "svg.spark")
    assert chart.accessible_name == "Requests per second in the last hour"
    points = chart.find_element(By.TAG_NAME, "polyline").get_attribute("points")
    assert points is not None
    assert len(points.split()) > 1


def test_requests_are_filtered_by_keyboard_and_without_scripts(
    browser: webdriver.Chrome, admin: running_admin.AdminClient, send: Send
) -> None:
    send("SN74S74N")
    send("SN74S74N", key="WRONG_KEY")
    sign_in(browser, admin.url)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"{admin.url}/requests")
        Select(browser.find_element(By.ID, "status")).select_by_visible_text("403")
        browser.find_element(By.CSS_SELECTOR, ".filter button").send_keys(Keys.ENTER)
        WebDriverWait(browser, PATIENCE).until(lambda window: "status=403" in window.current_url)
        shown = rows(browser, "requests")
        assert shown
        assert all("403" in row for row in shown)
        assert Select(browser.find_element(By.ID, "status")).first_selected_option.text == "403"
        browser.find_element(By.LINK_TEXT, "Show all").click()
        assert len(rows(browser, "requests")) > len(shown)
        browser.get(admin.url)
        assert browser.find_element(By.CSS_SELECTOR, ".figures dd").text
        assert not browser.find_element(By.ID, "live").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        browser.delete_all_cookies()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_text_has_enough_contrast(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, send: Send, page: AdminPage, scheme: str
) -> None:
    send("SN74S74N", "no such part")
    send("SN74S74N", key="WRONG_KEY")
    media = {"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]}
    admin_window.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    admin_window.get(admin.url + page.url)
    assert admin_window.execute_script(PALE) == []


def test_tables_scroll_by_themselves_on_a_phone(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, send: Send
) -> None:
    send("SN74S74N" * 40)
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    admin_window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    for page in PAGES:
        admin_window.get(admin.url + page.url)
        assert admin_window.execute_script("return document.documentElement.scrollWidth") <= 390
        for table in admin_window.find_elements(By.CSS_SELECTOR, ".scroll"):
            assert table.get_attribute("tabindex") == "0"
            assert table.accessible_name
