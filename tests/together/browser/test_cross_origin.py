"""A web page of another origin that gets its own token and queries the service (contract graphql.md, N-603)."""

from collections.abc import Callable

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait
from together.browser.background import Background

import nexar_sandbox

PATIENCE = 20  # seconds


def test_a_page_of_another_origin_gets_a_token_and_parts(
    browser: Chrome, background: Background, page_url: Callable[..., str]
) -> None:
    sandbox = background.enter(nexar_sandbox.serve(nexar_sandbox.SandboxSettings()))
    application = sandbox.default_application
    address = page_url(
        "token.html",
        token_url=sandbox.token_url,
        graphql_url=sandbox.graphql_url,
        client=application.client_id,
        secret=application.client_secret,
    )
    browser.get(address)
    WebDriverWait(browser, PATIENCE).until(lambda shown: shown.title in ("done", "refused"))
    assert (browser.title, browser.find_element(By.ID, "told").text) == ("done", "SN74S74N")
