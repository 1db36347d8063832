"""Tests of the ledger reconciled with the sandbox's count (contract graphql.md §5.4)."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support import running_proxy, sandbox_client
from together.environment import ProxyEnvironment

from proxy import config
from proxy.gateway.quota import accounts, reconciliation
from proxy.stores.open import MemoryStore
from proxy.stores.protocols import ExhaustedQuota, LedgerEntry, Settlement, UsageIncrement
from proxy.upstream import supply_counts

NOVEMBER = LedgerEntry("demo", "2023-11")
DAY = 86_400


class _ReconcilerEnvironment:
    """A reconciler on a store of its own, before the sandbox of an environment."""

    def __init__(self, environment: ProxyEnvironment, session: aiohttp.ClientSession, file: Path) -> None:
        self.environment, self.session, self.file = environment, session, file
        self.store = MemoryStore(environment.time)
        self.account_id = environment.sandbox.default_application.application_id

    def made(self, parts: int | None = None, application_id: str | None = None) -> reconciliation.Reconciler:
        source = config.ReconciliationSettings(
            application_id or self.account_id, config.SecretSource(f"file:{self.file}", Path(), {})
        )
        watched = [reconciliation.ReconciledApplication(accounts.QuotaAccount("demo", parts, "month"), source)]
        counts = supply_counts.SupplyCountsClient(
            self.session, self.environment.sandbox.graphql_url, self.environment.time
        )
        return reconciliation.Reconciler(self.store, watched, counts, self.environment.time)

    async def state(self) -> tuple[int, int]:
        (found,) = await self.store.usage([NOVEMBER])
        return found.used, found.uncertain

    async def log_in(self) -> None:
        """A token of this moment, where the reconciler looks for it."""
        caller = sandbox_client.SandboxClient(self.environment.sandbox, self.session)
        await caller.log_in()
        self.file.write_text(caller.token + "\n")

    def bill(self, parts: int) -> None:
        """Another program spends parts of the same application."""
        self.environment.sandbox.part_usage.record(self.account_id, parts)


@pytest.fixture
async def bench(environment: ProxyEnvironment, tmp_path: Path) -> AsyncIterator[_ReconcilerEnvironment]:
    async with aiohttp.ClientSession() as session:
        made = _ReconcilerEnvironment(environment, session, tmp_path / "user-token")
        await made.log_in()
        yield made


def said(log_output: io.StringIO, event: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, log_output.getvalue().splitlines()) if line["event"].startswith(event)]


async def test_upstream_count_raises_the_ledger_and_settles_uncertain_usage(
    bench: _ReconcilerEnvironment, log_output: io.StringIO
) -> None:
    await bench.store.settle(Settlement("worker", 1, (), (UsageIncrement(NOVEMBER, 10, 5),)))
    bench.bill(40)
    await bench.made().reconcile()
    assert await bench.state() == (40, 0)
    (line,) = said(log_output, "usage reconciled")
    assert {
        name: line[name]
        for name in ("quota_account", "ledger", "uncertain", "upstream", "difference", "upstream_limit")
    } == {
        "quota_account": "demo",
        "ledger": 10,
        "uncertain": 5,
        "upstream": 40,
        "difference": 30,
        "upstream_limit": 1000,
    }


async def test_lower_upstream_count_changes_nothing(bench: _ReconcilerEnvironment) -> None:
    await bench.store.settle(Settlement("worker", 1, (), (UsageIncrement(NOVEMBER, 10, 0),)))
    bench.bill(4)
    await bench.made().reconcile()
    assert await bench.state() == (10, 0)


async def test_reconciliation_runs_once_a_day_over_all_workers(bench: _ReconcilerEnvironment) -> None:
    requests = bench.environment.sandbox.request_counts
    before = requests.graphql
    for worker in (bench.made(), bench.made(), bench.made()):
        await worker.reconcile()
        await worker.reconcile()
    assert requests.graphql == before + 1
    bench.environment.time.advance(DAY - 1)
    await bench.log_in()
    await bench.made().reconcile()
    assert requests.graphql == before + 1
    bench.environment.time.advance(1)
    await bench.made().reconcile()
    assert requests.graphql == before + 2


async def test_application_with_remaining_quota_is_reopened(bench: _ReconcilerEnvironment) -> None:
    await bench.store.mark_exhausted(ExhaustedQuota("demo", 9e9, "spent"))
    bench.bill(1_000)
    await bench.made().reconcile()
    assert len(await bench.store.exhausted_quotas()) == 1
    bench.environment.time.advance(20 * DAY)  # the sandbox's month has turned
    await bench.log_in()
    await bench.made().reconcile()
    assert await bench.store.exhausted_quotas() == []


async def test_different_limit_is_logged_and_not_adopted(
    bench: _ReconcilerEnvironment, log_output: io.StringIO
) -> None:
    await bench.made(parts=1_000).reconcile()
    assert said(log_output, "part limit mismatch") == []
    bench.environment.time.advance(DAY)
    await bench.log_in()
    await bench.made(parts=500).reconcile()
    (line,) = said(log_output, "part limit mismatch")
    assert (line["configured"], line["upstream"]) == (500, 1000)


async def test_unknown_application_is_logged(bench: _ReconcilerEnvironment, log_output: io.StringIO) -> None:
    await bench.made(application_id="00000000-0000-4000-8000-000000000000").reconcile()
    (line,) = said(log_output, "usage reconciliation skipped")
    assert line["reason"] == "the upstream counts no parts for this application_id"
    assert await bench.state() == (0, 0)


async def test_missing_user_token_is_logged_once_and_awaited(
    bench: _ReconcilerEnvironment, log_output: io.StringIO
) -> None:
    bench.file.unlink()
    worker = bench.made()
    for _ in range(3):
        await worker.reconcile()
    (line,) = said(log_output, "usage reconciliation skipped")
    assert line["reason"].startswith("the token the file")
    bench.bill(7)
    await bench.log_in()
    await worker.reconcile()
    assert await bench.state() == (7, 0)


async def test_refused_user_token_is_logged_without_its_value(
    bench: _ReconcilerEnvironment, log_output: io.StringIO
) -> None:
    bench.file.write_text("t0kenPLANTED")
    await bench.made().reconcile()
    (line,) = said(log_output, "usage reconciliation failed")
    assert line["quota_account"] == "demo"
    assert "t0kenPLANTED" not in log_output.getvalue()
    assert await bench.state() == (0, 0)


async def test_last_result_is_kept_for_every_worker(bench: _ReconcilerEnvironment) -> None:
    await bench.store.settle(Settlement("worker", 1, (), (UsageIncrement(NOVEMBER, 10, 5),)))
    bench.bill(40)
    await bench.made().reconcile()
    now = bench.environment.time.now()
    assert await reconciliation.last_results(bench.store) == {
        "demo": reconciliation.ReconciliationResult(
            at=now, period="2023-11", ledger=10, uncertain=5, upstream=40, difference=30, upstream_limit=1000
        )
    }


async def test_reconciling_now_begins_the_day_anew(bench: _ReconcilerEnvironment) -> None:
    await bench.made().reconcile()
    bench.environment.time.advance(60)
    bench.bill(7)
    result = await bench.made().reconcile_now("demo")
    assert result is not None
    assert (result.problem, result.difference, await bench.state()) == (None, 7, (7, 0))
    assert await bench.made().reconcile_now("demo") is None  # by another worker, a moment ago
    with pytest.raises(LookupError):
        await bench.made().reconcile_now("another")


async def test_failed_reconciliation_is_a_result_that_says_why(bench: _ReconcilerEnvironment) -> None:
    bench.file.write_text("t0kenPLANTED")
    refused = await bench.made().reconcile_now("demo")
    bench.file.unlink()
    without_token = await bench.made().reconcile_now("demo")
    assert refused is not None
    assert without_token is not None
    assert refused.problem is not None
    assert "t0kenPLANTED" not in refused.problem
    assert str(without_token.problem).startswith("the token the file")
    assert await reconciliation.last_results(bench.store) == {"demo": without_token}


async def test_configured_proxy_reconciles_by_itself(bench: _ReconcilerEnvironment) -> None:
    bench.bill(40)
    entry = config.ReconciliationSettings(bench.account_id, config.SecretSource(f"file:{bench.file}", Path(), {}))
    sandbox = bench.environment.sandbox
    settings = running_proxy.settings(sandbox.graphql_url, sandbox.token_url, application={"reconcile": entry})
    async with running_proxy.running(settings, bench.environment.time) as proxy:
        for _ in range(1_200):
            text = await (await proxy.get("/metrics")).text()
            if 'v3bridge_parts_used{quota_account="demo"} 40.0' in text:
                return
            await asyncio.sleep(0.05)
    pytest.fail("the gauge never showed the service's count")
