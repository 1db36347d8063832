"""Tests of `v3bridge compare` with two services on loopback: verdicts, failures, API keys, incompatible options."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support import commands
from support.running_commands import run_in_this_process

from proxy.tools.compare import comparison

SEEN, BASELINE, CANDIDATE = "c4n4ry-seen-in-the-log", "c4n4ry-of-the-old-side", "c4n4ry-of-the-new-side"


async def test_equal_services_are_equivalent(run_command: Any, services: Any, make_request_file: Any) -> None:
    found = await run_command(
        "compare", *services.sides, "--requests", make_request_file(30, SEEN), "--budget", "90", "--json", "r.json"
    )
    assert found.code == 0, found
    assert found.out.startswith("Ready: 30 requests compared, all equivalent.")
    assert "30 requests of 30 in urls.txt; 90 parts at most; budget 90 parts" in found.err
    assert len(services.candidate.requests) == 30
    assert set(services.candidate.requests) == set(services.baseline.requests)
    assert set(services.candidate.keys) == {SEEN}


async def test_refused_requests_are_failures_and_cost_nothing(
    run_command: Any, services: Any, make_request_file: Any
) -> None:
    def refuse(_q: str) -> web.Response:
        return web.json_response({"__class__": "ClientErrorResponse", "message": "Invalid apikey"}, status=403)

    services.baseline.answer = services.candidate.answer = refuse
    found = await run_command("compare", *services.sides, "--requests", make_request_file(12), "--yes")
    assert found.code == 2, found
    assert found.out.startswith("Inconclusive: no request could be compared")
    first_section, steps = found.out.partition("Next steps")[0], found.out.partition("Next steps")[2]
    reason = "12 requests: the baseline refuses the key of key 1 (HTTP 403): Invalid apikey"
    assert reason in first_section.partition("Could not be compared")[2].partition("Endpoints")[0]
    assert "1. The baseline refuses the key of key 1" in steps
    assert (len(services.baseline.requests), services.candidate.requests) == (12, [])


async def test_no_output_holds_an_api_key(
    run_command: Any, services: Any, make_request_file: Any, tmp_path: Path
) -> None:
    def echoing(key: Any, price: Any) -> Any:
        return lambda q: {"results": [{"click": f"https://x/?apikey={key}&k={key}", key: price, "q": f"{key} {q}"}]}

    services.baseline.answer, services.candidate.answer = echoing(BASELINE, 1), echoing(CANDIDATE, 2)
    (tmp_path / "rules.yaml").write_text(
        "baseline_rate: 0\n"
        f'keys: [{{name: erp, source: "{SEEN}", baseline: env:BASELINE_KEY, candidate: "{CANDIDATE}"}}]\n'
    )
    reports = [("--html", "r.html"), ("--json", "r.json")]
    sides = ("--baseline", services.baseline_url, "--candidate", services.candidate_url, "--rules", "rules.yaml")
    found = await run_command(
        *("compare", *sides, "--requests", make_request_file(12, SEEN), "--yes", "--record", "rec.jsonl"),
        *(word for pair in reports for word in pair),
        BASELINE_KEY=BASELINE,
    )
    assert found.code == 1, found
    assert set(services.baseline.keys) == {BASELINE}
    assert set(services.candidate.keys) == {CANDIDATE}
    texts = [found.out, found.err, (tmp_path / "rec.jsonl").read_text()]
    texts += [(tmp_path / name).read_text() for _, name in reports]
    assert all(texts)
    for text in texts:
        assert "c4n4ry" not in text
    assert "erp" in found.out


async def test_service_that_returns_html_is_named_and_the_run_completes(
    run_command: Any, services: Any, make_request_file: Any
) -> None:
    services.baseline.answer = lambda q: web.Response(text="<html>Please sign in</html>", content_type="text/html")
    command = ("compare", *services.sides, "--requests", make_request_file(40), "--budget", "200")
    found = await run_command(*command)
    assert found.code == 2, found
    assert "the run was stopped: the baseline sent HTML instead of JSON (HTTP 200), 10 times in a row" in found.out
    assert services.candidate.requests == []
    services.baseline.answer = lambda q: {"hits": len(q)}
    found = await run_command(*command, "--json", "r.json")
    assert found.code == 0, found
    assert Counter(services.candidate.requests) == Counter(f"part-{n}" for n in range(40))


REFUSED_EARLY = {
    "--baseline: is not an http:// or https:// address": ["--baseline", "ftp://old/v3"],
    "--html: cannot be written: no/such/folder/r.html": ["--baseline", "sandbox", "--html", "no/such/folder/r.html"],
    "--baseline: is missing: the URL of the old service": [],
    "--baseline: the configuration has no upstream: sandbox": ["--config", "own.yaml", "--baseline", "sandbox"],
    "No such option: --basline": ["--basline", "sandbox"],
    "Invalid value for '--sample': Input should be a valid integer": ["--sample", "few"],
    "own.yaml:1:1: upstream: unknown key": ["--baseline", "sandbox", "--rules", "own.yaml"],
    "no-such.yaml: cannot be read": ["--baseline", "sandbox", "--config", "no-such.yaml"],
    "no-such.log: cannot be read": ["--baseline", "sandbox", "--requests", "no-such.log"],
}
RUN_ALL = """
import json, sys
from proxy.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["v3bridge", *arguments]
    try:
        main.main()
    except SystemExit as end:
        print(end.code)
print(*sys.modules)
"""


def test_options_are_checked_before_services_start(make_request_file: Any, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "upstream: {graphql_url: 'http://127.0.0.1:9/g', token_url: 'http://127.0.0.1:9/t'}\n"
        "applications: {a: {apikeys: [k], client_id: c, client_secret: s}}\n"
    )
    shipped = ["compare", "--requests", make_request_file(1), "--config", str(commands.ROOT / "config.yaml")]
    given = json.dumps([shipped + arguments for arguments in REFUSED_EARLY.values()])
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, given],
        cwd=tmp_path,
        env=commands.environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    *codes, loaded = done.stdout.splitlines()
    assert codes == ["3"] * len(REFUSED_EARLY)  # 2 is a verdict
    assert all(words in done.stderr for words in REFUSED_EARLY), done.stderr
    assert "proxy.tools.compare.command" in loaded.split()
    assert {*loaded.split()} & {"nexar_sandbox.app", "proxy.app"} == set()


def test_failure_of_the_program_is_no_verdict(make_request_file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: Any) -> None:
        raise ArithmeticError("a mistake of ours")

    monkeypatch.setattr(comparison, "compare", fail)
    done = run_in_this_process("compare", "--baseline", "sandbox", "--requests", make_request_file(1))
    assert (done.returncode, "a mistake of ours" in done.stderr) == (3, True)


async def test_response_file_is_baseline_and_request_source(run_command: Any, services: Any, tmp_path: Path) -> None:
    lines = [{"url": f"/v3/parts/search?q=part-{n}&limit=3", "body": {"hits": 6 + (n == 1)}} for n in range(4)]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\njunk\n")
    found = await run_command("compare", "--baseline", "own.jsonl", "--candidate", services.candidate_url, "--yes")
    assert found.code == 1, found
    assert sorted(services.candidate.requests) == [f"part-{n}" for n in range(4)]
    assert "own.jsonl: 1 line is no response, the first is 5" in found.err


async def test_embedded_baseline_service_has_the_shipped_configuration(
    run_command: Any, make_request_file: Any
) -> None:
    found = await run_command("compare", "--baseline", "sandbox", "--requests", make_request_file(2, "EXAMPLE_KEY"))
    assert found.code == 0, found
    assert "free of charge" in found.err


async def test_no_output_holds_an_api_key_of_a_response_file(run_command: Any, services: Any, tmp_path: Path) -> None:
    body = {"hits": 1, "results": [{"item": {"mpn": f"https://x/click/{SEEN}/y"}}]}
    line = json.dumps({"url": f"/v3/parts/search?apikey[]={SEEN}&q=part&limit=3", "body": body})
    (tmp_path / "own.jsonl").write_text(line + "\n")
    found = await run_command(
        "compare", "--baseline", "own.jsonl", "--candidate", services.candidate_url, "--yes", "--json", "r.json"
    )
    assert found.code == 1, found
    for text in (found.out, found.err, (tmp_path / "r.json").read_text()):
        assert "c4n4ry" not in text


@pytest.mark.parametrize("option", ["--baseline", "--candidate"])
async def test_missing_side_is_named(run_command: Any, services: Any, make_request_file: Any, option: str) -> None:
    given = dict(zip(services.sides[::2], services.sides[1::2], strict=True))
    given.pop(option)
    found = await run_command(
        "compare", *(word for pair in given.items() for word in pair), "--requests", make_request_file(1), "--yes"
    )
    assert found.code == 3
    assert f"Invalid value for {option}: is missing: the URL of the " in found.err
    assert services.baseline.requests == services.candidate.requests == []
