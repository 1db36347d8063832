"""The page for parts lists in a browser: the sample and a messy list are filled, and cost what the page has said."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from acceptance import running
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait
from together.browser.background import read_console
from together.browser.layout import check_readable, set_width

CONFIG = """
listen: {{sheet: true}}
upstream: sandbox
applications: {{shop: {{apikeys: [{{key: "THE_KEY", name: ada, parts: {parts}}}]}}}}
"""
TRAP = "<img src=x onerror='window.hacked = 1'>"
MESSY: tuple[list[str | int], ...] = (
    ["Project: Blinky"],
    [],
    ["Pos", TRAP, "Hersteller", "Typ", "Menge", "Bemerkung"],
    [1, "R1", "Texas Instruments", "SN74S74N", 20, ""],
    [2, "U1", "STMicroelectronics", "LM317T", "a few", ""],
    [3, "C1", "", "1N4007", 1, "DNP"],
    [4, "U2", "", "9.55E+12", 1, ""],
    ["Total", "", "", "", 4, ""],
    [5, "U3", "", "NO-SUCH-PART", 3, ""],
)
SECONDS = 60


class SheetPage:
    def __init__(self, browser: Chrome, service: running.Service, folder: Path) -> None:
        self.browser, self._service, self.folder = browser, service, folder
        read_console(browser)
        browser.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
        browser.get(f"{service.url}/sheet")

    def shown(self, name: str) -> str:
        return str(self.browser.find_element(By.ID, name).text)

    def until(self, what: Callable[[], Any]) -> Any:
        return WebDriverWait(self.browser, SECONDS, 0.05).until(lambda _: what())

    def drop(self, file: Path, key: str = "THE_KEY") -> None:
        """Give the page a file, and wait for what it costs, or an error."""
        self.browser.find_element(By.ID, "key").send_keys(key)
        # The page may take notice of the file, which may have the name of the last one, later than the waits below.
        self.browser.execute_script("document.getElementById('name').textContent = ''")
        self.browser.find_element(By.ID, "file").send_keys(str(file))
        self.until(lambda: self.shown("name") == file.name)
        self.wait()

    def wait(self) -> None:
        is_read = "return document.querySelector('main').ariaBusy === 'false'"
        self.until(lambda: self.browser.execute_script(is_read))

    def choose(self, what: str, text: str) -> None:
        """Choose the sheet, or the role of a column, and wait for what follows."""
        selects = self.browser.find_elements(By.CSS_SELECTOR, "#options select")
        names = {each.get_attribute("data-heading") or each.get_attribute("id"): each for each in selects}
        Select(names[what]).select_by_visible_text(text)
        self.wait()

    def roles(self) -> dict[str, str]:
        selects = self.browser.find_elements(By.CSS_SELECTOR, "#columns select")
        return {each.get_attribute("data-heading") or "": Select(each).first_selected_option.text for each in selects}

    def fill(self) -> Path:
        self.browser.find_element(By.ID, "fill").click()
        self.until(lambda: self.shown("outcome"))
        self.wait()
        link = self.browser.find_element(By.ID, "download")
        target = self.folder / str(link.get_attribute("download"))
        link.click()
        self.until(target.exists)
        return target

    def used(self) -> int:
        rows = running.request(self._service.operators, "/status").json["usage"]
        return int(next(row["used"] for row in rows if row["key"] == "ada"))


@pytest.fixture
def open_page(browser: Chrome, processes: running.Processes, tmp_path: Path) -> Callable[..., SheetPage]:
    """Starts a service whose API key has so many parts, and opens its page."""
    return lambda parts=100: SheetPage(browser, processes.service(CONFIG.format(parts=parts)), tmp_path)


def test_sample_is_filled_for_what_the_page_has_said_and_again_for_nothing(open_page: Callable[..., SheetPage]) -> None:
    page = open_page()
    page.drop(running.ROOT / "examples/BOM.csv", "A_WRONG_KEY")
    assert page.shown("error").startswith("this API key is not known")
    page.browser.find_element(By.ID, "key").clear()
    page.drop(running.ROOT / "examples/BOM.csv")
    roles = {"Ref": "designators", "MPN": "part number", "Manufacturer": "manufacturer", "Quantity": "quantity"}
    assert page.roles() == roles
    assert (page.shown("most"), page.used()) == ("18", 0)
    assert "3 lines: likely 3 parts" in page.shown("cost-text")
    assert "Your key has 100 parts left." in page.shown("cost-text")
    file = page.fill()
    filled = [*csv.DictReader(file.read_text("utf-8-sig").splitlines())]
    assert [row["Nexar status"] for row in filled] == ["found"] * 3
    totals = [row.text.split() for row in page.browser.find_elements(By.CSS_SELECTOR, "#totals tbody tr")]
    assert sum(float(row["Nexar total USD"]) for row in filled) == pytest.approx(float(totals[-1][-1]), abs=0.01)
    assert (totals[-1][:2], page.used()) == (["All", "3"], 3)
    for width in (390, 1180):
        set_width(page.browser, width)
        shown = page.browser.find_element(By.CSS_SELECTOR, "#totals thead").text
        assert shown.split() == ["Distributor", "Lines", "Total", "USD"]
    price = filled[0]["Nexar price USD"]
    file.write_text(file.read_text().replace(price, "99.5", 1))
    page.drop(file, "")
    assert "3 of 3 numbers were fetched today and are free" in page.shown("cost-text")
    page.fill()
    assert f"row 2, SN74S74N: price USD 99.5 → {price}" in page.shown("changed")
    assert page.used() == 3


def test_messy_workbook_is_filled_after_its_columns_are_chosen(open_page: Callable[..., SheetPage]) -> None:
    page, book = open_page(parts=8), openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["Part", "to be ordered in May"])
    filled_in = book.create_sheet("List")
    for row in MESSY:
        filled_in.append(row)
    book.save(page.folder / "messy.xlsx")
    page.drop(page.folder / "messy.xlsx")
    assert page.shown("error") == "no column has part numbers: choose yours below"
    page.choose("sheet", "List")
    assert page.shown("header") == "headings in row 3"
    page.choose("Typ", "part number")
    assert page.shown("notes").splitlines() == [
        "left out: row 1: above the headings",
        "left out: row 6: not populated",
        "left out: row 7: a number that has lost digits: format the column as text and enter it again",
        "left out: row 8: a total",
        "E5: 'a few' is not a quantity",
    ]
    assert page.roles() | {"Hersteller": "manufacturer", "Typ": "part number", "Menge": "quantity"} == page.roles()
    assert "Your key has 8 parts left." in page.shown("cost-text")
    filled = openpyxl.load_workbook(page.fill())["List"]
    headings = [cell.value for cell in filled[3]]
    assert headings[:6] == MESSY[2]
    assert filled.cell(4, headings.index("Nexar status") + 1).value == "found"
    assert 0 < page.used() <= 8
    check_readable(page.browser)
    assert page.browser.execute_script("return typeof window.hacked") == "undefined"
    assert read_console(page.browser) == []
