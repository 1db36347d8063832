"""The page of a comparison in a user's browser: opened from a disk, read in the dark, and full of traps."""

from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from support import comparison_result
from together.browser.background import read_console
from together.browser.layout import check_readable

from proxy.tools.compare import reports
from proxy.tools.compare.judging.result import ComparisonResult

Opens = Callable[[ComparisonResult], None]
LOADED = "return performance.getEntriesByType('resource').length"


@pytest.fixture
def open_page(browser: Chrome, tmp_path: Path) -> Opens:
    """Opens the report of a result from a file."""

    def open_page(result: ComparisonResult) -> None:
        page = tmp_path / "report.html"
        page.write_text(reports.render_html(result), encoding="utf-8")
        browser.get(page.as_uri())

    return open_page


def test_report_starts_with_the_verdict_and_its_groups_open_by_keyboard(browser: Chrome, open_page: Opens) -> None:
    open_page(comparison_result.result())
    assert browser.find_element(By.TAG_NAME, "h1").text == "Not ready"
    assert "120 of 9,360 requests differ" in browser.find_element(By.CLASS_NAME, "lead").text
    group, *others = browser.find_elements(By.CSS_SELECTOR, "details.group")
    assert [each.find_element(By.CLASS_NAME, "path").text for each in (group, *others)] == [
        comparison_result.PRICES,
        comparison_result.PARTS,
        comparison_result.STOCK,
        comparison_result.ORDER,
    ]
    group.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert [mark.text for mark in group.find_elements(By.CSS_SELECTOR, "del, ins")] == ["43", "98"]
    sides = [side.text for side in group.find_elements(By.TAG_NAME, "pre")]
    assert sides == ['[1000, "0.21430"]', '[1000, "0.21980"]']
    assert browser.execute_script(LOADED) == 0
    assert read_console(browser) == []


def test_every_text_has_contrast_in_both_color_schemes(browser: Chrome, open_page: Opens) -> None:
    for result in (comparison_result.result(), comparison_result.ready_result()):
        open_page(result)
        check_readable(browser, [1180])


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
