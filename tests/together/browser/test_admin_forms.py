"""Forms of the admin interface in Chromium: by keyboard alone, on a phone, and in the dark."""

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from support import running_admin
from together.browser.background import Background
from together.browser.conftest import PATIENCE
from together.browser.contrast import PALE

from proxy.stores.protocols import ExhaustedQuota
from proxy.web.admin import pages
from proxy.web.admin.page import AdminPage

TARGET = '/v3/parts/match?queries=[{"mpn":"SN74S74N"}]'
HOSTILE = """</textarea><script>ruined=1</script><img src=x onerror="ruined=1">"""


@pytest.fixture
def dark_phone(admin_window: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """A narrow window with the dark color scheme."""
    scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    admin_window.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
    admin_window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield admin_window
    admin_window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    admin_window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def tab_to(window: webdriver.Chrome, name: str) -> None:
    """Press the tabulator until an element with this name has the focus."""
    for _ in range(60):
        window.switch_to.active_element.send_keys(Keys.TAB)
        if window.switch_to.active_element.accessible_name == name:
            return
    pytest.fail(f"{name} is not reached by keyboard")


def wait_for_notice(window: webdriver.Chrome, text: str) -> None:
    """Wait until the page shows the result of an action, which is another page than that of its form."""
    WebDriverWait(window, PATIENCE, ignored_exceptions=[StaleElementReferenceException]).until(
        lambda page: text in page.find_element(By.CSS_SELECTOR, ".notice[role=status]").text
    )


def test_explain_is_used_by_keyboard(admin_window: webdriver.Chrome, admin: running_admin.AdminClient) -> None:
    admin_window.get(f"{admin.url}/explain")
    tab_to(admin_window, "Request")
    admin_window.switch_to.active_element.send_keys(f"{TARGET}&apikey=EXAMPLE_KEY")
    tab_to(admin_window, "Program for the Nexar API")
    admin_window.switch_to.active_element.send_keys("python")
    tab_to(admin_window, "Explain")
    admin_window.switch_to.active_element.send_keys(Keys.ENTER)
    WebDriverWait(admin_window, PATIENCE).until(lambda page: page.find_elements(By.TAG_NAME, "article"))
    assert "EXAMPLE_KEY" not in admin_window.page_source
    assert "EXAMPLE_KEY" not in admin_window.current_url
    summary = admin_window.find_element(By.CSS_SELECTOR, "article summary[id], #operation-1-1 > summary")
    document = admin_window.find_element(By.CSS_SELECTOR, "#operation-1-1 pre")
    assert not document.is_displayed()
    summary.send_keys(Keys.ENTER)
    assert document.is_displayed()
    assert "query" in document.text
    assert "Program in python" in admin_window.find_element(By.TAG_NAME, "main").text


def test_hostile_request_is_shown_as_text(admin_window: webdriver.Chrome, admin: running_admin.AdminClient) -> None:
    queries = quote(json.dumps([{"mpn": HOSTILE, "reference": HOSTILE}]))
    for text in (HOSTILE, f"/v3/parts/match?queries={queries}&{quote(HOSTILE)}=1", f"/v3/{quote(HOSTILE)}?x"):
        admin_window.get(f"{admin.url}/explain?request={quote(text)}&language=python")
        assert admin_window.execute_script("return typeof ruined") == "undefined"
        assert admin_window.find_elements(By.CSS_SELECTOR, "img, main script") == []


def test_cost_of_clearing_is_shown_before_the_button(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient
) -> None:
    admin_window.get(f"{admin.url}/cache")
    summary = admin_window.find_element(By.CSS_SELECTOR, "#clear-all > summary")
    button = admin_window.find_element(By.CSS_SELECTOR, "#clear-all button")
    assert not button.is_displayed()
    summary.send_keys(Keys.SPACE)
    assert "cost" in admin_window.find_element(By.CSS_SELECTOR, "#clear-all form").text
    tab_to(admin_window, "Clear everything")
    admin_window.switch_to.active_element.send_keys(Keys.ENTER)
    wait_for_notice(admin_window, "is cleared")


def test_exhausted_quota_is_reopened_on_a_dark_phone(
    dark_phone: webdriver.Chrome, admin: running_admin.AdminClient, background: Background
) -> None:
    store = admin.service.gateway.store
    background.run(store.mark_exhausted(ExhaustedQuota("demo", 9e9, "spent")))
    dark_phone.get(f"{admin.url}/quota")
    assert "refused this application" in dark_phone.find_element(By.CSS_SELECTOR, "[role=alert]").text
    tab_to(dark_phone, "Reopen demo")
    dark_phone.switch_to.active_element.send_keys(Keys.ENTER)
    wait_for_notice(dark_phone, "no longer exhausted")
    assert dark_phone.find_elements(By.CSS_SELECTOR, "[role=alert]") == []


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.name))
def test_page_has_contrast_in_the_dark(
    dark_phone: webdriver.Chrome, admin: running_admin.AdminClient, page: AdminPage
) -> None:
    more = f"?request={quote(TARGET)}" if page.name == "explain" else ""
    dark_phone.get(f"{admin.url}{page.url}{more}")
    assert dark_phone.execute_script(PALE) == []
    assert dark_phone.execute_script("return document.documentElement.scrollWidth") <= 390
