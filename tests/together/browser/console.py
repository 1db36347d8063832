"""Messages of a browser's console."""

from typing import Any

from selenium import webdriver


def read_console(browser: webdriver.Chrome) -> list[dict[str, Any]]:
    """The entries since the last call."""
    return list(browser.get_log("browser"))  # type: ignore[no-untyped-call]
