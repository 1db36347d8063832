"""Faults of the identity service: tokens without expiry, clock skew, and faults of both services."""

import aiohttp
import jwt
import pytest
from support.fault_injection import ANSWER, FREE, declare, struck
from support.sandbox_client import SandboxClient

from proxy.kit import clock


@pytest.mark.parametrize(
    "lacks, has", [("expires_in", (False, True)), ("exp", (True, False)), ("both", (False, False))]
)
async def test_a_token_without_an_expiry_is_valid(
    caller: SandboxClient, lacks: str, has: tuple[bool, bool], manual_clock: clock.ManualClock
) -> None:
    declare(caller, f"no-expiry lacks={lacks}")
    response = await caller.log_in()
    claims = jwt.decode(caller.token, options={"verify_signature": False})
    assert ("expires_in" in response.body, "exp" in claims) == has
    assert (await caller.ask(FREE)).data == ANSWER
    manual_clock.advance(86_400)
    assert (await caller.ask(FREE)).status == (401 if has[1] else 200)
    assert struck(caller) == {"no-expiry": 1}


@pytest.mark.parametrize("seconds, code", [(7200, "AuthInvalidToken"), (-90_000, "AuthExpiredToken"), (-7200, None)])
async def test_clock_skew_affects_the_token_and_the_date_header(
    caller: SandboxClient, seconds: int, code: str | None, manual_clock: clock.ManualClock
) -> None:
    declare(caller, f"wrong-clock seconds={seconds}")
    response = await caller.log_in()
    claims = jwt.decode(caller.token, options={"verify_signature": False, "verify_exp": False, "verify_iat": False})
    assert claims["exp"] == int(manual_clock.now()) + seconds + 86_400
    assert (seconds, response.headers["Date"]) in {
        (7200, "Wed, 15 Nov 2023 00:13:20 GMT"),
        (-90_000, "Mon, 13 Nov 2023 21:13:20 GMT"),
        (-7200, "Tue, 14 Nov 2023 20:13:20 GMT"),
    }
    asked = await caller.ask(FREE)
    assert asked.status == (401 if code else 200)
    assert not code or asked.body["errors"][0]["extensions"]["code"] == code


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
