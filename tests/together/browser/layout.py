"""What cannot be read on a page: texts with too little contrast, and what does not fit into the window."""

from collections.abc import Sequence

from selenium import webdriver

WIDTHS = (390, 1180, 1900)  # of a phone, a laptop and a wide screen

# Elements that one has to scroll sideways for.
BEYOND = """
const root = document.documentElement, right = (each) => each.getBoundingClientRect().right;
const shown = [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility());
const beyond = shown.filter((each) => right(each) > root.clientWidth + 1);
return [root.scrollWidth - root.clientWidth, ...beyond.map((each) => each.outerHTML.slice(0, 200))].filter(Boolean);
"""
# The contrast of every text that can be seen with what is behind it (WCAG 2.2, 1.4.3); those below 4.5.
PALE = """
const rgb = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
const linear = (v) => v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => [r, g, b].map(linear)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const [r, g, b, a = 1] = rgb(getComputedStyle(at).backgroundColor);
    if (a > 0) return [r, g, b];
  }
  return [255, 255, 255];
};
const pale = [];
for (const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walker.nextNode();) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
  if (element.closest("script, style, option")) continue;
  const style = getComputedStyle(element);
  const [one, other] = [light(rgb(element.closest("svg") ? style.fill : style.color)), light(behind(element))];
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (contrast < 4.5) pale.push(`${element.tagName}.${element.className}: ${contrast.toFixed(2)}`);
}
return [...new Set(pale)];
"""
OPEN_ALL = "for (const each of document.querySelectorAll('details')) each.open = true"
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"


def set_width(browser: webdriver.Chrome, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def check_readable(browser: webdriver.Chrome, widths: Sequence[int] = WIDTHS) -> None:
    """Check that the open page fits windows of these widths, and that its texts have contrast, light and dark."""
    browser.execute_script(OPEN_ALL)
    backgrounds = set()
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [feature]})
        backgrounds.add(browser.execute_script(BACKGROUND))
        for width in widths:
            set_width(browser, width)
            assert browser.execute_script(BEYOND) == []
            assert browser.execute_script(PALE) == []
    assert len(backgrounds) == 2
