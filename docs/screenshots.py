"""Take the documentation's screenshots from the running product: `python -m docs.screenshots`.

Starts the sandbox, a service and a comparison, opens the portal, /status, /sheet and the report in Chromium, and writes
PNG files to docs/images. Needs what `make test` installs, chromium and chromedriver.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import ElementClickInterceptedException, ElementNotInteractableException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
PROGRAM = (sys.executable, "-m", "proxy")
WIDTH, HEIGHT = 1180, 760  # pixels; text stays readable at the width of a page, and a file below 150 KB
WRITTEN = 11  # seconds after which a service has written who called
SERVICE = """listen: {sheet: true}
upstream: sandbox
store: "memory:"
applications:
  shop:
    parts: 100
    apikeys: [{key: first-key, name: bom-tool}, {key: second-key, name: erp, parts: 30%}]
"""
PATIENCE = 30  # seconds until a page shows what is awaited
SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-proxy-server")


@contextlib.contextmanager
def running_sandbox() -> Iterator[str]:
    """Yield a sandbox in a process of its own; its address."""
    command = (*PROGRAM, "sandbox", "--port", "0")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = ""
        for line in process.stdout:
            name, _, value = line.partition(" ")
            address = value.strip() if name == "sandbox" else address
            if name == "client_secret":  # the last line
                break
        try:
            yield address
        finally:
            process.terminate()


@contextlib.contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Debian's Chromium without a window."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):  # selenium would use them to reach its driver
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for switch in (*SWITCHES, f"--window-size={WIDTH},{HEIGHT}"):
        options.add_argument(switch)
    browser = webdriver.Chrome(options, webdriver.ChromeService(executable_path=shutil.which("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


def press(browser: webdriver.Chrome, text: str) -> None:
    """Click the first visible button, link or summary with this text or label, when it is there."""
    path = (
        f"//*[self::button or self::a or self::summary][contains(normalize-space(), '{text}') or @aria-label='{text}']"
    )

    def clicked(_: webdriver.Chrome) -> bool:
        for found in browser.find_elements(By.XPATH, path):
            if found.is_displayed():
                found.click()
                return True
        return False

    unready = (ElementClickInterceptedException, ElementNotInteractableException)
    WebDriverWait(browser, PATIENCE, ignored_exceptions=unready).until(clicked, f"no {text!r}")


def wait_for(browser: webdriver.Chrome, text: str) -> None:
    """Wait until the page shows this text."""
    WebDriverWait(browser, PATIENCE).until(
        lambda _: text in browser.find_element(By.TAG_NAME, "body").get_attribute("innerText"), f"no {text!r}"
    )


def save(browser: webdriver.Chrome, name: str) -> None:
    """Write what the window shows."""
    file = IMAGES / f"{name}.png"
    browser.save_screenshot(str(file))
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size // 1000} KB")


def portal(browser: webdriver.Chrome, address: str) -> None:
    """Show the details of an application in the portal."""
    browser.get(f"{address}/portal")
    press(browser, "Sign in as Ada Sandbox")
    press(browser, "Show Details")
    wait_for(browser, "Client")
    save(browser, "portal")


def status(browser: webdriver.Chrome, folder: Path) -> None:
    """Show the status of a service that has had some requests, and its page for parts lists."""
    file = folder / "status.yaml"
    file.touch(0o600)
    file.write_text(SERVICE)
    command = (*PROGRAM, "serve", "--config", str(file), "--port", "0", "--admin-port", "0")
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        shown = ""
        while "/status" not in shown:
            shown += process.stdout.readline()
        service, *_, operators = re.findall(r"http://[\d.]+:\d+", shown)
        try:
            for key, number in (
                ("first-key", "SN74S74N"),
                ("first-key", "LM317T"),
                ("second-key", "NE555P"),
                ("old", "1"),
            ):
                query = urllib.parse.quote(f'[{{"mpn":"{number}"}}]')
                with contextlib.suppress(urllib.error.HTTPError):
                    urllib.request.urlopen(f"{service}/v3/parts/match?apikey={key}&queries={query}").close()
            time.sleep(WRITTEN)
            browser.get(f"{operators}/status")
            save(browser, "status")
            browser.get(f"{service}/sheet")
            browser.find_element(By.ID, "key").send_keys("first-key")
            browser.find_element(By.ID, "file").send_keys(str(ROOT / "examples/BOM.csv"))
            wait_for(browser, "Fill the list")
            browser.execute_script("document.getElementById('fill').scrollIntoView(false)")
            save(browser, "sheet")
        finally:
            process.terminate()


def report(browser: webdriver.Chrome, folder: Path) -> None:
    """Show the report of a comparison of the sandbox's two services."""
    page = folder / "report.html"
    command = (
        *PROGRAM,
        "compare",
        "--baseline",
        "sandbox",
        "--config",
        "config.yaml",
        "--requests",
        "examples/access.log",
    )
    subprocess.run((*command, "--html", str(page)), cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    browser.get(page.as_uri())
    save(browser, "report")


def main() -> None:
    """Take all of them."""
    IMAGES.mkdir(exist_ok=True)
    with chromium() as browser, running_sandbox() as address, tempfile.TemporaryDirectory() as folder:
        portal(browser, address)
        status(browser, Path(folder))
        report(browser, Path(folder))


if __name__ == "__main__":
    main()
