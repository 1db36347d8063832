"""Faults: their declaration, which requests they affect, what a plain client sees, and what is billed."""

import asyncio
import random
from typing import Any

import aiohttp
import pytest
from acceptance import running
from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

import nexar_sandbox
from nexar_sandbox import faults
from proxy.kit import clock

PARTS = '{ supSearch(q: "", limit: 3) { results { part { mpn totalAvail } } } }'
FREE = '{ supSellers(ids: ["459"]) { name } }'
ANSWER = {"supSellers": [{"name": "Digi-Key"}]}


def declare(caller: SandboxClient, *texts: str) -> None:
    """Replace the declared faults."""
    caller.sandbox.faults.replace([fault for text in texts for fault in nexar_sandbox.parse_faults(text)])


def billed(caller: SandboxClient) -> int:
    return caller.sandbox.billed_parts


def struck(caller: SandboxClient) -> dict[str, int]:
    """Injected faults by kind, as the journal counts them."""
    return dict(caller.sandbox.journal.totals.faults)


async def raw(caller: SandboxClient, query: str = PARTS) -> tuple[int, bytes, Any]:
    """Status, body and headers, whatever the body is."""
    options: dict[str, Any] = {"json": {"query": query}, "headers": {"token": caller.token}}
    async with caller.session.post(caller.sandbox.graphql_url, **options) as response:
        return response.status, await response.read(), response.headers


async def statuses(caller: SandboxClient, count: int) -> list[int]:
    return [(await raw(caller, FREE))[0] for _ in range(count)]


@pytest.mark.parametrize(
    "text, fault",
    [
        ("latency", faults.LatencyFault()),
        ("latency ms=50 share=0.5", faults.LatencyFault(ms=50, share=0.5)),
        ("  reset   on=both count=3 ", faults.ResetFault(on="both", count=3)),
        ("5xx status=502 body=json retry_after=0", faults.ServerErrorFault(status=502, body="json", retry_after=0)),
        ("429 share=1", faults.RateLimitFault(share=1.0)),
        ("quota", faults.QuotaFault(at=None)),
        ("quota at=0", faults.QuotaFault(at=0)),
    ],
)
def test_a_fault_text_has_a_kind_and_parameters(text: str, fault: faults.Fault) -> None:
    assert faults.parse_faults(text) == (fault,)


@cases.parametrize("declared, complaint")
def test_an_invalid_fault_is_named_with_word_and_value(declared: object, complaint: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is what is tested)
        faults.read_faults(declared)
    assert complaint in str(caught.value)


def test_one_fault_is_selected_plus_latency_in_any_position() -> None:
    declared = [one for text in ("5xx", "429", "latency ms=10", "latency ms=5") for one in faults.parse_faults(text)]
    drawing = faults.FaultInjector(declared, random.Random(1))
    assert drawing.draw("graphql") == faults.InjectedFault(0.015, faults.ServerErrorFault())
    assert drawing.draw("token") is faults.NO_FAULT


async def test_a_fault_of_the_settings_with_a_count_affects_the_next_requests_only(start: StartSandbox) -> None:
    declared = faults.read_faults(["5xx count=2", "429 count=1"])
    async with start(faults=declared) as caller:
        assert await statuses(caller, 5) == [503, 503, 429, 200, 200]
        assert [left for _, left in caller.sandbox.faults.remaining()] == [0, 0]


async def test_shares_affect_disjoint_requests_and_the_same_ones_with_the_same_seed(start: StartSandbox) -> None:
    async def run(seed: int) -> list[int]:
        async with start(rng=random.Random(seed)) as caller:
            declare(caller, "5xx share=0.3", "429 share=0.5", "latency ms=1 share=0.2")
            found = await statuses(caller, 100)
            assert (struck(caller)["5xx"], struck(caller)["429"]) == (found.count(503), found.count(429))
            assert 10 <= struck(caller)["latency"] <= 30
            return found

    first = await run(1)
    assert 20 <= first.count(503) <= 40
    assert 23 <= first.count(429) <= 47
    assert first == await run(1)
    assert first != await run(2)


async def test_several_faults_leave_complete_responses_correct_and_billing_consistent(start: StartSandbox) -> None:
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
        totals, journal = caller.sandbox.journal.totals, caller.sandbox.journal
        await asyncio.to_thread(running.until, lambda: None not in [entry.whole for entry in journal.entries])
        assert len(totals.faults) >= 6
        assert totals.spoiled_parts > 0
        assert totals.parts == billed(caller) == parts + totals.spoiled_parts


async def test_a_5xx_can_have_the_body_of_the_service_and_it_or_a_429_retry_after(caller: SandboxClient) -> None:
    declare(caller, "5xx status=500 body=json retry_after=7")
    response = await caller.ask(PARTS)
    assert (response.status, response.messages) == (500, ["Unexpected Execution Error"])
    assert response.headers["Retry-After"] == "7"
    declare(caller, "5xx status=500 body=json on=token")
    response = await caller.log_in()
    assert (response.status, response.body) == (500, {"error": "server_error"})
    declare(caller, "429 retry_after=3")
    status, _, headers = await raw(caller)
    assert (status, headers["Retry-After"], billed(caller)) == (429, "3", 0)


async def test_an_expired_token_fault_lasts_and_spares_newer_tokens(caller: SandboxClient) -> None:
    declare(caller, "expired count=1")
    for _ in range(2):
        response = await caller.ask(PARTS)
        assert (response.status, response.messages) == (401, ["The access token has expired"])
        assert response.body["errors"][0]["extensions"]["code"] == "AuthExpiredToken"
    caller.sandbox.faults.clear()
    assert (await caller.ask(FREE)).status == 401
    await caller.log_in()
    assert (await caller.ask(FREE)).data == ANSWER
    assert (struck(caller), billed(caller)) == ({"expired": 1}, 0)


async def test_a_malformed_response_has_status_200_and_is_billed(caller: SandboxClient) -> None:
    _, whole, _ = await raw(caller)
    declare(caller, "malformed")
    status, half, headers = await raw(caller)
    assert (status, len(half)) == (200, len(whole) // 2)
    assert half.startswith(b'{"data":')
    assert headers["Content-Type"].startswith("application/json")
    declare(caller, "malformed body=empty")
    assert (await raw(caller))[:2] == (200, b"")
    declare(caller, "malformed body=html")
    status, page, headers = await raw(caller)
    assert (status, page[:6], headers["Content-Type"]) == (200, b"<html>", "text/html; charset=utf-8")
    assert (struck(caller), billed(caller)) == ({"malformed": 3}, 12)
    assert caller.sandbox.journal.totals.spoiled_parts == 9


async def test_a_disconnect_ends_a_slow_response_and_is_billed(caller: SandboxClient) -> None:
    declare(caller, "slow-loris ms=60000", "latency ms=1")
    options: dict[str, Any] = {"json": {"query": PARTS}, "headers": {"token": caller.token}}
    async with caller.session.post(caller.sandbox.graphql_url, **options) as response:
        assert response.status == 200
    await asyncio.to_thread(running.until, lambda: caller.sandbox.journal.entries[-1].whole is False)
    assert (billed(caller), caller.sandbox.journal.totals.spoiled_parts) == (3, 3)


async def test_a_quota_fault_is_the_limit_until_it_is_removed(caller: SandboxClient) -> None:
    declare(caller, "quota at=5")
    assert (await caller.ask(PARTS)).data
    assert (await caller.ask(PARTS)).data
    refused = await caller.ask(PARTS)
    assert (refused.status, refused.body["data"]) == (200, None)
    assert refused.messages[0].startswith("You have exceeded your part limit of 5. ")
    counts = await caller.ask(
        "query($id: String!) { admApplicationById(id: $id) { supplyCounts { partCounter partLimit } } }",
        {"id": caller.sandbox.default_application.application_id},
    )
    assert counts.data["admApplicationById"]["supplyCounts"] == {"partCounter": 6, "partLimit": 5}
    assert (struck(caller), billed(caller)) == ({"quota": 1}, 6)
    caller.sandbox.faults.clear()
    assert (await caller.ask(PARTS)).data


async def test_quota_without_number_exhausts_every_month(start: StartSandbox, manual_clock: clock.ManualClock) -> None:
    async with start(token_lifetime=90 * 86_400) as caller:
        await caller.ask(PARTS)
        declare(caller, "quota")
        assert (await caller.ask(PARTS)).messages[0].startswith("You have exceeded your part limit of 3. ")
        assert (await caller.ask(FREE)).data == ANSWER
        manual_clock.advance(40 * 86_400)
        assert (await caller.ask(PARTS)).messages[0].startswith("You have exceeded your part limit of 0. ")


async def test_a_second_quota_fault_is_rejected(caller: SandboxClient) -> None:
    with pytest.raises(ValueError, match="only one is allowed, not 2"):
        declare(caller, "quota at=5", "quota")


@pytest.mark.parametrize("text", ["reset", "cut", "malformed body=empty", "malformed body=html", "429", "5xx"])
async def test_transport_faults_hit_tokens(caller: SandboxClient, text: str, manual_clock: clock.ManualClock) -> None:
    declare(caller, f"{text} on=token count=1")
    assert (await caller.ask(FREE)).data == ANSWER
    with pytest.raises((ValueError, aiohttp.ClientError, OSError)):
        await caller.log_in()
    manual_clock.advance(1)
    assert (await caller.log_in()).status == 200
    assert sum(struck(caller).values()) == 1


async def test_a_fault_on_both_affects_both_services(caller: SandboxClient) -> None:
    declare(caller, "5xx body=json on=both")
    assert ((await caller.log_in()).status, (await caller.ask(FREE)).status) == (503, 503)
