"""Shadowing: responses are the same as without it, and the results are in the store."""

import asyncio
import io
import json
import os
import re
import signal
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yarl
from aiohttp import web
from support import running_proxy, scripted_v3
from support.fault_injection import until
from together.environment import RawResponse, StartEnvironment, target
from together.shadowing import ALONE, seen

import nexar_sandbox
from proxy import config, errors
from proxy.shadow import judge_client, results
from proxy.tools.compare.shadow import report

ONE = {"mpn": "SN74S74N"}
ASKED = target(ONE)
CHANGING = re.compile(rb'"msec": ?\d+')  # the time a request took


def same(response: RawResponse) -> tuple[int, bytes, dict[str, str]]:
    """A response apart from what differs from request to request."""
    passing = ("date", "x-request-id", "content-length", "x-parts-used")
    headers = {name: value for name, value in response.headers.items() if name not in passing}
    return response.status, CHANGING.sub(b"", response.body), headers


async def test_equal_responses_are_equivalent(shadowed: Any, baseline: scripted_v3.ScriptedV3Service) -> None:
    async with shadowed() as found:
        body = (await found.environment.get(ASKED)).body
        await found.counted(1, "compared", outcome="different")
        baseline.behavior = scripted_v3.responding(body, **{"Content-Type": "application/json"})
        await found.environment.get(ASKED)
        await found.counted(1, "compared", outcome="equivalent")
        tally = await found.noted(2)
        (row,) = tally.rows.values()
        assert (row.client, row.endpoint, row.compared, row.differing) == ("demo/1", "/parts/match", 2, 1)
        assert await found.count("requests") == 3  # the old service once more, where it differed
        assert baseline.requests[0] == ASKED


async def test_stored_results_hold_no_api_key(
    shadowed: Any, baseline: scripted_v3.ScriptedV3Service, log_output: io.StringIO
) -> None:
    key = running_proxy.KEY
    baseline.behavior = scripted_v3.responding({"click": f"http://old/?apikey={key}", key: key, "list": [{"a": key}]})
    async with shadowed() as found:
        await found.environment.get(f"{ASKED}&{key}={key}&apikey[]={key}&hide[]=x{key}")
        text = json.dumps(await found.noted(1), default=str)
        notes = await found.store.notes(results.TALLIES)
        assert notes
        assert all(key not in note for note in notes.values())
        assert key not in text
        page = (await found.environment.get("/metrics")).body.decode()
    kept = b"".join(file.read_bytes() for file in found.file.parent.iterdir() if file.is_file())
    assert key.encode() not in kept
    assert key not in page
    assert key not in log_output.getvalue()


async def refuse(_: Any) -> Any:
    raise RuntimeError


FAILURES: dict[str, Any] = {
    "stalls": None,
    "crashes": scripted_v3.abort_connection,
    "breaks off": scripted_v3.truncate_response,
    "never ends": scripted_v3.drip_bytes,
    "fails": refuse,
    "sent HTML": scripted_v3.responding(b"<html>gone</html>", **{"Content-Type": "text/html"}),
    "answers nonsense": scripted_v3.responding(b"\x00\xff{", **{"Content-Type": "application/json"}),
    "answers with much": scripted_v3.responding([{"a": "x" * 1_000_000}] * 5),
}
LOAD = [target({"mpn": f"SN74{number}"}, ONE, more="&pretty_print=1" * (number % 2)) for number in range(15)]
LOAD += [
    "/v3/parts/match?apikey=EXAMPLE_KEY",
    "/v3/parts/none?apikey=EXAMPLE_KEY",
    "/api/v3/sellers/search?apikey=EXAMPLE_KEY&q=d",
]


@pytest.fixture
async def plain(start: StartEnvironment) -> list[Any]:
    """Fixture: responses to the load without a shadow."""
    async with start(**ALONE) as environment:
        return [same(response) for response in await asyncio.gather(*(environment.get(each) for each in LOAD))]


@pytest.mark.parametrize("what", FAILURES)
async def test_baseline_service_never_affects_a_response(
    shadowed: Any, baseline: scripted_v3.ScriptedV3Service, plain: list[Any], what: str
) -> None:
    baseline.behavior = FAILURES[what] or baseline.stall
    patient = config.TimeoutSettings(
        total_seconds=3600, first_byte_seconds=3600
    )  # a response that waited would not come
    async with shadowed(queue=5, timeouts=patient) as found, asyncio.timeout(120):
        for _ in range(2):
            responses = await asyncio.gather(*(found.environment.get(each) for each in LOAD))
            assert [same(response) for response in responses] == plain
        async with asyncio.timeout(30):
            await until(lambda: baseline.requests)
        dropped = await found.count("dropped", reason="queue")
        assert dropped > 0
        assert (await found.environment.get("/healthz")).status == 200


async def test_unreachable_baseline_service_affects_no_response(
    shadowed: Any, unreachable_url: str, plain: list[Any]
) -> None:
    async with shadowed(baseline_url=f"{unreachable_url}/v3") as found:
        responses = await asyncio.gather(*(found.environment.get(each) for each in LOAD))
        assert [same(response) for response in responses] == plain
        await found.counted(len(LOAD), "errors", side="baseline")


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
async def test_dead_judge_process_affects_no_response_and_is_replaced(
    shadowed: Any,
    baseline: scripted_v3.ScriptedV3Service,
    plain: list[Any],
    signal_: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes: list[judge_client.JudgeClient] = []
    made = judge_client.JudgeClient.__init__

    def noticed(self: judge_client.JudgeClient, settings: Any) -> None:
        made(self, settings, seconds=5.0)
        processes.append(self)

    monkeypatch.setattr(judge_client.JudgeClient, "__init__", noticed)
    async with shadowed() as found:
        await found.environment.get(ASKED)
        async with asyncio.timeout(60):  # the first note; what the sandbox says would change with the clock
            while await report.read_tally(found.store) is None:
                await asyncio.sleep(0.02)
        (process,) = processes
        first = process.pid
        assert first is not None
        os.kill(first, signal_)
        responses = await asyncio.gather(*(found.environment.get(each) for each in LOAD))
        assert [same(response) for response in responses] == plain
        await found.counted(1, "errors", side="judge")
        await found.noted(10)  # what was noted before among it
        assert process.pid not in (None, first)


async def test_switch_stops_and_restarts_shadowing_at_runtime(
    shadowed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    async with shadowed(connections=1) as found:
        baseline.behavior = baseline.stall
        for _ in range(3):
            await found.environment.get(ASKED)
        await until(lambda: baseline.requests)
        await results.switch(found.store, False)
        await found.counted(2, "dropped", reason="off")
        asked = len(baseline.requests)
        baseline.behavior = scripted_v3.responding({})
        await found.environment.get(ASKED)
        assert len(baseline.requests) == asked
        await results.switch(found.store, True)
        async with asyncio.timeout(30):
            while len(baseline.requests) == asked:
                await found.environment.get(ASKED)
                await asyncio.sleep(0.05)


async def test_circuit_breaker_opens_for_a_failing_baseline_service(
    shadowed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    baseline.behavior = scripted_v3.abort_connection
    async with shadowed(breaker=config.BreakerSettings(failures=3, cooldown_seconds=60), connections=1) as found:
        for number in range(3):
            await found.environment.get(ASKED)
            await found.counted(number + 1, "errors", side="baseline")
        asked = len(baseline.requests)
        for _ in range(5):
            await found.environment.get(ASKED)
        assert await found.count("dropped", reason="breaker") == 5
        assert b'v3bridge_circuit_breaker_state{service="shadow"} 2.0' in (await found.environment.get("/metrics")).body
        assert len(baseline.requests) == asked
        found.environment.time.advance(90)
        baseline.behavior = scripted_v3.responding({})
        await found.environment.get(ASKED)
        await found.counted(1, "compared", outcome="different")
        assert b'v3bridge_circuit_breaker_state{service="shadow"} 0.0' in (await found.environment.get("/metrics")).body


async def test_cached_response_is_not_compared(shadowed: Any, baseline: scripted_v3.ScriptedV3Service) -> None:
    async with shadowed(cache={"seconds": 60}) as found:
        for _ in range(4):
            await found.environment.get(ASKED)
        assert seen(await found.noted(1)) == 1
        assert len(baseline.requests) == 2  # once, and once again for the difference


async def test_refusals_of_this_service_alone_are_not_compared(
    shadowed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    keys = [config.ApiKeySettings(config.digest(key)) for key in (running_proxy.KEY, "another")]
    ended = msgspec.structs.replace(keys[0], sunset=config.SunsetSettings(date(2023, 1, 1)))
    async with shadowed(application={"apikeys": (ended, keys[1])}) as found:
        assert (await found.environment.get(ASKED)).status == 410
        await found.environment.get(target(ONE, key="another"))
        assert seen(await found.noted(1)) == 1
    assert {"another" in each for each in baseline.requests} == {True}


async def test_candidate_failure_is_counted_without_a_baseline_request(
    shadowed: Any, baseline: scripted_v3.ScriptedV3Service, unreachable_url: str
) -> None:
    async with shadowed(urls={"graphql_url": f"{unreachable_url}/graphql"}) as found:
        assert (await found.environment.get(ASKED)).status == 503
        await found.counted(1, "errors", side="candidate")
        (failure,) = (await found.noted(1)).failures.values()
        assert failure.reason.startswith("candidate: is unavailable (HTTP 503): ")
        assert baseline.requests == []


async def test_results_survive_a_restart_and_can_be_reset(
    shadowed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    async with shadowed() as found:
        await found.environment.get(ASKED)
        await found.counted(1, "compared", outcome="different")
    async with shadowed() as found:  # the first has noted it at its end
        assert seen(await found.noted(1)) == 1
        await found.environment.get(ASKED)
        assert seen(await found.noted(2)) == 2
        assert len(await found.store.notes(results.TALLIES)) == 1
        await results.reset(found.store)
        assert await report.read_tally(found.store) is None
        async with asyncio.timeout(30):
            while await report.read_tally(found.store) is None:
                await found.environment.get(ASKED)
                found.environment.time.advance(5)
                await asyncio.sleep(0.05)


async def test_shadowing_without_share_is_off(shadowed: Any, baseline: scripted_v3.ScriptedV3Service) -> None:
    async with shadowed(share=0.0) as found:
        await found.environment.get(ASKED)
        assert b"v3bridge_shadow_requests_total{" not in (await found.environment.get("/metrics")).body
        assert b'service="shadow"' not in (await found.environment.get("/metrics")).body
    assert baseline.requests == []


async def test_sandbox_baseline_and_candidate_are_equivalent(
    shadowed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    async with shadowed(sandbox={"legacy": nexar_sandbox.LegacySettings(requests_per_second=None)}) as found:

        async def forward(request: web.Request) -> web.StreamResponse:
            url = yarl.URL(found.environment.sandbox.legacy_url + request.raw_path, encoded=True)
            async with found.environment.proxy.session.get(url) as response:
                return web.Response(
                    body=await response.read(), status=response.status, content_type=response.content_type
                )

        baseline.behavior = forward
        asked = [
            target({"mpn": "SN74S74N"}, {"mpn": "none such"}),
            target({"q": "SN74", "limit": 5}, more="&include[]=datasheets"),
            f"/api/v3/sellers/search?apikey={running_proxy.KEY}&q=digi&limit=2&callback=show.it",
            f"/v3/parts/none-such?apikey={running_proxy.KEY}",
        ]
        for each in asked:
            await found.environment.get(each)
        tally = await found.noted(len(asked))
        # The sides cannot share unrecorded uids: these differ and do not count.
        assert ({group.kind for group in tally.groups.values()}, tally.failures) == ({"uid not known"}, {})
        assert await found.count("compared", outcome="equivalent") == len(asked)


async def test_comparison_rules_give_a_client_another_name_and_key(
    shadowed: Any, baseline: scripted_v3.ScriptedV3Service, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(f'keys: [{{name: erp, source: "{running_proxy.KEY}", baseline: "the-0ld-key"}}]\nrules: []\n')
    baseline.behavior = scripted_v3.responding({"link": "http://old.example/?apikey=the-0ld-key", "the-0ld-key": 1})
    async with shadowed(rules=config.File(rules)) as found:
        await found.environment.get(ASKED)
        (row,) = (await found.noted(1)).rows.values()
        assert row.client == "erp"
        notes = await found.store.notes(results.TALLIES)
    assert all("apikey=the-0ld-key" in each and running_proxy.KEY not in each for each in baseline.requests)
    assert not any("the-0ld-key" in note for note in notes.values())


async def test_invalid_comparison_rules_stop_the_start(shadowed: Any, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [{path: hits}]")
    with pytest.raises(errors.ConfigError, match=r"rules\.yaml:1:9: rules\[0\]"):
        async with shadowed(rules=config.File(rules)):
            pass
