"""A web page of another origin that loads searches with `<script>`, as it did from v3 (contract v3-rest.md §2, §6)."""

from collections.abc import Callable

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from support import running_proxy, scripted_upstream

KEY = running_proxy.KEY
SEARCH = f"/v3/parts/search?apikey={KEY}&q=SN74S74N&include[]=short_description&limit=4"

MAKERS = {"Texas Instruments", "Signetics", "Vishay Siliconix", "AMD"}

# Ends a string, a call, a line, a comment and a script, each to run something.
HOSTILE = (
    """"'); ruined = 1; //</script><script>ruined = 1</script><img src=x onerror='ruined = 1'>\u2028*/ruined = 1;\\"""
)

Opens = Callable[..., None]


@pytest.fixture
def open_page(browser: Chrome, page_url: Callable[..., str], proxy_url: str) -> Opens:
    """Opens the page with this target of the proxy as script, and waits until it has loaded."""

    def open_page(target: str, proxy: str = proxy_url) -> None:
        browser.get(page_url("table.html", proxy=proxy, target=target))

    return open_page


def state(browser: Chrome) -> str:
    return browser.find_element(By.ID, "state").text


def rows(browser: Chrome) -> list[list[str]]:
    """Texts of all table cells, read at once."""
    cells = "Array.from(row.cells, cell => cell.innerText)"
    found: list[list[str]] = browser.execute_script(
        f"return Array.from(document.getElementById('rows').rows, row => {cells})"
    )
    return found


def ruined(browser: Chrome) -> bool:
    """Whether anything ran that was data."""
    return bool(browser.execute_script("return typeof ruined !== 'undefined'"))


def test_a_page_of_another_origin_shows_a_search_as_a_table(browser: Chrome, open_page: Opens) -> None:
    open_page(f"{SEARCH}&callback=show")
    assert state(browser) == "6 parts found"
    assert {(mpn, maker) for mpn, maker, _, _ in rows(browser)} == {("SN74S74N", maker) for maker in MAKERS}
    best = rows(browser)[0]
    assert best[1:3] == [
        "Texas Instruments",
        "Dual D-type positive-edge-triggered flip-flop with preset and clear",
    ]
    assert best[3].startswith("$0.")


@pytest.fixture
def hostile_target(upstream: scripted_upstream.ScriptedUpstream) -> str:
    """A target of the scripted proxy; all texts of its response are hostile."""
    maker = {"id": "1", "name": HOSTILE, "homepageUrl": None}
    part = {"id": "1", "mpn": HOSTILE, "shortDescription": HOSTILE, "manufacturer": maker, "akaMpns": [], "sellers": []}
    upstream.respond_with({"data": {"supSearch": {"hits": 1, "results": [{"description": HOSTILE, "part": part}]}}})
    return f"{SEARCH}&show[]=mpn&show[]=manufacturer.name&show[]=short_description&callback=show"


def test_script_text_is_escaped_in_jsonp(
    browser: Chrome, open_page: Opens, scripted_proxy_url: str, hostile_target: str
) -> None:
    open_page(hostile_target, scripted_proxy_url)
    assert state(browser) == "1 parts found"
    assert browser.find_element(By.CSS_SELECTOR, "#rows td").get_property("textContent") == HOSTILE
    assert browser.find_elements(By.TAG_NAME, "img") == []
    assert not ruined(browser)
