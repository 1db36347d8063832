"""The admin interface in Chromium: signing in, live updates, keyboard, narrow windows, and text of strangers."""

import json
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from support import running_admin, running_proxy
from together.browser.background import Background
from together.browser.conftest import PATIENCE
from together.browser.console import read_console
from together.browser.contrast import PALE

from proxy.web.admin import guard, pages
from proxy.web.admin.page import AdminPage

# Ends text, an attribute and a script; a mark that reverses text, a letter of another direction, control characters.
HOSTILE = (
    """</td></dd></pre></script><script>ruined=1</script><img src=x onerror="ruined=1">'"&amp;"""
    "\u202eabc\u05d0\x07\x1b[31m"
)
# Counts the requests of the live script.
COUNTED = "window.polls = 0; const usual = fetch; window.fetch = (...given) => { polls += 1; return usual(...given) }"
SIZES = ((1280, 900), (390, 844))


def test_a_wrong_token_is_refused_and_the_right_one_opens_the_page_that_was_wanted(
    browser: webdriver.Chrome, admin: running_admin.AdminClient
) -> None:
    browser.get(f"{admin.url}/")
    assert browser.title == "Sign in · v3bridge"
    field = browser.switch_to.active_element
    assert field.accessible_name == "Admin token"
    field.send_keys("a wrong token", Keys.ENTER)
    assert browser.find_element(By.ID, "mistake").text == "this is not an admin token"
    browser.find_element(By.ID, "token").send_keys(running_admin.TOKEN, Keys.ENTER)
    WebDriverWait(browser, PATIENCE).until(lambda page: page.title == "Overview · v3bridge")
    cookie = browser.get_cookie(guard.COOKIE)
    assert cookie is not None
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
    browser.find_element(By.CSS_SELECTOR, ".sign-out button").click()
    WebDriverWait(browser, PATIENCE).until(lambda page: page.title == "Sign in · v3bridge")
    assert browser.get_cookie(guard.COOKIE) is None


def test_live_regions_change_without_reloading(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient
) -> None:
    admin_window.get(admin.url)
    admin_window.execute_script("window.same = true")
    state = admin_window.find_element(By.ID, "live")
    WebDriverWait(admin_window, PATIENCE).until(lambda _: state.text == "Live")
    machines = admin_window.find_element(By.ID, "machines")  # with the time that each worker has been running
    before = machines.text
    WebDriverWait(admin_window, PATIENCE).until(lambda _: machines.text != before)
    assert admin_window.execute_script("return window.same")


def test_hidden_page_asks_for_nothing_and_a_shown_one_at_once(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient
) -> None:
    admin_window.get(admin.url)
    admin_window.execute_script(
        f"{COUNTED}; window.away = true; Object.defineProperty(document, 'hidden', {{get: () => away}});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    later = "setTimeout(arguments[0], 2500)"  # longer than between two polls
    admin_window.execute_async_script(later)
    assert admin_window.execute_script("return polls") == 0
    admin_window.execute_script("away = false; document.dispatchEvent(new Event('visibilitychange'))")
    assert admin_window.execute_script("return polls") == 1


def test_page_tells_when_the_session_has_ended(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient
) -> None:
    admin_window.get(admin.url)
    admin_window.delete_all_cookies()
    WebDriverWait(admin_window, PATIENCE).until(
        lambda page: page.find_element(By.ID, "live").text == "Signed out: reload the page"
    )


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.name))
def test_page_fits_the_window_and_is_reached_by_keyboard(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, page: AdminPage
) -> None:
    for width, height in SIZES:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        admin_window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        admin_window.get(admin.url + page.url)
        assert admin_window.execute_script("return document.documentElement.scrollWidth") <= width
        current = admin_window.find_element(By.CSS_SELECTOR, "nav [aria-current]").rect
        assert current["x"] >= 0
        assert current["x"] + current["width"] <= width
    admin_window.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    skip = admin_window.switch_to.active_element
    assert skip.text == "Skip to the content"
    skip.send_keys(Keys.ENTER)
    assert admin_window.switch_to.active_element.get_attribute("id") == "main"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_texts_have_contrast_and_the_console_stays_empty(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, mode: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": mode}]
    admin_window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    for path in (*(page.url for page in pages.PAGES), "/nothing"):
        admin_window.get(admin.url + path)
        assert admin_window.execute_script(PALE) == [], path
    messages = [line["message"] for line in read_console(admin_window) if "/nothing" not in line["message"]]
    assert messages == []


def test_link_from_another_site_opens_the_page_for_somebody_who_is_signed_in(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient
) -> None:
    admin_window.get(f"data:text/html,<a href='{admin.url}/overview.json'>a</a><a id=page href='{admin.url}/'>b</a>")
    admin_window.find_element(By.ID, "page").click()
    WebDriverWait(admin_window, PATIENCE).until(lambda page: page.title == "Overview · v3bridge")
    admin_window.delete_all_cookies()
    admin_window.get(f"data:text/html,<a id=page href='{admin.url}/'>b</a>")
    admin_window.find_element(By.ID, "page").click()
    WebDriverWait(admin_window, PATIENCE).until(lambda page: page.title == "Sign in · v3bridge")


def test_text_of_strangers_is_shown_as_text_on_every_page(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, background: Background
) -> None:
    async def call() -> None:
        headers = {"User-Agent": HOSTILE.translate({7: None, 27: None}).encode().decode("latin-1")}
        for key, text in ((running_proxy.KEY, HOSTILE), (HOSTILE, "SN74S74N")):
            queries = quote('[{"mpn":%s,"reference":%s}]' % ((json.dumps(text),) * 2))
            await admin.proxy.get(f"/v3/parts/match?apikey={quote(key)}&queries={queries}", headers=headers)
        await admin.proxy.get(f"/v3/{quote(HOSTILE)}?{quote(HOSTILE)}={quote(HOSTILE)}", headers=headers)

    background.run(call())
    for page in pages.PAGES:
        admin_window.get(admin.url + page.url)
        assert admin_window.execute_script("return typeof ruined") == "undefined", page.name
        assert admin_window.find_elements(By.CSS_SELECTOR, "img, main script") == [], page.name
        text = admin_window.find_element(By.TAG_NAME, "main").get_property("textContent")
        assert not set("\u202e\x07\x1b") & set(str(text)), page.name
