"""The page Quota: its figures are those of the ledger and of `v3bridge usage`, and its actions do what they say."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import sandbox_client
from support.running_admin import BEARER, PAGE
from together.environment import ProxyEnvironment, StartEnvironment

from proxy import config
from proxy.gateway.quota import usage
from proxy.stores.protocols import ExhaustedQuota, LedgerEntry, Settlement, UsageIncrement

KEYS = (
    config.ApiKeySettings(config.digest("EXAMPLE_KEY"), name="erp"),
    config.ApiKeySettings(config.digest("another"), name="shop", parts="5%", leaves=20),
)


@pytest.fixture
async def limited(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    """An application with a limit of 100 parts and two API keys."""
    async with start(admin=True, application={"parts": 100, "apikeys": KEYS}) as ready:
        yield ready


async def book(environment: ProxyEnvironment, used: int, uncertain: int = 0, day: str = "2023-11-14") -> None:
    """Book usage of the application, in the ledger that its pages read."""
    entries = (LedgerEntry("demo", day), LedgerEntry("demo", "2023-11"))
    increments = tuple(UsageIncrement(entry, used, uncertain) for entry in entries)
    await environment.admin.service.gateway.store.settle(Settlement(f"a worker {day}", 1, (), increments))


async def test_figures_are_those_of_the_command(limited: ProxyEnvironment) -> None:
    await limited.results({"mpn": "SN74S74N"})
    gateway = limited.admin.service.gateway
    await book(limited, 30, 7, "2023-11-12")
    (demo,) = (await limited.admin.json("/quota.json"))["applications"]
    store = gateway.store
    rows = usage.rows(
        gateway.settings.applications, await store.all_usage(), await store.exhausted_quotas(), gateway.clock.now()
    )
    assert [demo["usage"], *(key["usage"] for key in demo["keys"])] == msgspec.to_builtins(rows)
    used = limited.billed_parts
    assert used > 0
    assert (demo["usage"]["used"], demo["usage"]["uncertain"], demo["usage"]["remaining"]) == (30 + used, 7, 63 - used)
    assert [key["share"] for key in demo["keys"]] == [round(used / (37 + used), 3), 0.0]


async def test_share_is_a_limit_beside_the_parts_that_its_key_leaves(limited: ProxyEnvironment) -> None:
    (demo,) = (await limited.admin.json("/quota.json"))["applications"]
    assert [(key["usage"]["limit"], key["usage"]["leaves"]) for key in demo["keys"]] == [(None, 0), (5, 20)]
    assert (await limited.admin.page("/quota")).count('<span class="quiet">leaves 20</span>') == 1


async def test_burn_down_has_the_days_of_the_ledger(limited: ProxyEnvironment) -> None:
    await book(limited, 10, day="2023-11-02")
    await book(limited, 30, 5, day="2023-11-14")
    (demo,) = (await limited.admin.json("/quota.json"))["applications"]
    burned = demo["burn_down"]
    parts = {day["day"]: (day["parts"], day["remaining"]) for day in burned["days"]}
    assert len(parts) == 14
    assert (parts["2023-11-01"], parts["2023-11-02"], parts["2023-11-14"]) == ((0, 100), (10, 90), (35, 55))
    html = await limited.admin.page("/quota")
    assert "2023-11-14: 35 parts, 55 remained" in html
    assert f"{burned['parts_per_day']:.0f} parts a day" in html


async def test_forecast_names_the_day_of_exhaustion(limited: ProxyEnvironment) -> None:
    await book(limited, 60)
    (demo,) = (await limited.admin.json("/quota.json"))["applications"]
    day = demo["usage"]["runs_out_at"][:10]
    assert day == "2023-11-15"
    assert f"the quota will be exhausted on {day}" in await limited.admin.page("/quota")


async def test_exhausted_quota_is_shown_with_its_reason_and_reopened(limited: ProxyEnvironment) -> None:
    admin = limited.admin
    store = admin.service.gateway.store
    until = limited.time.now() + 86_400
    await store.mark_exhausted(ExhaustedQuota("demo", until, "You have exceeded your part limit of 100."))
    html = await admin.page("/quota")
    assert "You have exceeded your part limit of 100" in html
    assert "until 2023-11-15 22:13" in html
    await admin.sign_in()
    response = await admin.submit("/quota", "/reopen")
    assert (response.status, response.headers["Location"]) == (303, "/quota")
    assert await store.exhausted_quotas() == []
    shown = await (await admin.send("GET", "/quota", headers=PAGE)).text()
    assert "The quota of demo is no longer exhausted" in shown
    assert "/quota/reopen" not in shown


async def test_uncertain_usage_is_explained_where_there_is_some(limited: ProxyEnvironment) -> None:
    assert "Uncertain usage:" not in await limited.admin.page("/quota")
    await book(limited, 0, 7)
    assert "Uncertain usage: 7 parts" in await limited.admin.page("/quota")


async def test_reconciliation_is_run_and_its_result_is_shown(start: StartEnvironment, tmp_path: Path) -> None:
    file = tmp_path / "user-token"
    id_ = "8c0f6d3e-51f4-4a8e-9f0b-2f7d5f1d9a01"
    source = config.ReconciliationSettings(id_, config.SecretSource(f"file:{file}", Path(), {}))
    async with start(admin=True, application={"reconcile": source, "parts": 1000}) as ready:
        assert ready.sandbox.default_application.application_id == id_
        admin = ready.admin
        assert "the token the file" in await admin.act("/quota/reconcile", {"application": "demo"})
        caller = sandbox_client.SandboxClient(ready.sandbox, admin.session)
        await caller.log_in()
        file.write_text(caller.token)
        ready.sandbox.part_usage.record(id_, 40)
        assert "Nexar has counted 40" in await admin.act("/quota/reconcile", {"application": "demo"})
        (demo,) = (await admin.json("/quota.json"))["applications"]
        assert demo["usage"]["used"] == 40
        result = demo["reconciliation"]
        assert (result["ledger"], result["upstream"], result["difference"]) == (0, 40, 40)
        assert "+40" in await admin.page("/quota")


@pytest.mark.parametrize("path", ["/quota/reopen", "/quota/reconcile"])
@pytest.mark.parametrize("name", ["", "another", "demo/erp", "<b>"])
async def test_unknown_application_is_refused(limited: ProxyEnvironment, path: str, name: str) -> None:
    response = await limited.admin.send("POST", path, headers=BEARER, data={"application": name})
    assert response.status == 400
    assert "<b>" not in await response.text()


async def test_application_without_reconciliation_is_refused(limited: ProxyEnvironment) -> None:
    sent: dict[str, Any] = {"headers": BEARER, "data": {"application": "demo"}}
    response = await limited.admin.send("POST", "/quota/reconcile", **sent)
    assert (response.status, "no `reconcile` block" in await response.text()) == (400, True)


async def test_unlimited_quota_without_usage_has_no_chart(start: StartEnvironment) -> None:
    async with start(admin=True) as ready:
        html = await ready.admin.page("/quota")
        assert "the quota is unlimited" in html
        assert "<svg" not in html
