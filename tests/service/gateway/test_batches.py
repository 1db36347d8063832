"""What metrics say of batches."""

import asyncio

from service.gateway.world import Runs, Upstream, World, client, uid

from proxy.planning.queries import matching


def test_batches_are_counted_and_those_that_wait_for_a_connection(runs: Runs) -> None:
    upstream = Upstream({"A": [uid(1)], "B": [uid(2)], "C": [uid(3)]}, seconds=1.0)

    async def main(world: World) -> None:
        state = world.state()
        process = world.process(connections=1, state=state)

        def value(name: str) -> float | None:
            return state.metrics.registry.get_sample_value(f"v3bridge_{name}")

        async def ask(number: str) -> None:
            await world.resolve(process, client(), [matching(0, 1, mpn=number)])

        first = asyncio.create_task(ask("A"))
        await asyncio.sleep(0.5)
        others = [asyncio.create_task(ask(number)) for number in ("B", "C")]
        await asyncio.sleep(0.1)
        assert (value("upstream_batches_waiting"), value("batched_requests_total")) == (1, 0)
        await asyncio.gather(first, *others)
        assert (value("upstream_batches_waiting"), value("batched_requests_total")) == (0, 2)
        assert len(upstream.operations) == 2

    runs(upstream, main)
