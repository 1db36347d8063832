"""Faults of the identity service, and of both services."""

import aiohttp
import pytest
from support.fault_injection import ANSWER, FREE, declare, struck
from support.sandbox_client import SandboxClient

from proxy.kit import clock


@pytest.mark.parametrize("text", ["reset", "cut", "malformed body=empty", "malformed body=html", "429", "5xx"])
async def test_transport_faults_affect_the_token_endpoint(
    caller: SandboxClient, text: str, manual_clock: clock.ManualClock
) -> None:
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
