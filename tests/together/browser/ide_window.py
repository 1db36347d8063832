"""The IDE in a browser as a person sees it: tabs, editors and panels. Used by test_ide.py."""

import json
import re
from typing import Any

from selenium import webdriver
from selenium.common import exceptions
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from together.browser.background import read_console

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
        self.open()

    def open(self) -> None:
        self.browser.get(self.sandbox.graphql_url)
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

        return WebDriverWait(self.browser, PATIENCE, ignored_exceptions=MOVING).until(holding, f"not there: {what}")

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

    def sign_in(
        self,
        user: nexar_sandbox.SandboxUser = nexar_sandbox.DEFAULT_USERS[0],
        password: str = nexar_sandbox.DEFAULT_PASSWORD,
    ) -> None:
        self.press("Sign in", PANEL)
        self.find("#email, input[type=email]").send_keys(user.email)
        self.find("input[type=password]").send_keys(password, Keys.ENTER)

    def press(self, text: str, within: str = "body") -> None:
        """The button or link with this text or label."""
        path = f".//*[self::button or self::a][normalize-space()='{text}' or @aria-label='{text}' or strong='{text}']"

        def clicked() -> bool:
            found = self.find(within).find_elements(By.XPATH, path)
            try:
                if found:
                    found[0].click()
            except exceptions.WebDriverException as error:
                if "does not belong to the document" not in str(error):  # which another page has replaced meanwhile
                    raise
                return False
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

    def console_messages(self) -> list[str]:
        """Messages of the browser's console since the last call."""
        return [line["message"] for line in read_console(self.browser)]

    def request_urls(self) -> set[str]:
        script = "return performance.getEntriesByType('resource').map((one) => one.name)"
        return set(self.browser.execute_script(script))
