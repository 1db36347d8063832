"""Tests of `compare --record`: responses are recorded, to be compared without the old service."""

import json
from pathlib import Path
from typing import Any

from aiohttp import web


async def test_baseline_only_recording_is_free_and_resumes(
    run_command: Any, services: Any, make_request_file: Any, tmp_path: Path
) -> None:
    services.baseline.answer = lambda q: (
        {"hits": 1} if len(services.baseline.requests) <= 5 else web.Response(status=502)
    )
    baseline = ("--baseline", services.baseline_url, "--baseline-rate", "0")
    command = ("compare", *baseline, "--requests", make_request_file(30), "--record", "rec.zst")
    found = await run_command(*command)
    assert found.code == 2, found
    assert "10 times in a row" in found.err
    services.baseline.answer = lambda q: {"hits": len(q)}
    services.baseline.requests.clear()
    found = await run_command(*command)
    assert found.code == 0, found
    assert "resuming: 5 requests were recorded before" in found.err
    assert len(services.baseline.requests) == 25
    assert services.candidate.requests == []
    found = await run_command(
        "compare", "--baseline", "rec.zst", "--candidate", services.candidate_url, "--yes", "--json", "r.json"
    )
    assert sum(row["requests"] for row in json.loads((tmp_path / "r.json").read_text())["rows"]) == 30, found
