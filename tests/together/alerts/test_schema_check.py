"""Tests of the schema check on the sandbox: who checks, when, and what a failure means."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from together.environment import ProxyEnvironment, StartEnvironment

import nexar_sandbox
from proxy.alerts import schema_check
from proxy.alerts.schema_check import SchemaCheck
from proxy.config import changes
from proxy.gateway.assembly import Gateway

HOUR = 3600


@pytest.fixture
async def managed(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    async with start(admin=True) as environment:
        yield environment


def gateway(environment: ProxyEnvironment) -> Gateway:
    return environment.admin.service.gateway


def worker(environment: ProxyEnvironment) -> SchemaCheck:
    """A check of one worker, which does nothing by itself."""
    return SchemaCheck(lambda: gateway(environment), rng=random.Random(1))


def introspections(environment: ProxyEnvironment) -> int:
    return sum("__schema" in document for document, _ in environment.sandbox.documents)


def remove(environment: ProxyEnvironment, *fields: str) -> None:
    """Remove fields from the sandbox's schema."""
    environment.sandbox.faults.replace(
        [each for field in fields for each in nexar_sandbox.parse_faults(f"missing-field field={field}")]
    )


async def test_one_worker_checks_once_a_day_after_a_delay(managed: ProxyEnvironment) -> None:
    workers = [worker(managed) for _ in range(3)]

    async def pass_time(seconds: float) -> None:
        for _ in range(int(seconds // 60)):
            await asyncio.gather(*(each.check_if_due() for each in workers))
            managed.time.advance(60)

    for each in workers:
        await each.check_if_due()
    assert introspections(managed) == 0  # not at the moment of the start
    await pass_time(schema_check.DELAY_MAX + 120)
    assert introspections(managed) == 1
    assert {each.report.state for each in workers if each.report} == {"complete"}
    await pass_time(23 * HOUR)
    assert introspections(managed) == 1
    await pass_time(2 * HOUR)
    assert introspections(managed) == 2
    assert managed.billed_parts == 0


async def test_result_of_other_mappings_is_not_taken(
    managed: ProxyEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(gateway(managed).contents, changes.MAPPINGS, "an earlier version")
        await worker(managed).check()
    current = worker(managed)
    for _ in range(14):
        await current.check_if_due()
        managed.time.advance(60)
    assert introspections(managed) == 2
    assert current.report is not None
    assert current.report.expected == current.expected


async def test_two_versions_on_one_store_have_a_result_each(
    managed: ProxyEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents, store = gateway(managed).contents, gateway(managed).store
    own = contents[changes.MAPPINGS]
    checks = {version: worker(managed) for version in ("another version", own)}
    for _ in range(4 * 60):
        for version, check in checks.items():
            with monkeypatch.context() as patch:
                patch.setitem(contents, changes.MAPPINGS, version)
                await check.check_if_due()
        managed.time.advance(60)
    assert introspections(managed) == 2
    assert {version: check.report and check.report.expected for version, check in checks.items()} == {
        version: version for version in checks
    }
    assert set(await store.notes(schema_check.NOTE)) == set(checks)
    managed.time.advance(schema_check.KEPT_SECONDS)
    await checks[own].check()
    assert set(await store.notes(schema_check.NOTE)) == {own}


async def test_check_can_be_switched_off(start: StartEnvironment) -> None:
    async with start(admin=True, schema_check={"hours": 0}) as environment:
        checking = worker(environment)
        for _ in range(100):
            await checking.check_if_due()
            environment.time.advance(HOUR)
        assert introspections(environment) == 0
        assert (await checking.check()).state == "complete"  # by hand all the same


async def test_drift_names_fields_and_is_measured(managed: ProxyEnvironment) -> None:
    remove(managed, "SupPart.octopartUrl", "Query.supCategories")
    report = await worker(managed).check()
    assert report.state == "drift"
    assert {each.place for each in report.drifts} >= {"SupPart.octopartUrl", "Query.supCategories"}
    measures = gateway(managed).metrics
    assert measures.schema_drifts[()] == len(report.drifts)
    managed.time.advance(90)
    assert "v3bridge_schema_check_age_seconds 90.0" in await (await managed.admin.send("GET", "/metrics")).text()


async def test_forbidden_introspection_is_no_drift(start: StartEnvironment) -> None:
    async with start(admin=True, sandbox={"behavior": nexar_sandbox.deviate(["introspection"])}) as environment:
        report = await worker(environment).check()
        assert (report.state, report.drifts) == ("unknown", ())
        assert report.failure


async def test_failed_check_leaves_the_last_comparison_and_is_repeated_within_the_hour(
    managed: ProxyEnvironment,
) -> None:
    checking = worker(managed)
    remove(managed, "SupPart.octopartUrl")
    compared = await checking.check()
    managed.sandbox.faults.replace(nexar_sandbox.parse_faults("5xx on=graphql status=500"))
    managed.time.advance(25 * HOUR)
    failed = await checking.check()
    assert (failed.state, failed.drifts, failed.compared) == ("drift", compared.drifts, compared.compared)
    assert failed.failure
    managed.sandbox.faults.replace([])
    before = introspections(managed)
    for _ in range(75):
        await checking.check_if_due()
        managed.time.advance(60)
    assert introspections(managed) == before + 1
    assert checking.report is not None
    assert (checking.report.state, checking.report.failure) == ("complete", "")


@pytest.mark.parametrize("service", ["token", "graphql"])
async def test_check_under_way_at_a_reload_is_repeated_with_the_new_upstream(
    start: StartEnvironment, service: str
) -> None:
    async with start(admin=True) as before, start(admin=True) as after:
        gateways = [gateway(before)]
        before.sandbox.faults.replace(nexar_sandbox.parse_faults(f"latency on={service} ms=60000"))
        remove(after, "SupPart.octopartUrl")
        check = asyncio.create_task(SchemaCheck(lambda: gateways[-1]).check())
        while not any(entry.service == service for entry in before.sandbox.journal.entries):
            await asyncio.sleep(0.005)
        gateways.append(gateway(after))
        await gateways[0].services.tokens.close()
        await gateways[0].services.http.close()
        report = await check
        assert (report.failure, report.state) == ("", "drift")
        assert introspections(after) == 1


async def test_cancelled_check_is_not_repeated(start: StartEnvironment) -> None:
    async with start(admin=True) as before, start(admin=True) as after:
        gateways = [gateway(before)]
        before.sandbox.faults.replace(nexar_sandbox.parse_faults("latency on=graphql ms=60000"))
        check = asyncio.create_task(SchemaCheck(lambda: gateways[-1]).check())
        while not introspections(before):
            await asyncio.sleep(0.005)
        gateways.append(gateway(after))
        check.cancel()
        await asyncio.wait((check,))
        assert check.cancelled()
        assert introspections(after) == 0


async def test_clock_that_was_ahead_postpones_no_check(managed: ProxyEnvironment) -> None:
    managed.time.advance(400 * 24 * HOUR)
    checking = worker(managed)
    await checking.check()
    managed.time.advance(-300 * 24 * HOUR)
    for _ in range(14):
        await checking.check_if_due()
        managed.time.advance(60)
    assert introspections(managed) == 2


async def test_background_task_checks_and_ends(managed: ProxyEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_check, "DELAY_MAX", 0.0)
    checking = SchemaCheck(lambda: gateway(managed), rng=random.Random(1), poll_seconds=0.001)
    checking.start()
    while checking.report is None:
        await asyncio.sleep(0.005)
    await checking.close()
    assert checking.report.state == "complete"
