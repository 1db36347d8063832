"""The login and consent pages in a browser, by keyboard: their policy allows the redirect to the application."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import yarl
from aiohttp import web
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from support import served
from together.browser.background import Background
from together.browser.console import read_console

import nexar_sandbox

PATIENCE = 20
CHALLENGE = "x" * 43


@pytest.fixture(scope="module")
def application_url(background: Background) -> str:
    """An application of another origin, to which the browser is sent back."""
    return background.enter(_application())


@asynccontextmanager
async def _application() -> AsyncIterator[str]:
    async def login(request: web.Request) -> web.Response:
        return web.Response(text=f"<title>back</title>{len(request.query['code'])}", content_type="text/html")

    app = web.Application()
    app.router.add_get("/login", login)
    async with served.on_loopback(app) as url:
        yield f"{url}/login"


@pytest.fixture(scope="module")
def request_url(background: Background, application_url: str) -> str:
    """An authorization request of it."""
    application = dataclasses.replace(nexar_sandbox.DEFAULT_DESIGN_APPLICATION, redirect_uris=(application_url,))
    sandbox = background.enter(nexar_sandbox.serve(nexar_sandbox.SandboxSettings(applications=(application,))))
    query = {
        "response_type": "code",
        "client_id": application.client_id,
        "redirect_uri": application_url,
        "scope": "openid profile design.domain",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }
    return str(yarl.URL(sandbox.url).with_path("/connect/authorize").with_query(query))


def _until(browser: webdriver.Chrome, title: str) -> None:
    WebDriverWait(browser, PATIENCE).until(lambda found: title in found.title, f"the page {title!r} does not come")


def _types(browser: webdriver.Chrome, *keys: str) -> None:
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def _press_tab_until(browser: webdriver.Chrome, text: str) -> None:
    """Press Tab until the element with the focus has this text."""
    for _ in range(10):
        if browser.switch_to.active_element.text == text:
            return
        _types(browser, Keys.TAB)
    raise AssertionError(f"no key leads to {text!r}")


def test_a_sign_in_by_keyboard_returns_to_the_application(
    browser: webdriver.Chrome, request_url: str, application_url: str
) -> None:
    browser.get(request_url)
    _until(browser, "Sign in")
    _types(browser, nexar_sandbox.DEFAULT_USERS[0].email, Keys.TAB, "a guess", Keys.ENTER)
    WebDriverWait(browser, PATIENCE).until(lambda page: page.find_elements("css selector", "[role=alert]"))
    # The address is kept and the password has the focus.
    _types(browser, nexar_sandbox.DEFAULT_PASSWORD, Keys.ENTER)
    _until(browser, "Allow Sandbox design application?")
    assert browser.find_element("css selector", ".card").value_of_css_property("border-top-style") == "solid"
    _press_tab_until(browser, "Allow")
    _types(browser, Keys.ENTER)
    _until(browser, "back")
    assert browser.current_url.startswith(application_url + "?code=")
    browser.get(request_url)  # nobody is asked again
    _until(browser, "back")
    assert [line["message"] for line in read_console(browser) if "Content Security Policy" in line["message"]] == []
