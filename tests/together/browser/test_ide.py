"""The IDE in Chromium: completion, queries, and design data. All requests go to the sandbox, and no console message."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from selenium import webdriver
from selenium.common import exceptions
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from together.browser.background import Background, read_console

import nexar_sandbox

PATIENCE = 30
# While a page gives way to the next or is drawn anew.
MOVING = (exceptions.StaleElementReferenceException, exceptions.ElementNotInteractableException)
GONE = "does not belong to the document"  # the same, in an error of Chromium that Selenium has no class for
OPERATIONS, RESPONSE, TABS = ".graphiql-query-editor", ".graphiql-response", ".graphiql-tabs"
PANEL = ".ide-panel"
# Variables and headers share a place; one of them is hidden.
SHOWN = ":not(.hidden) > .CodeMirror"
OPERATION = re.compile(r"^(?:query|subscription|mutation) (\w+)", re.MULTILINE)
ACTIVE_TAB = """
const stored = JSON.parse(localStorage.getItem("graphiql:tabState"));
return stored && stored.tabs[stored.activeTabIndex];
"""


class IdeWindow:
    """One IDE window, with empty local storage at the start."""

    def __init__(self, browser: webdriver.Chrome, sandbox: nexar_sandbox.Sandbox) -> None:
        self.browser, self.sandbox = browser, sandbox
        browser.get(sandbox.url)
        browser.delete_all_cookies()
        browser.execute_script("localStorage.clear(); sessionStorage.clear()")
        read_console(browser)
        browser.get(sandbox.graphql_url)
        self.wait_for(
            "Re-fetch GraphQL schema",
            lambda: self.browser.execute_script(
                "return document.querySelector('[aria-label=\"Re-fetch GraphQL schema\"]')?.disabled === false"
            ),
        )

    def wait_for(self, what: str, holds: Any) -> Any:
        """Wait for a true result of `holds` and return it."""

        def holding(_: webdriver.Chrome) -> Any:
            try:
                return holds()
            except exceptions.WebDriverException as error:
                if GONE not in str(error.msg):
                    raise
                return None

        return WebDriverWait(self.browser, PATIENCE, 0.05, MOVING).until(holding, f"not there: {what}")

    def find(self, selector: str) -> WebElement:
        """The first matching element, as soon as there is one."""
        found: WebElement = self.wait_for(
            selector, lambda: next(iter(self.browser.find_elements(By.CSS_SELECTOR, selector)), None)
        )
        return found

    def wait_for_text(self, selector: str, text: str) -> str:
        """The text of a part of the page, when this is in it."""

        def now() -> str:
            return str(
                self.browser.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)
            )

        self.wait_for(f"{text!r} in {selector}", lambda: text in now())
        return now()

    def sign_in(self) -> None:
        self.press("Sign in", PANEL)
        self.find("#email, input[type=email]").send_keys(nexar_sandbox.DEFAULT_USERS[0].email)
        self.find("input[type=password]").send_keys(nexar_sandbox.DEFAULT_PASSWORD, Keys.ENTER)

    def press(self, text: str, within: str = "body") -> None:
        """The button or link with this text or label."""
        path = f".//*[self::button or self::a][normalize-space()='{text}' or @aria-label='{text}' or strong='{text}']"

        def clicked() -> bool:
            found = self.find(within).find_elements(By.XPATH, path)
            for each in found[:1]:
                each.click()
            return bool(found)

        self.wait_for(text, clicked)

    def keys(self, *keys: str) -> None:
        ActionChains(self.browser).send_keys(*keys).perform()

    def write(self, editor: str, text: str) -> None:
        """Replace the content of an editor."""
        self.find(f"{editor} {SHOWN}")
        self.browser.execute_script(
            "const { CodeMirror } = document.querySelector(arguments[0]); CodeMirror.focus(); "
            "CodeMirror.setValue(arguments[1])",
            f"{editor} {SHOWN}",
            text,
        )

    def written(self, editor: str) -> str:
        return str(
            self.browser.execute_script(
                "return document.querySelector(arguments[0])?.CodeMirror.getValue() ?? ''", f"{editor} {SHOWN}"
            )
        )

    def complete(self, begun: str, whole: str) -> None:
        """Type the beginning of a word and take the whole one from the list."""
        self.keys(begun)
        self.wait_for_text(".CodeMirror-hints", whole)
        self.keys(Keys.ENTER)
        self.wait_for(f"{whole} in the editor", lambda: whole in self.written(OPERATIONS))

    def wait_until_read(self) -> None:
        """Wait until GraphiQL has read the document: until then it executes an operation of the one before."""

        def is_read() -> bool:
            tab, text = self.browser.execute_script(ACTIVE_TAB), self.written(OPERATIONS)
            named = OPERATION.search(text)
            return bool(tab and tab["query"] == text and tab["operationName"] == (named[1] if named else None))

        self.wait_for("the document in its tab", is_read)

    def execute(self) -> None:
        self.wait_until_read()
        self.press("Execute query (Ctrl-Enter)")

    def answer(self, holding: str) -> Any:
        """The shown response, as soon as it contains this text."""
        self.wait_for(f"{holding!r} in the response", lambda: holding in self.written(RESPONSE))
        return json.loads(self.written(RESPONSE))


@pytest.fixture(scope="module")
def sandbox(background: Background) -> nexar_sandbox.Sandbox:
    chosen = nexar_sandbox.SandboxSettings(
        applications=(nexar_sandbox.DEFAULT_APPLICATION, nexar_sandbox.DEFAULT_DESIGN_APPLICATION), token_windows=()
    )
    return background.enter(nexar_sandbox.serve(chosen))


@pytest.fixture
def window(browser: webdriver.Chrome, sandbox: nexar_sandbox.Sandbox) -> Iterator[IdeWindow]:
    """An IDE window; afterwards all requests must have gone to the sandbox, without console errors."""
    sandbox.applications.choose_for_ide(nexar_sandbox.DEFAULT_APPLICATION.application_id)
    size = browser.get_window_size()
    browser.set_window_size(1400, 900)
    opened = IdeWindow(browser, sandbox)
    yield opened
    browser.set_window_size(size["width"], size["height"])
    assert read_console(browser) == []
    urls = browser.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
    asked = {address for address in urls if not address.startswith("data:")}
    assert {address for address in asked if not address.startswith(sandbox.url + "/")} == set()
    assert asked


def test_a_query_is_typed_with_completion_and_shows_parts(window: IdeWindow) -> None:
    window.wait_for_text(PANEL, "Sign in to run operations")
    window.sign_in()
    window.wait_for_text(PANEL, f"Token for {nexar_sandbox.DEFAULT_APPLICATION.name} until")
    used = window.sandbox.part_usage.used(nexar_sandbox.DEFAULT_APPLICATION.application_id)
    window.press("Add tab")
    window.write(OPERATIONS, "")
    window.keys("{ ")
    window.complete("supSearchMp", "supSearchMpn")
    window.keys('(q: "LM358", limit: 2) { results { part { ')
    window.complete("mp", "mpn")
    window.execute()
    found = window.answer('"mpn"')["data"]["supSearchMpn"]["results"]
    assert [one["part"]["mpn"][:5] for one in found] == ["LM358", "LM358"]
    window.wait_for_text(PANEL, "Last response: HTTP 200")
    window.wait_for_text(PANEL, f"{used + 2} of 1000 parts")
    window.wait_for_text(PANEL, "· 2 parts")


def test_a_user_sees_design_data_in_the_ide(window: IdeWindow) -> None:
    window.sandbox.applications.choose_for_ide(nexar_sandbox.DEFAULT_DESIGN_APPLICATION.application_id)
    window.sign_in()
    window.wait_for_text(PANEL, f"Token for {nexar_sandbox.DEFAULT_DESIGN_APPLICATION.name} until")
    window.press("Projects", TABS)
    window.execute()
    assert window.answer('"nodes"')["data"]["desProjects"]["totalCount"] > 0
