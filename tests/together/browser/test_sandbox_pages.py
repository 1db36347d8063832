"""The sandbox's own pages in Chromium: copy buttons, demo users by keyboard, narrow windows, light and dark."""

from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from together.browser.background import Background
from together.browser.console import read_console
from together.browser.contrast import PALE

import nexar_sandbox

PATIENCE = 20
PATHS = ("/", "/account/login", "/admin/journal", "/nothing/here")
CLIPBOARD = ["clipboardReadWrite", "clipboardSanitizedWrite"]


@pytest.fixture(scope="module")
def sandbox(background: Background) -> nexar_sandbox.Sandbox:
    declared = nexar_sandbox.parse_faults("429 count=1") + nexar_sandbox.parse_faults("quota")
    known = (nexar_sandbox.DEFAULT_APPLICATION, nexar_sandbox.DEFAULT_DESIGN_APPLICATION)
    running = background.enter(nexar_sandbox.serve(nexar_sandbox.SandboxSettings(applications=known, faults=declared)))
    entry = running.journal.begin("design")
    entry.operation, entry.fields = "collaboration GET /" + "x" * 60, ("some", "fields")
    running.journal.finish(entry, is_complete=False)
    return running


@pytest.fixture
def window(browser: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """A browser without a session; its size is restored at the end."""
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    blocked = [line["message"] for line in read_console(browser) if "Policy" in line["message"]]
    assert blocked == []


def _copied(browser: webdriver.Chrome) -> str:
    return str(browser.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])"))


def test_copy_buttons_put_credentials_on_the_clipboard(
    window: webdriver.Chrome, sandbox: nexar_sandbox.Sandbox
) -> None:
    window.execute_cdp_cmd("Browser.grantPermissions", {"permissions": CLIPBOARD, "origin": sandbox.url})
    window.get(sandbox.url)
    assert len(window.find_elements(By.CSS_SELECTOR, "button[data-copies]")) == 2 + 1 + 2 * 2 + 2 * 2
    button = window.find_element(By.CSS_SELECTOR, "[aria-label='Copy Client secret of Sandbox application']")
    button.send_keys(Keys.SPACE)
    WebDriverWait(window, PATIENCE).until(lambda page: _copied(page) == nexar_sandbox.DEFAULT_APPLICATION.client_secret)
    assert window.find_element(By.ID, "copied").text == "Copied."


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_in_light_and_dark(
    window: webdriver.Chrome, sandbox: nexar_sandbox.Sandbox, scheme: str
) -> None:
    media_features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", media_features)
    for path in PATHS:
        window.get(sandbox.url + path)
        window.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
        assert window.execute_script(PALE) == [], path
