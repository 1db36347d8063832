"""Each fault over a socket, as a plain client sees it, and its billing."""

from typing import Any

import pytest
from support.fault_injection import ANSWER, FREE, PARTS, billed, declare, raw, struck, until
from support.sandbox_client import SandboxClient, StartSandbox

from proxy.kit import clock


async def test_a_5xx_can_have_the_body_of_the_service_and_retry_after(caller: SandboxClient) -> None:
    declare(caller, "5xx status=500 body=json retry_after=7")
    response = await caller.ask(PARTS)
    assert (response.status, response.messages) == (500, ["Unexpected Execution Error"])
    assert response.headers["Retry-After"] == "7"
    declare(caller, "5xx status=500 body=json on=token")
    response = await caller.log_in()
    assert (response.status, response.body) == (500, {"error": "server_error"})


async def test_a_429_has_retry_after(caller: SandboxClient) -> None:
    declare(caller, "429 retry_after=3")
    status, _, headers = await raw(caller)
    assert (status, headers["Retry-After"]) == (429, "3")
    assert (struck(caller), billed(caller)) == ({"429": 1}, 0)


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
    await until(lambda: caller.sandbox.journal.entries[-1].whole is False)
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


async def test_a_quota_fault_without_a_number_exhausts_every_month(
    start: StartSandbox, manual_clock: clock.ManualClock
) -> None:
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
