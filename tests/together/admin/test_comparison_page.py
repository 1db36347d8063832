"""The page Comparison: results of shadowing as the command reports them, the switch, and the whole report."""

import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from support.running_admin import BEARER, PAGE
from together.environment import ProxyEnvironment, StartEnvironment

from proxy import config
from proxy.shadow import results
from proxy.tools.compare import loader
from proxy.tools.compare.judging.findings import Comparison, Difference, Finding
from proxy.tools.compare.judging.tally import Tally
from proxy.tools.compare.shadow import report
from proxy.traffic.v3_request import V3Request

MPN = Finding(
    Difference("value", "results[*].items[*].mpn", "results[0].items[0].mpn", "A", "<script>B</script>"), "unexplained"
)


@pytest.fixture
async def shadowing(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    """A configuration that compares with an old service, which nothing is sent to: there are no requests."""
    application = {"shadow": config.ApplicationShadowSettings(share=0.25)}
    async with start(admin=True, application=application, shadow={"baseline_url": "http://127.0.0.1:1/v3"}) as ready:
        yield ready


async def compare(environment: ProxyEnvironment) -> None:
    """A worker's note of 40 comparisons of two clients."""
    tally = Tally()
    for number in range(20):
        for client, findings in (("erp", ()), ("<b>shop</b>", (MPN,) if number % 2 else ())):
            request = V3Request("/parts/match", (("q", str(number)),), client, 1, "live")
            tally.add(Comparison(request, 1_700_000_000.0 + number, findings))
    slot = results.ResultSlot(environment.admin.service.gateway.store, "a worker")
    await slot.refresh()
    await slot.resume()
    await slot.put(msgspec.json.encode(tally).decode())


async def test_page_has_the_verdicts_and_differences_of_the_report(shadowing: ProxyEnvironment) -> None:
    await compare(shadowing)
    page = await shadowing.admin.json("/comparison.json")
    gateway = shadowing.admin.service.gateway
    expected = await report.read(gateway.store, gateway.settings, loader.load(None, {}), gateway.clock)
    assert expected is not None
    result = page["result"]
    assert result["verdict"] == expected.verdict == "not ready"
    rows = [row for client in result["clients"] for row in client["endpoints"]]
    assert rows == json.loads(msgspec.json.encode(expected.rows))
    clients = {each["client"]: (each["verdict"], each["requests"], each["equivalent"]) for each in result["clients"]}
    assert clients == {"erp": ("inconclusive", 20, 20), "<b>shop</b>": ("not ready", 20, 10)}
    (difference,) = result["differences"]
    assert (difference["path"], difference["requests"]) == ("results[*].items[*].mpn", 10)
    assert (result["first"], result["last"]) == (1_700_000_000.0, 1_700_000_019.0)
    assert page["applications"] == [{"application": "demo", "share": 0.25, "response": "candidate"}]


async def test_page_counts_sampled_requests_that_were_dropped(shadowing: ProxyEnvironment) -> None:
    assert (await shadowing.admin.json("/comparison.json"))["dropped"] == {}
    dropped = shadowing.admin.service.gateway.metrics.shadow_dropped
    for application, reason, number in (("demo", "rate", 1200), ("shop", "rate", 34), ("demo", "parts", 2)):
        dropped[application, reason] += number
    assert (await shadowing.admin.json("/comparison.json"))["dropped"] == {"parts": 2, "rate": 1234}
    assert "2 (parts), 1,234 (rate)" in await shadowing.admin.page("/comparison")


async def test_report_permits_its_own_style_and_script_only(shadowing: ProxyEnvironment) -> None:
    await compare(shadowing)
    response = await shadowing.admin.send("GET", "/comparison/report.html", headers=BEARER | PAGE)
    html, policy = await response.text(), response.headers["Content-Security-Policy"]
    assert response.status == 200
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert policy.endswith("frame-ancestors 'none'; sandbox allow-scripts")
    assert "<script>B" not in html
    assert response.headers["Cache-Control"] == "no-store"


async def test_report_needs_results(shadowing: ProxyEnvironment) -> None:
    response = await shadowing.admin.send("GET", "/comparison/report.html", headers=BEARER)
    assert (response.status, "no results yet" in await response.text()) == (404, True)
    assert "Results appear a few seconds after" in await shadowing.admin.page("/comparison")


async def test_text_of_clients_is_shown_as_text(shadowing: ProxyEnvironment) -> None:
    await compare(shadowing)
    html = await shadowing.admin.page("/comparison")
    assert "&lt;b&gt;shop&lt;/b&gt;" in html
    assert "<b>shop" not in html


async def test_switch_is_that_of_the_command(shadowing: ProxyEnvironment) -> None:
    admin = shadowing.admin
    store = admin.service.gateway.store
    assert (await admin.json("/comparison.json"))["on"] is True
    await admin.sign_in()
    assert (await admin.submit("/comparison", "/switch")).status == 303
    assert (await results.control(store)).on is False
    assert "Switch shadowing on" in await (await admin.send("GET", "/comparison", headers=PAGE)).text()
    await admin.submit("/comparison", "/switch")
    assert (await results.control(store)).on is True
    wrong = await admin.send("POST", "/comparison/switch", headers=BEARER, data={"state": "maybe"})
    assert wrong.status == 400


async def test_without_shadowing_the_page_says_how_to_switch_it_on(managed: ProxyEnvironment) -> None:
    page: dict[str, Any] = await managed.admin.json("/comparison.json")
    assert (page["configured"], page["result"]) == (False, None)
    html = await managed.admin.page("/comparison")
    assert "baseline_url: https://old.example/v3" in html
    assert "/comparison/switch" not in html
