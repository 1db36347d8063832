"""Several machines at one Redis: every page of each has the figures of all."""

import html
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
from support import redis_server as servers
from support import running_admin, running_proxy
from together.admin.test_live_pages import A, B, sampled
from together.environment import ProxyEnvironment, StartEnvironment, target

from proxy import config
from proxy.gateway import callers
from proxy.web import cluster_metrics
from proxy.web.admin import pages

OF_THE_STORE = ("quota", "alerts", "clients", "schema", "comparison")  # pages that have nothing else to read


class TwoMachines:
    """Two services at one Redis, in front of one sandbox."""

    def __init__(self, environment: ProxyEnvironment, admins: list[running_admin.AdminClient]) -> None:
        self.environment = environment
        self.first, self.second = admins

    async def match(self, admin: running_admin.AdminClient, *queries: dict[str, Any]) -> None:
        await admin.proxy.match(json.dumps(queries))


@pytest.fixture
async def machines(start: StartEnvironment, redis_server: servers.RedisServer) -> AsyncIterator[TwoMachines]:
    async with AsyncExitStack() as stack:
        environment = await stack.enter_async_context(start())
        account = environment.sandbox.default_application
        own = {"client_id": config.ClientId(account.client_id), "client_secret": config.Secret(account.client_secret)}
        settings = running_proxy.settings(
            environment.sandbox.graphql_url,
            environment.sandbox.token_url,
            store=redis_server.url,
            application={**own, "parts": 1_000},
        )
        admins = [await stack.enter_async_context(running_admin.running(settings, environment.time)) for _ in range(2)]
        for each in admins:
            await each.service.cluster.publish()
        yield TwoMachines(environment, admins)


async def test_any_machine_shows_the_figures_of_all(machines: TwoMachines) -> None:
    for _ in range(3):
        await machines.match(machines.first, A)
    for _ in range(2):
        await machines.match(machines.second, A, B)
    await machines.second.proxy.get("/v3/parts/match?apikey=WRONG")
    await sampled(machines.environment, machines.first, machines.second)
    billed = machines.environment.billed_parts
    assert billed > 0
    for admin in (machines.first, machines.second):
        overview = await admin.json("/overview.json")
        assert (overview["hour"]["requests"], overview["hour"]["refused"]) == (6, 1)
        assert sum(overview["hour"]["results"].values()) == 7
        # Parts of the ledger are those of both machines already, and are not added up.
        (parts,) = overview["parts"]
        assert (parts["today"], parts["usage"]["used"], parts["usage"]["remaining"]) == (billed, billed, 1_000 - billed)
        assert sum(filter(None, overview["series"]["parts"])) == billed
        names = [each["name"] for each in overview["machines"]]
        assert len(set(names)) == 2
        assert [each["responding"] for each in overview["machines"]] == [True, False]
        assert sorted(each["requests"] for each in overview["machines"]) == [3, 3]
        page = await admin.json("/requests.json")
        assert sorted(each["status"] for each in page["requests"]) == [200] * 5 + [403]
        upstream = await admin.json("/upstream.json")
        assert sum(each["parts"] or 0 for each in upstream["recent"]) == billed


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch) -> list[callers.CallerRecorder]:
    """Recorders of callers of the services that start, which write when a test says so."""
    started: list[callers.CallerRecorder] = []
    monkeypatch.setattr(callers.CallerRecorder, "start", lambda self: started.append(self))
    return started


async def test_clients_quota_and_cache_are_the_same_on_any_machine(
    recorders: list[callers.CallerRecorder], machines: TwoMachines
) -> None:
    await machines.match(machines.first, A)
    await machines.match(machines.second, A, B)
    for recorder in recorders:
        await recorder.write()
    await sampled(machines.environment, machines.first, machines.second)
    billed = machines.environment.billed_parts
    for admin in (machines.first, machines.second):
        (client,) = (await admin.json("/clients.json"))["clients"]
        assert (client["requests"], client["parts"]) == (2, billed)
        (demo,) = (await admin.json("/quota.json"))["applications"]
        assert (demo["usage"]["used"], demo["burn_down"]["days"][-1]["parts"]) == (billed, billed)
        cache = await admin.json("/cache.json")
        assert (cache["workers"], sum(each["queries"] for each in cache["sources"])) == (2, 3)


async def test_condition_of_one_machine_is_shown_by_the_others(machines: TwoMachines) -> None:
    settings = machines.first.service.gateway.settings
    wrong = msgspec.structs.replace(settings.applications["demo"], client_secret=config.Secret("wr0ngPLANTED"))
    refused = msgspec.structs.replace(settings, applications={"demo": wrong})
    async with running_admin.running(refused, machines.environment.time) as other:
        assert (await other.proxy.get(target(A))).status == 502
        await other.service.alerts.evaluate()
        (condition,) = (await machines.first.json("/overview.json"))["conditions"]
        assert (condition["event"], condition["severity"]) == ("token.refused", "critical")
        page = await machines.first.page("/")
        assert f'<a href="/alerts">token.refused</a>: {condition["title"]}' in page
        assert "PLANTED" not in page


async def test_machine_that_is_gone_is_left_out_and_its_notes_are_dropped(machines: TwoMachines) -> None:
    first, second = machines.first.service.cluster, machines.second.service.cluster
    await machines.match(machines.second, A)
    await sampled(machines.environment, machines.first, machines.second)
    before = (await machines.first.json("/overview.json"))["hour"]["requests"]
    store = machines.first.service.gateway.store
    for kind in (cluster_metrics.NOTE, cluster_metrics.ACTIVITY_NOTE):
        assert set(await store.notes(kind)) == {first.name, second.name}
    machines.environment.time.advance(cluster_metrics.STALE_SECONDS + 1)
    await first.publish()
    overview = await machines.first.json("/overview.json")
    assert [each["name"] for each in overview["machines"]] == [first.name]
    # What it has counted stays in the history.
    assert overview["hour"]["requests"] == before == 1
    for kind in (cluster_metrics.NOTE, cluster_metrics.ACTIVITY_NOTE):
        assert set(await store.notes(kind)) == {first.name}


async def test_note_of_another_version_is_left_out(machines: TwoMachines) -> None:
    store = machines.first.service.gateway.store
    await store.put_note(cluster_metrics.NOTE, "another", '{"name": "another", "at": "noon"}')
    machines.environment.time.advance(2)
    assert len((await machines.first.json("/overview.json"))["machines"]) == 2
    await machines.first.service.cluster.publish()
    assert "another" not in await store.notes(cluster_metrics.NOTE)


async def test_pages_name_a_store_that_cannot_be_reached(
    machines: TwoMachines, redis_server: servers.RedisServer
) -> None:
    await machines.match(machines.first, A)
    redis_server.stop()
    try:
        machines.environment.time.advance(2)
        await machines.first.service.cluster.publish()
        overview = await machines.first.json("/overview.json")
        assert overview["store_failure"]
        assert (overview["parts"], len(overview["machines"])) == ([], 1)
        assert "The store cannot be read" in await machines.first.page("/")
        assert len((await machines.first.json("/requests.json"))["requests"]) == 1
    finally:
        redis_server.start()
    machines.environment.time.advance(2)
    await machines.first.service.cluster.publish()
    assert (await machines.first.json("/overview.json"))["store_failure"] is None


async def test_pages_show_what_is_known_without_the_store(
    machines: TwoMachines, redis_server: servers.RedisServer
) -> None:
    admin = machines.first
    await machines.match(admin, A)
    gateway = admin.service.gateway
    await gateway.quota.refresh()
    ((_, before), *_) = gateway.quota.usages()
    assert before.used
    await admin.service.alerts.schema.check()
    redis_server.stop()
    try:
        await gateway.quota.refresh()
        await admin.service.alerts.evaluate()
        shown = {name: await admin.json(f"/{name}.json") for name in OF_THE_STORE}
        for name, data in shown.items():
            assert f"The store cannot be used: {data['store_failure']}" in html.unescape(await admin.page(f"/{name}"))
        quota, alerts, clients = shown["quota"], shown["alerts"], shown["clients"]
        (application,) = quota["applications"]
        assert (application["usage"]["used"], application["usage"]["limit"]) == (before.used, 1_000)
        assert application["burn_down"] is None
        assert [each["event"] for each in alerts["open"]] == ["store.unavailable"]
        assert (clients["clients"], clients["unused"]) == ([], [])
        page = await admin.page("/clients")
        assert "Every configured API key was used" not in page
        assert "Nothing is recorded" not in page
        assert "Nothing was used" not in await admin.page("/quota")
        assert shown["schema"]["state"] == "complete"
        assert (shown["comparison"]["on"], shown["comparison"]["result"]) == (None, None)
        for each in pages.PAGES:
            assert await admin.json(f"/{each.name}.json")
    finally:
        redis_server.start()
    for name in OF_THE_STORE:
        assert (await admin.json(f"/{name}.json"))["store_failure"] is None
        assert "The store cannot be used" not in await admin.page(f"/{name}")


async def test_machine_drops_its_notes_when_it_stops(
    start: StartEnvironment, redis_server: servers.RedisServer
) -> None:
    async with start(admin=True, store=redis_server.url) as environment:
        await environment.admin.service.cluster.publish()
        store = environment.admin.service.gateway.store
        assert len(await store.notes(cluster_metrics.NOTE)) == 1
    async with start(admin=True, store=redis_server.url) as environment:
        figures = environment.admin.service.cluster
        await figures.publish()
        assert set(await environment.admin.service.gateway.store.notes(cluster_metrics.NOTE)) == {figures.name}


async def test_single_machine_writes_no_notes(managed: ProxyEnvironment) -> None:
    await managed.reply(A)
    await sampled(managed)
    assert await managed.admin.service.gateway.store.notes(cluster_metrics.NOTE) == {}
