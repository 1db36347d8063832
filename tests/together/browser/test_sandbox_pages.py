"""The sandbox's own pages in Chromium: copy buttons by keyboard, narrow windows, light and dark."""

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from together.browser.background import Background, read_console
from together.browser.layout import check_readable

import nexar_sandbox

PATIENCE = 20
PATHS = ("/", "/account/login", "/admin/journal", "/nothing/here")
CLIPBOARD = ["clipboardReadWrite", "clipboardSanitizedWrite"]
COPIED = "navigator.clipboard.readText().then(arguments[0], arguments[0])"


@pytest.fixture(scope="module")
def sandbox(background: Background) -> nexar_sandbox.Sandbox:
    declared = nexar_sandbox.parse_faults("429 count=1") + nexar_sandbox.parse_faults("quota")
    known = (nexar_sandbox.DEFAULT_APPLICATION, nexar_sandbox.DEFAULT_DESIGN_APPLICATION)
    running = background.enter(nexar_sandbox.serve(nexar_sandbox.SandboxSettings(applications=known, faults=declared)))
    entry = running.journal.begin("design")
    entry.operation, entry.fields = "collaboration GET /" + "x" * 60, ("some", "fields")
    running.journal.finish(entry, is_complete=False)
    return running


def test_copy_buttons_fill_the_clipboard(browser: webdriver.Chrome, sandbox: nexar_sandbox.Sandbox) -> None:
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": CLIPBOARD, "origin": sandbox.url})
    browser.get(sandbox.url)
    assert len(browser.find_elements(By.CSS_SELECTOR, "button[data-copies]")) == 2 + 1 + 2 * 2 + 2 * 2
    browser.find_element(By.CSS_SELECTOR, "[aria-label='Copy Client secret of Sandbox application']").send_keys(
        Keys.SPACE
    )
    secret = nexar_sandbox.DEFAULT_APPLICATION.client_secret
    WebDriverWait(browser, PATIENCE, 0.05).until(lambda page: page.execute_async_script(COPIED) == secret)
    assert browser.find_element(By.ID, "copied").text == "Copied."


def test_pages_fit_their_window_with_contrast(browser: webdriver.Chrome, sandbox: nexar_sandbox.Sandbox) -> None:
    for path in PATHS:
        browser.get(sandbox.url + path)
        check_readable(browser, [1180])
    assert [line["message"] for line in read_console(browser) if "Policy" in line["message"]] == []
