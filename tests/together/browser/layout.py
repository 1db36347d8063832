"""Widths of windows, and what does not fit into one."""

from selenium import webdriver

WIDTHS = (390, 1180, 1900)  # of a phone, a laptop and a wide screen

# Elements that one has to scroll sideways for.
BEYOND = """
const root = document.documentElement, right = (each) => each.getBoundingClientRect().right;
const shown = [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility());
const beyond = shown.filter((each) => right(each) > root.clientWidth + 1);
return [root.scrollWidth - root.clientWidth, ...beyond.map((each) => each.outerHTML.slice(0, 200))].filter(Boolean);
"""


def set_width(browser: webdriver.Chrome, width: int) -> None:
    """Give the window a width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
