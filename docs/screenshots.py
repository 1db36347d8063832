"""Take the documentation's screenshots from the running product: `python -m docs.screenshots`.

Starts the sandbox, a comparison and the service, opens the portal, the IDE, the report and the admin interface in
Chromium, and writes PNG files to docs/images. Takes six minutes, five of which are the history of the admin interface.
Needs what `make test` installs, chromium and chromedriver.
"""

import contextlib
import math
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
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import ElementClickInterceptedException, ElementNotInteractableException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
PROGRAM = (sys.executable, "-m", "proxy")
WIDTH, HEIGHT = 1180, 760  # pixels; text stays readable at the width of a page, and a file below 150 KB
PATIENCE = 30  # seconds until a page shows what is awaited
ADMIN_SECONDS = 300  # of requests before its pages are shown
# Three programs of two applications, and their API keys.
CLIENTS = (
    ("KEY-OF-BOM-TOOL", "bom-tool/4.1"),
    ("KEY-OF-BOM-TOOL", "bom-tool/4.1"),
    ("KEY-OF-KICAD", "KiCost/1.1.20"),
    ("KEY-OF-ERP", "python-requests/2.31.0"),
)
PARTS = ("SN74S74N", "LM358N", "NE555P", "BC547B", "1N4148", "LM317T", "ATMEGA328P-PU", "NO-SUCH-PART")
SERVICE = """
listen: {port: 0, workers: 2}
admin: {port: 0}
applications:
  purchasing:
    apikeys: [{key: KEY-OF-BOM-TOOL, name: bom-tool}, {key: KEY-OF-ERP, name: erp, parts: 2000}]
    parts: 10000
  design:
    apikeys: [{key: KEY-OF-KICAD, name: kicad}]
    parts: 2000
"""
SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-proxy-server")


@contextmanager
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


@contextmanager
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


def ide(browser: webdriver.Chrome, address: str) -> None:
    """Execute the first document of the IDE; the user has signed in at the portal."""
    browser.get(f"{address}/graphql")
    wait_for(browser, "1000 parts")
    press(browser, "Execute query (Ctrl-Enter)")
    wait_for(browser, '"hits"')
    save(browser, "ide")


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
    subprocess.run((*command, "--fresh", "--html", str(page)), cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    browser.get(page.as_uri())
    save(browser, "report")


@contextmanager
def running_service(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the service on its sandbox; the address for v3 clients, that of the admin interface, and its token."""
    file = folder / "config.yaml"
    file.write_text(SERVICE)
    command = (*PROGRAM, "serve", "--config", str(file))
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        printed = ""
        while (token := re.search(r"token:\n\n    (\S+)\n", printed)) is None:
            printed += process.stdout.readline()
        v3, admin = re.findall(r" at (http://[\d.:]+)", printed)
        try:
            yield v3, admin, token[1]
        finally:
            process.terminate()


def send_requests(address: str) -> None:
    """Send v3 requests of three programs for some minutes."""
    end, number = time.monotonic() + ADMIN_SECONDS, 0
    while time.monotonic() < end:
        key, agent = CLIENTS[number % len(CLIENTS)]
        part = PARTS[number * number // 7 % len(PARTS)]
        target = f"/v3/parts/match?apikey={key}&queries=" + urllib.parse.quote(f'[{{"mpn":"{part}","limit":3}}]')
        if number % 5 == 0:
            target = f"/v3/parts/search?apikey={key}&q=resistor&start={number % 90}"
        request = urllib.request.Request(address + target, headers={"User-Agent": agent})
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request).read()
        number += 1
        time.sleep(0.15 + 0.12 * math.sin(number / 60))


def admin(browser: webdriver.Chrome, folder: Path) -> None:
    """Pages of the admin interface, one of them in the dark on a phone."""
    with running_service(folder) as (v3, address, token):
        send_requests(v3)
        browser.get(f"{address}/sign-in")
        browser.find_element(By.ID, "token").send_keys(token, Keys.ENTER)
        wait_for(browser, "Machines and workers")
        save(browser, "admin-overview")
        browser.get(f"{address}/clients")
        wait_for(browser, "bom-tool")
        save(browser, "admin-clients")
        explain(browser, address)
        dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        phone = {"width": 390, "height": 760, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        browser.get(f"{address}/requests")
        wait_for(browser, "GET /v3/parts")
        save(browser, "admin-requests")


def explain(browser: webdriver.Chrome, address: str) -> None:
    """Show the explanation of a request, without the form."""
    target = '/v3/parts/match?queries=[{"mpn":"SN74S74N"}]&show[]=mpn&show[]=offers.prices&page=2'
    browser.get(f"{address}/explain?{urllib.parse.urlencode({'request': target, 'application': 'purchasing'})}")
    browser.find_element(By.CSS_SELECTOR, "#operation-1-1 > summary").click()
    browser.execute_script("document.querySelector('article').scrollIntoView()")
    save(browser, "admin-explain")


def main() -> None:
    """Take all of them."""
    IMAGES.mkdir(exist_ok=True)
    with chromium() as browser, running_sandbox() as address, tempfile.TemporaryDirectory() as folder:
        portal(browser, address)
        ide(browser, address)
        report(browser, Path(folder))
        admin(browser, Path(folder))


if __name__ == "__main__":
    main()
