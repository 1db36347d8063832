"""Tests of `compare --record`: responses of the old service are recorded, to be compared without it."""

import asyncio
import json
import signal
from collections import Counter
from typing import Any

import pytest
from aiohttp import web
from support import commands
from support.served import serve
from together.tools.compare.command.conftest import ServicePair


async def test_baseline_only_recording_is_free_and_resumes(services: ServicePair) -> None:
    services.baseline.answer = lambda q: (
        {"hits": 1} if len(services.baseline.requests) <= 5 else web.Response(status=502)
    )
    baseline = ("--baseline", services.baseline_url, "--rules", "fast.yaml")
    command = (*baseline, "--requests", services.request_file(30), "--record", "rec.jsonl")
    found = await services.compare(*command)
    assert found.code == 2, found
    assert "10 times in a row" in found.err
    services.baseline.answer = lambda q: {"hits": len(q)}
    services.baseline.requests.clear()
    found = await services.compare(*command)
    assert found.code == 0, found
    assert len(services.baseline.requests) == 25
    assert services.candidate.requests == []
    found = await services.compare(
        "--baseline", "rec.jsonl", "--candidate", services.candidate_url, "--yes", "--json", "r.json"
    )
    assert sum(row["requests"] for row in json.loads(services.text("r.json"))["rows"]) == 30, found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
async def test_interrupted_run_goes_on_where_it_stopped(services: ServicePair, how: Any) -> None:
    reached, released = asyncio.Event(), asyncio.Event()

    async def holding(request: Any) -> Any:
        if len(services.candidate.requests) >= 15 and not released.is_set():
            reached.set()
            await released.wait()
        return await services.candidate.handle(request)

    async with serve(holding) as url:
        sides = services.with_candidate(url)
        options = ("--requests", services.request_file(40), "--yes", "--record", "rec.jsonl", "--json", "r.json")
        process = await services.start(*sides, *options)
        async with asyncio.timeout(commands.SECONDS):
            await reached.wait()
        process.send_signal(how)
        if how == signal.SIGKILL:
            await process.wait()
        released.set()
        first = await commands.wait(process)
        found = await services.compare(*sides, *options)
    assert found.code == 0, found
    result = json.loads(services.text("r.json"))
    assert sum(row["requests"] for row in result["rows"]) == 40
    sent = Counter(services.baseline.requests)
    assert set(sent) == set(services.candidate.requests) == {f"part-{n}" for n in range(40)}
    if how == signal.SIGINT:
        assert (first.code, "interrupted" in first.out, max(sent.values())) == (2, True, 1)
    else:  # requests in flight are repeated
        assert sum(sent.values()) - 40 <= 8
