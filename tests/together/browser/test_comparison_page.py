"""The page of a comparison in a user's browser: opened from a disk, read in the dark, and full of traps."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from support import comparison_result
from together.browser.console import read_console
from together.browser.contrast import PALE

from proxy.tools.compare.judging.result import ComparisonResult
from proxy.tools.compare.reports import html

Opens = Callable[[ComparisonResult], None]


@pytest.fixture
def open_page(browser: Chrome, tmp_path: Path) -> Iterator[Opens]:
    """Opens the report of a result from a file."""

    def open_page(result: ComparisonResult) -> None:
        page = tmp_path / "report.html"
        page.write_text(html.render(result), encoding="utf-8")
        browser.get(page.as_uri())

    yield open_page
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def shown(browser: Chrome) -> list[str]:
    """The paths of the groups that can be seen, in order."""
    groups = browser.find_elements(By.CSS_SELECTOR, "details.group")
    return [group.find_element(By.CLASS_NAME, "path").text for group in groups if group.is_displayed()]


def open_all(browser: Chrome) -> None:
    browser.execute_script("for (const group of document.querySelectorAll('details')) group.open = true")


def test_the_report_starts_with_the_verdict_and_loads_no_other_file(browser: Chrome, open_page: Opens) -> None:
    open_page(comparison_result.result())
    assert browser.find_element(By.TAG_NAME, "h1").text == "Not ready"
    assert "120 of 9,360 requests differ" in browser.find_element(By.CLASS_NAME, "lead").text
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert read_console(browser) == []


def test_groups_are_sorted_by_importance(browser: Chrome, open_page: Opens) -> None:
    open_page(comparison_result.result())
    assert shown(browser) == [
        comparison_result.PRICES,
        comparison_result.PARTS,
        comparison_result.STOCK,
        comparison_result.ORDER,
    ]


def test_a_group_opens_with_the_keyboard_and_shows_both_sides(browser: Chrome, open_page: Opens) -> None:
    open_page(comparison_result.result())
    group = browser.find_element(By.CSS_SELECTOR, "details.group")
    group.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert [mark.text for mark in group.find_elements(By.TAG_NAME, "del")] == ["43"]
    assert [mark.text for mark in group.find_elements(By.TAG_NAME, "ins")] == ["98"]
    assert [side.text for side in group.find_elements(By.TAG_NAME, "pre")] == [
        '[1000, "0.21430"]',
        '[1000, "0.21980"]',
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "result", [comparison_result.result(), comparison_result.ready_result()], ids=["not_ready", "ready"]
)
def test_every_text_has_contrast_in_both_color_schemes(
    browser: Chrome, open_page: Opens, scheme: str, result: ComparisonResult
) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [feature]})
    open_page(result)
    open_all(browser)
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(251, 251, 250)", "dark": "rgb(19, 21, 24)"}[scheme]
    assert browser.execute_script(PALE) == []


def test_hostile_text_is_escaped(browser: Chrome, open_page: Opens) -> None:
    open_page(comparison_result.hostile_result())
    open_all(browser)
    assert browser.execute_script("return typeof window.hacked") == "undefined"
    assert browser.find_elements(By.CSS_SELECTOR, "img, script, iframe, object, embed, a[href^=http]") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    note = browser.find_element(By.CSS_SELECTOR, "#notes li").text
    assert note.startswith("</script><script>window.hacked=1</script><img src=x onerror=")
    assert "\\x1b[2J" in note
    assert read_console(browser) == []


def test_the_content_security_policy_blocks_injected_scripts(browser: Chrome, open_page: Opens) -> None:
    """Injected scripts neither run nor load anything, even without escaping."""
    open_page(comparison_result.result())
    stopped = browser.execute_async_script("""
        const done = arguments[0], stopped = [];
        document.addEventListener("securitypolicyviolation", (event) => {
          stopped.push(event.effectiveDirective);
          if (stopped.length === 4) done(stopped.sort());
        });
        const script = document.createElement("script");
        script.textContent = "window.hacked = 1";
        document.body.append(script);
        const place = document.createElement("div");
        document.body.append(place);
        place.innerHTML = '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">' +
          '<style>body { display: none }</style><p onclick="window.hacked = 1">x</p>';
        place.querySelector("p").click();
    """)
    assert stopped == ["img-src", "script-src-attr", "script-src-elem", "style-src-elem"]
    assert browser.execute_script("return typeof window.hacked") == "undefined"
