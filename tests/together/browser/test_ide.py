"""The IDE in Chromium: completion, queries, tabs, documentation and authorization. All requests go to the sandbox, and
the console stays empty."""

from collections.abc import Iterator

import pytest
from selenium import webdriver
from together.browser.background import Background
from together.browser.ide_window import OPERATIONS, PANEL, TABS, IdeWindow

import nexar_sandbox


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
    assert opened.console_messages() == []
    asked = {address for address in opened.request_urls() if not address.startswith("data:")}
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
