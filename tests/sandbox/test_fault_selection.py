"""Selection of requests for faults: counts, shares, seeds, and several faults at once."""

import random

import aiohttp
from support.fault_injection import FREE, PARTS, billed, declare, raw, statuses, struck, until
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import faults


async def test_a_fault_with_a_count_affects_the_next_requests_only(caller: SandboxClient) -> None:
    declare(caller, "5xx count=2", "429 count=1")
    assert await statuses(caller, 5) == [503, 503, 429, 200, 200]
    assert [left for _, left in caller.sandbox.faults.remaining()] == [0, 0]


async def test_faults_with_shares_affect_disjoint_requests(start: StartSandbox) -> None:
    async with start(rng=random.Random(3)) as caller:
        declare(caller, "5xx share=0.3", "429 share=0.5", "latency ms=1 share=0.2")
        found = await statuses(caller, 400)
    assert 80 <= found.count(503) <= 160
    assert 100 <= found.count(429) <= 180
    assert 40 <= struck(caller)["latency"] <= 120
    assert (struck(caller)["5xx"], struck(caller)["429"]) == (found.count(503), found.count(429))


async def test_the_same_seed_selects_the_same_requests(start: StartSandbox) -> None:
    async def run(seed: int) -> list[int]:
        async with start(rng=random.Random(seed)) as caller:
            declare(caller, "5xx share=0.3", "429 share=0.3")
            return await statuses(caller, 40)

    first = await run(1)
    assert first == await run(1)
    assert first != await run(2)


async def test_faults_of_the_settings_are_active_from_the_start(start: StartSandbox) -> None:
    async with start(faults=faults.parse_faults("429")) as caller:
        assert await statuses(caller, 1) == [429]


async def test_several_faults_leave_complete_responses_correct_and_billing_consistent(
    start: StartSandbox,
) -> None:
    async with start(rng=random.Random(5), token_windows=()) as caller:
        right = (await raw(caller, FREE))[1].partition(b',"extensions"')[0]
        parts = 0
        shares = [f"{kind} share=0.07" for kind in ("reset", "5xx", "429", "401", "expired", "cut", "malformed")]
        declare(caller, "latency ms=1 share=0.2", *shares)
        for _ in range(150):
            try:
                response = await caller.ask(PARTS)
            except (aiohttp.ClientError, OSError, ValueError):
                continue
            if response.status == 401:
                await caller.log_in()
            if response.status == 200:
                parts += len(response.data["supSearch"]["results"])
        caller.sandbox.faults.clear()
        assert (await raw(caller, FREE))[1].partition(b',"extensions"')[0] == right
        totals = caller.sandbox.journal.totals
        await until(lambda: None not in [entry.whole for entry in caller.sandbox.journal.entries])
        assert len(totals.faults) >= 6
        assert totals.spoiled_parts > 0
        assert totals.parts == billed(caller) == parts + totals.spoiled_parts
