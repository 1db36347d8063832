"""Tables of the admin interface in Chromium: sorted by a click or a key and filtered, also after new rows arrive."""

import json
from urllib.parse import quote

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from support import running_admin, running_proxy
from together.browser.background import Background
from together.browser.conftest import PATIENCE

NUMBERS = [f"TABLE-{number:02}" for number in (3, 1, 7, 5, 2, 9, 4, 11, 8, 10, 6)]


def send(background: Background, admin: running_admin.AdminClient, *numbers: str) -> None:
    async def call() -> None:
        for mpn in numbers:
            queries = quote(json.dumps([{"mpn": mpn}]))
            await admin.proxy.get(f"/v3/parts/match?apikey={running_proxy.KEY}&queries={queries}")

    background.run(call())


def seen(window: webdriver.Chrome) -> list[str]:
    """Part numbers in the visible rows, from top to bottom."""
    rows = [row.text for row in window.find_elements(By.CSS_SELECTOR, "#requests tr") if row.is_displayed()]
    return [text.partition("TABLE-")[2][:2] for text in rows if "TABLE-" in text]


def test_rows_stay_sorted_and_filtered_while_new_ones_arrive(
    admin_window: webdriver.Chrome, admin: running_admin.AdminClient, background: Background
) -> None:
    send(background, admin, *NUMBERS)
    admin_window.get(f"{admin.url}/requests")
    heads = admin_window.find_elements(By.CSS_SELECTOR, "table:has(#requests) thead th")
    (target,) = (head for head in heads if head.text == "Request")
    ordered = sorted(number.partition("-")[2] for number in NUMBERS)
    target.click()
    assert seen(admin_window) == ordered
    assert target.get_attribute("aria-sort") == "ascending"
    target.send_keys(Keys.ENTER)
    assert seen(admin_window) == ordered[::-1]
    send(background, admin, "TABLE-00")
    WebDriverWait(admin_window, PATIENCE).until(lambda window: len(seen(window)) == len(NUMBERS) + 1)
    assert seen(admin_window) == [*ordered[::-1], "00"]
    field = admin_window.find_element(By.ID, "filter")
    field.send_keys("table-1")
    assert seen(admin_window) == ["11", "10"]
    send(background, admin, "TABLE-12", "OTHER")
    WebDriverWait(admin_window, PATIENCE).until(lambda window: seen(window) == ["12", "11", "10"])
    assert field.get_attribute("value") == "table-1"
    assert admin_window.switch_to.active_element == field
    field.send_keys(Keys.BACKSPACE * len("table-1"))
    WebDriverWait(admin_window, PATIENCE).until(lambda window: len(seen(window)) == len(NUMBERS) + 2)


def test_short_tables_have_no_filter(admin_window: webdriver.Chrome, admin: running_admin.AdminClient) -> None:
    admin_window.get(f"{admin.url}/alerts")
    assert not admin_window.find_element(By.ID, "filter").is_displayed()
