"""The page API keys: it changes the file of the configuration, reloads it, and shows a new key once."""

import hashlib
import re
from pathlib import Path

import pytest
from support.running_admin import BEARER, PAGE, AdminClient
from together.environment import ProxyEnvironment, target

from proxy import config
from proxy.config import own_file
from proxy.config.origins import ConfigurationOrigin

CONFIG = """\
# Ours.
applications:
  demo:
    apikeys:
      - "EXAMPLE_KEY"  # the first
      - {key: "k2", name: erp, rate: 5, parts: 1}
"""


@pytest.fixture
def file(managed: ProxyEnvironment, tmp_path: Path) -> Path:
    """A file that the service comes from, and that a reload reads."""
    own = tmp_path / "own.yaml"
    own.write_text(CONFIG)
    service = managed.admin.service
    service.origin = ConfigurationOrigin(own, {}, is_shipped=False)

    async def reload() -> config.ReloadResult:
        own_file.load(own, {})
        return config.ReloadResult("reloaded", managed.time.now())

    service.reload = reload
    return own


async def refused(admin: AdminClient, path: str, **fields: str) -> str:
    """Return why an action is refused."""
    response = await admin.send("POST", path, headers=BEARER, data=fields)
    assert response.status == 400
    return str((await response.json())["message"])


def clients(file: Path) -> dict[str, config.ApiKeySettings]:
    return own_file.load(file, {}).applications["demo"].clients


async def test_new_key_is_shown_once_and_never_in_a_cookie(managed: ProxyEnvironment, file: Path) -> None:
    admin = managed.admin
    await admin.sign_in()
    added = await admin.submit("/keys", "/keys/add", application="demo", name="bom", expires="2027-01-31")
    html = await added.text()
    (key,) = re.findall(r"shown only here: ([\w-]{32})</pre>", html)
    assert (added.status, "demo/bom is added." in html, "Set-Cookie" in added.headers) == (200, True, False)
    assert key not in await (await admin.send("GET", "/keys", headers=PAGE)).text()
    digest = hashlib.sha256(key.encode()).hexdigest()
    entry = f'      - key: "sha256:{digest}"\n        name: bom\n        expires: 2027-01-31\n'
    assert file.read_text() == CONFIG + entry


async def test_unknown_key_is_added_by_its_fingerprint_or_as_lines_to_paste(
    managed: ProxyEnvironment, file: Path
) -> None:
    admin, digest = managed.admin, hashlib.sha256(b"an-old-key").hexdigest()
    await managed.get(target({"mpn": "SN74S74N"}, key="an-old-key"))
    gateway = admin.service.gateway
    await gateway.store.add_callers("1", [], [], unknown=gateway.callers.take_unknown())
    fields = {"application": "demo", "name": "bom", "unknown": digest[:4]}
    html = await admin.page("/keys")
    assert f'<option value="{digest[:4]}">{digest[:4]}, 127.0.0.1' in html
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    shown = await admin.send("POST", "/keys/lines", headers=BEARER, data=fields)
    lines = (await shown.json())["shown"]
    assert lines == f'# below applications.demo.apikeys:\n      - key: "sha256:{digest}"\n        name: bom'
    assert file.read_text() == CONFIG
    assert await admin.act("/keys/add", fields) == "demo/bom is added."
    assert clients(file)["bom"].key == config.digest("an-old-key")
    assert "of no unknown API key" in await refused(admin, "/keys/lines", **{**fields, "unknown": "00"})


async def test_keys_are_rotated_ended_and_disabled(managed: ProxyEnvironment, file: Path) -> None:
    admin = managed.admin  # it is 2023-11-14
    assert await admin.act("/keys/rotate", {"key": "demo/erp"}) == (
        "demo/erp works until 2023-12-14, and has a successor. Each of both keys may use 1 part in this period; the "
        "limit of the application counts both."
    )
    assert [(name, each.rate, str(each.expires)) for name, each in clients(file).items()][1:] == [
        ("erp", 5, "2023-12-14"),
        ("erp-2", 5, "None"),
    ]
    assert await admin.act("/keys/disable", {"key": "demo/1"}) == "demo/1 is disabled."
    assert str(clients(file)["1"].expires) == "2023-11-13"
    assert await admin.act("/keys/expire", {"key": "demo/1", "expires": ""}) == "demo/1 has no last day."
    assert clients(file)["1"].expires is None
    assert await admin.act("/keys/expire", {"key": "demo/1", "expires": "2024-02-29"}) == (
        "demo/1 works until 2024-02-29."
    )
    text = file.read_text()
    assert text.startswith('# Ours.\napplications:\n  demo:\n    apikeys:\n      - {key: "EXAMPLE_KEY", expires: 2024-')
    assert "}  # the first\n" in text


async def test_mistakes_name_the_value(managed: ProxyEnvironment, file: Path) -> None:
    admin = managed.admin
    assert "such as demo/erp" in await refused(admin, "/keys/disable", key="erp")
    assert "demo has no API key 'x'; it has 1, erp" in await refused(admin, "/keys/disable", key="demo/x")
    assert "'soon' is not a date" in await refused(admin, "/keys/expire", key="demo/erp", expires="soon")
    file.write_text(CONFIG + "listne: {}\n")
    assert "own.yaml:7:1: listne: unknown key" in await refused(admin, "/keys/disable", key="demo/erp")


async def test_managed_file_is_not_written_and_the_page_says_so(managed: ProxyEnvironment, file: Path) -> None:
    admin = managed.admin
    file.write_text(managed_file := f"# Managed by Helm.\n{CONFIG}")
    assert "Managed by" in (await admin.json("/keys.json"))["managed"]
    await admin.sign_in()
    html = await (await admin.submit("/keys", "/keys/rotate", key="demo/erp")).text()
    assert "so nothing was written. Paste this where it is managed:" in html
    assert "# in applications.demo.apikeys[1], the key erp:\n        expires: 2023-12-14" in html
    assert "shown only here: " in html
    assert file.read_text() == managed_file


async def test_without_a_file_nothing_can_be_changed(managed: ProxyEnvironment) -> None:
    assert (await managed.admin.json("/keys.json"))["managed"] == "there is no configuration file"
    assert "no configuration file" in await refused(managed.admin, "/keys/disable", key="demo/1")
