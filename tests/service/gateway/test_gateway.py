"""What a gateway learns of other processes of the same store, once a second."""

from contextlib import AsyncExitStack
from pathlib import Path

from proxy import config
from proxy.gateway import assembly as gateway
from proxy.gateway.stored_state import StoredState
from proxy.kit.clock import ManualClock
from proxy.metrics import Metrics

KEY = "a-key"


def settings(folder: Path) -> config.Config:
    application = config.ApplicationSettings(
        apikeys=(config.ApiKeySettings(config.digest(KEY)),), client_id=config.ClientId("id"), parts=100
    )
    upstream = config.UpstreamSettings(graphql_url="http://127.0.0.1:1/graphql", token_url="http://127.0.0.1:1/token")
    store = config.StoreUrl(f"sqlite:{folder / 'state.sqlite'}")
    return config.Config(applications={"demo": application}, upstream=upstream, store=store)


async def test_usage_that_is_set_and_results_that_are_forgotten_elsewhere_are_known(tmp_path: Path) -> None:
    configured, clock = settings(tmp_path), ManualClock()
    async with AsyncExitStack() as resources:
        process = await resources.enter_async_context(gateway.opened_process(configured, clock, Metrics(clock)))
        built = await gateway.build(configured, process, resources)
        client = built.applications.client(KEY)
        forgotten: list[bool] = []
        built.on_forgotten = lambda: forgotten.append(True)
        await built.refresh()
        assert (built.quota_status(client).used, forgotten) == (0, [])
        other = await resources.enter_async_context(StoredState.open(configured, clock))
        await other.set_usage("demo", 70)
        await other.forget_results()
        for _ in range(2):
            await built.refresh()
            assert (built.quota_status(client).used, forgotten) == (70, [True])


async def test_another_configuration_keeps_mappings_and_circuit_breaker(tmp_path: Path) -> None:
    configured, clock = settings(tmp_path), ManualClock()
    async with AsyncExitStack() as resources:
        process = await resources.enter_async_context(gateway.opened_process(configured, clock, Metrics(clock)))
        before = await gateway.build(configured, process, resources)
        after = await gateway.build(configured, process, resources)
        assert (after.projections, after.breaker) == (before.projections, before.breaker)
