"""The portal in a browser, by keyboard alone: from the login to an application that works, and to its end."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from itertools import pairwise

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from together.browser.background import Background
from together.browser.console import read_console

import nexar_sandbox

PATIENCE = 20
MOST_TABS = 40


@pytest.fixture(scope="module")
def sandbox(background: Background) -> nexar_sandbox.Sandbox:
    return background.enter(nexar_sandbox.serve(nexar_sandbox.SandboxSettings(token_windows=())))


@pytest.fixture
def portal_browser(browser: webdriver.Chrome, sandbox: nexar_sandbox.Sandbox) -> Iterator[webdriver.Chrome]:
    """The browser, signed in at the portal."""
    browser.delete_all_cookies()
    browser.get(sandbox.portal_url)
    _until(browser, "Sign in")
    _types(browser, nexar_sandbox.DEFAULT_USERS[0].email, Keys.TAB, nexar_sandbox.DEFAULT_PASSWORD, Keys.ENTER)
    _until(browser, "Applications")
    yield browser
    assert [line["message"] for line in read_console(browser) if "Policy" in line["message"]] == []


def _until(browser: webdriver.Chrome, title: str) -> None:
    WebDriverWait(browser, PATIENCE).until(lambda found: title in found.title, f"the page {title!r} does not come")


def _types(browser: webdriver.Chrome, *keys: str) -> None:
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def _label(browser: webdriver.Chrome) -> str:
    """The accessible name of the element with the focus."""
    return browser.switch_to.active_element.accessible_name


def _press_tab_until(browser: webdriver.Chrome, name: str, key: str = Keys.TAB) -> None:
    """Press Tab until the element with the focus has this name. Every element on the way has a visible focus."""
    passed = []
    for _ in range(MOST_TABS):
        if _label(browser) == name:
            style = browser.switch_to.active_element.value_of_css_property("outline-style")
            assert style == "solid", f"nobody sees that {name!r} has the focus"
            return
        passed.append(_label(browser))
        _types(browser, key)
    raise AssertionError(f"no key leads to {name!r}, only to {passed}")


def _token(sandbox: nexar_sandbox.Sandbox, client_id: str, secret: str) -> tuple[int, dict[str, str]]:
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    body = urllib.parse.urlencode(form).encode()
    try:
        with urllib.request.urlopen(sandbox.token_url, body, PATIENCE) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def test_an_application_is_created_used_and_deleted_by_keyboard(
    portal_browser: webdriver.Chrome, sandbox: nexar_sandbox.Sandbox
) -> None:
    browser = portal_browser
    _press_tab_until(browser, "New application")
    _types(browser, Keys.ENTER)
    _until(browser, "New application")
    _press_tab_until(browser, "Create")
    _types(browser, Keys.ENTER)
    WebDriverWait(browser, PATIENCE).until(lambda page: page.find_elements("css selector", "[role=alert]"))
    # What is wrong has the focus already, and says why.
    focused = browser.switch_to.active_element
    assert (_label(browser), focused.get_attribute("aria-invalid")) == ("Name", "true")
    described = browser.find_element("id", focused.get_attribute("aria-describedby") or "")
    assert described.text == "The name is missing."
    _types(browser, "By keyboard")
    _press_tab_until(browser, "Design: projects, boards and bills of materials")
    _types(browser, Keys.SPACE)
    _press_tab_until(browser, "Callback URLs (optional)")
    _types(browser, "http://localhost:3000/login")
    _press_tab_until(browser, "Create")
    _types(browser, Keys.ENTER)
    _until(browser, "By keyboard")

    secret = browser.find_element("id", "client-secret")
    assert not secret.is_displayed()
    _press_tab_until(browser, "Client id")
    # Coming by Tab selects all of it, ready to be copied.
    client_id = browser.execute_script("return window.getSelection().toString()")
    _press_tab_until(browser, "Show the client secret")
    _types(browser, Keys.ENTER)
    WebDriverWait(browser, PATIENCE).until(lambda _: secret.is_displayed())
    shown = secret.get_attribute("value") or ""
    status, answer = _token(sandbox, client_id, shown)
    assert (status, answer["scope"]) == (200, "supply.domain design.domain")

    _press_tab_until(browser, "Delete this application")
    _types(browser, Keys.ENTER)
    _until(browser, "Delete By keyboard?")
    _press_tab_until(browser, "Delete")
    _types(browser, Keys.ENTER)
    _until(browser, "Applications")
    assert browser.find_element("css selector", "[role=status]").text == "By keyboard is deleted."
    assert _token(sandbox, client_id, shown) == (400, {"error": "invalid_client"})


def test_form_fields_have_labels_and_pages_one_top_level_heading(portal_browser: webdriver.Chrome) -> None:
    browser, origin = portal_browser, portal_browser.current_url.rpartition("/portal")[0]
    details = browser.find_element("partial link text", "Show Details").get_attribute("href") or ""
    paths = ["/portal", "/portal/applications/new", "/portal/organization", "/"]
    for address in [*(origin + path for path in paths), details, f"{details}/edit", f"{details}/plan"]:
        browser.get(address)
        assert len(browser.find_elements("css selector", "h1")) == 1, address
        fields = browser.find_elements("css selector", "input:not([type=hidden]), textarea, progress")
        visible = [field for field in fields if field.is_displayed()]
        assert [field.get_attribute("outerHTML") for field in visible if not field.accessible_name] == [], address
        levels = [int(one.tag_name[1]) for one in browser.find_elements("css selector", "h1, h2, h3")]
        assert all(after <= before + 1 for before, after in pairwise(levels)), address


def test_pages_fit_a_narrow_window(portal_browser: webdriver.Chrome) -> None:
    browser = portal_browser
    before = browser.get_window_size()
    details = browser.find_element("partial link text", "Show Details").get_attribute("href") or ""
    addresses = [browser.current_url, f"{browser.current_url}/organization", details, f"{details}/plan"]
    browser.set_window_size(500, 900)  # Chromium's narrowest
    try:
        for address in addresses:
            browser.get(address)
            wide, room = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            assert wide <= room, address
    finally:
        browser.set_window_size(before["width"], before["height"])
