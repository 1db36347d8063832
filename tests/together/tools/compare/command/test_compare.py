"""`v3bridge compare` with two services on loopback: verdicts, failures, reports, API keys, what a run may spend, and
recordings of the old service."""

import asyncio
import hashlib
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support import commands
from support.running_commands import ROOT, run_in_this_process
from support.served import serve
from together.terminal import terminals
from together.tools.compare.command.conftest import ServicePair

from proxy.tools.compare import comparison

URL = "/v3/parts/search?apikey=a-key-in-the-log&q=part-0&limit=3"
SEEN, BASELINE, CANDIDATE = "c4n4ry-seen-in-the-log", "c4n4ry-of-the-old-side", "c4n4ry-of-the-new-side"


async def test_refused_requests_are_failures_and_cost_nothing(services: ServicePair) -> None:
    def refuse(_q: str) -> web.Response:
        return web.json_response({"__class__": "ClientErrorResponse", "message": "Invalid apikey"}, status=403)

    services.baseline.answer = services.candidate.answer = refuse
    found = await services.compare(*services.sides, "--requests", services.request_file(12), "--yes")
    assert found.code == 2, found
    assert found.out.startswith("Inconclusive: no request could be compared")
    first_section, steps = found.out.partition("Next steps")[0], found.out.partition("Next steps")[2]
    reason = "12 requests: the baseline refuses the key of key 1 (HTTP 403): Invalid apikey"
    assert reason in first_section.partition("Could not be compared")[2].partition("Endpoints")[0]
    assert "1. The baseline refuses the key of key 1" in steps
    assert (len(services.baseline.requests), services.candidate.requests) == (12, [])


async def test_no_output_holds_an_api_key(services: ServicePair) -> None:
    def echoing(key: Any, price: Any) -> Any:
        return lambda q: {"results": [{"click": f"https://x/?apikey={key}&k={key}", key: price, "q": f"{key} {q}"}]}

    services.baseline.answer, services.candidate.answer = echoing(BASELINE, 1), echoing(CANDIDATE, 2)
    (services.folder / "rules.yaml").write_text(
        "baseline_rate: 0\n"
        f'keys: [{{name: erp, source: "{SEEN}", baseline: env:BASELINE_KEY, candidate: "{CANDIDATE}"}}]\n'
    )
    sides = ("--baseline", services.baseline_url, "--candidate", services.candidate_url, "--rules", "rules.yaml")
    found = await services.compare(
        *(*sides, "--requests", services.request_file(12, SEEN), "--yes", "--record", "rec.jsonl"),
        *("--html", "r.html", "--json", "r.json"),
        BASELINE_KEY=BASELINE,
    )
    assert found.code == 1, found
    assert (set(services.baseline.keys), set(services.candidate.keys)) == ({BASELINE}, {CANDIDATE})
    files = [services.text(name) for name in ("rec.jsonl", "r.html", "r.json")]
    assert all(files)
    assert [text for text in (found.out, found.err, *files) if "c4n4ry" in text] == []
    assert {group["path"] for group in json.loads(files[2])["groups"]} == {r'results[*]["\u2026"]'}  # the price
    assert "erp" in found.out


async def test_response_file_is_baseline_and_request_source(services: ServicePair) -> None:
    lines = [{"url": f"/v3/parts/search?q=part-{n}&limit=3", "body": {"hits": 6}} for n in range(3)]
    body = {"hits": 1, "results": [{"item": {"mpn": f"https://x/click/{SEEN}/y"}}]}
    lines.append({"url": f"/v3/parts/search?apikey[]={SEEN}&q=part-3&limit=3", "body": body})
    (services.folder / "own.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\njunk\n")
    sides = ("--baseline", "own.jsonl", "--candidate", services.candidate_url)
    found = await services.compare(*sides, "--yes", "--json", "r.json")
    assert found.code == 1, found
    assert sorted(services.candidate.requests) == [f"part-{n}" for n in range(4)]
    assert "own.jsonl: 1 line is no response, the first is 5" in found.err
    assert [text for text in (found.out, found.err, services.text("r.json")) if "c4n4ry" in text] == []


async def test_keys_of_the_service_that_no_request_is_sent_with_are_hidden(services: ServicePair) -> None:
    """As a client that once sent the key of another one in a parameter; the configuration has its digest only."""
    other = "the-key-of-an0ther-client"
    digest = f"sha256:{hashlib.sha256(other.encode()).hexdigest()}"
    (services.folder / "own.yaml").write_text(
        f'upstream: sandbox\nstore: "memory:"\napplications: {{demo: {{apikeys: ["EXAMPLE_KEY", "{digest}"]}}}}\n'
    )
    (services.folder / "urls.txt").write_text(f"/v3/parts/search?apikey=EXAMPLE_KEY&q={other}&limit=1\n")
    found = await services.compare(
        *("--baseline", services.baseline_url, "--config", "own.yaml", "--requests", "urls.txt"),
        *("--rules", "fast.yaml", "--json", "result.json", "--record", "recorded.jsonl"),
    )
    files = [services.text(name) for name in ("recorded.jsonl", "result.json")]
    assert all("/parts/search" in text for text in files), found
    assert [text for text in (*files, found.out, found.err) if other in text] == []


async def test_clients_with_unknown_keys_are_named(services: ServicePair) -> None:
    key = "c4n4ry-of-nobody"
    paths = ("/parts/search?q=LM324&limit=1", "/parts/0123456789abcdef?", "/brands/search?q=Texas")
    line = '203.0.113.9 - - [10/Oct/2018:13:55:36 +0000] "GET /api/v3{}&apikey={} HTTP/1.1" 200 2326 "-" "kicost/1.1"\n'
    (services.folder / "access.log").write_text("".join(line.format(path, key) for path in (*paths, paths[0])))
    found = await services.compare("--baseline", "sandbox", "--requests", "access.log", "--json", "result.json")
    assert found.code == 2, found
    result = json.loads(services.text("result.json"))
    assert result["groups"] == []  # one cause, not a difference at each endpoint
    assert result["notes"] == ["these parts are the embedded sandbox's, and free of charge"]
    (failure,) = result["failures"]
    refused = "the candidate refuses the key of key 1 (HTTP 403): Forbidden request"
    assert (failure["reason"], failure["requests"]) == (refused, 3)
    shown = hashlib.sha256(key.encode()).hexdigest()[:4]
    assert f"key 1 (fingerprint {shown}, access.log:1 to access.log:4, kicost/1.1)" in " ".join(found.out.split())
    first = found.out.partition("Next steps")[2].splitlines()[1]
    assert first.startswith("1. The candidate refuses the key of key 1")
    assert "c4n4ry" not in found.out + found.err + json.dumps(result)


REFUSED_EARLY = {
    "--baseline: is not an http:// or https:// address": ["--baseline", "ftp://old/v3"],
    "--html: cannot be written: no/such/folder/r.html": ["--baseline", "sandbox", "--html", "no/such/folder/r.html"],
    "--html: urls.txt is the file of another option, too: name": ["--baseline", "sandbox", "--html", "./urls.txt"],
    "--baseline: is missing: the URL of the old service": [],
    "--baseline: the configuration has no upstream: sandbox": ["--config", "own.yaml", "--baseline", "sandbox"],
    "No such option: --basline": ["--basline", "sandbox"],
    "Invalid value for '--sample': Input should be a valid integer": ["--sample", "few"],
    "own.yaml:1:1: upstream: unknown key": ["--baseline", "sandbox", "--rules", "own.yaml"],
    "no-such.yaml: cannot be read": ["--baseline", "sandbox", "--config", "no-such.yaml"],
    "no-such.log: cannot be read": ["--baseline", "sandbox", "--requests", "no-such.log"],
}


def test_options_are_checked_before_services_start(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(f"{URL}\n")
    (tmp_path / "own.yaml").write_text(
        "upstream: {graphql_url: 'http://127.0.0.1:9/g', token_url: 'http://127.0.0.1:9/t'}\n"
        "applications: {a: {apikeys: [k], client_id: c, client_secret: s}}\n"
    )
    given = ["compare", "--requests", "urls.txt", "--config", str(ROOT / "config.yaml")]
    for words, options in REFUSED_EARLY.items():
        done = run_in_this_process(*given, *options, folder=tmp_path)
        assert (done.returncode, words in done.stderr) == (3, True), done  # 2 is a verdict
    command = [sys.executable, "-X", "importtime", "-m", "proxy", *given, *options]
    alone = subprocess.run(command, cwd=tmp_path, env=commands.environment(tmp_path), capture_output=True, text=True)
    loaded = {line.rpartition("|")[2].strip() for line in alone.stderr.splitlines()}
    assert "proxy.tools.compare.comparison" in loaded
    assert loaded & {"nexar_sandbox.app", "proxy.app"} == set()
    assert (tmp_path / "urls.txt").read_text() == f"{URL}\n"


def test_failure_of_the_program_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: Any) -> None:
        raise ArithmeticError("a mistake of ours")

    monkeypatch.setattr(comparison, "compare", fail)
    (tmp_path / "urls.txt").write_text(f"{URL}\n")
    done = run_in_this_process("compare", "--baseline", "sandbox", "--requests", "urls.txt", folder=tmp_path)
    assert (done.returncode, "a mistake of ours" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    "number, sample, differing, verdict",
    [
        (2, None, (), "ready"),  # all that there are: however few, they are no sample
        (1, None, (), "inconclusive"),
        (120, 99, (), "inconclusive"),
        (120, 100, (), "ready"),
        (120, 99, ("part-7",), "not ready"),
    ],
)
async def test_one_rule_gives_the_verdict_and_nothing_stands_beside_it(
    services: ServicePair, number: int, sample: int | None, differing: Any, verdict: str
) -> None:
    """No estimate, interval or share that the rule does not use."""
    lines = [f"/v3/parts/search?apikey=a-key&q=part-{n % number}\n" for n in range(number + 1)]
    (services.folder / "urls.txt").write_text("".join(lines))
    services.candidate.answer = lambda q: {"hits": 0 if q in differing else len(q)}
    chosen = () if sample is None else ("--sample", str(sample))
    options = ("--requests", "urls.txt", "--yes", *chosen, "--html", "r.html", "--json", "-")
    found = await services.compare(*services.sides, *options)
    result, page = json.loads(found.out), services.text("r.html")
    assert (result["verdict"], {row["verdict"] for row in result["rows"]}) == (verdict, {verdict})
    assert found.code == ["ready", "not ready", "inconclusive"].index(verdict)
    assert f"{verdict.capitalize()}: " in found.err
    assert "%" not in found.err.partition(f"{verdict.capitalize()}: ")[2] + page.rpartition("</style>")[2]
    assert set(result["rows"][0]) == {
        *("endpoint", "requests", "occurrences", "equivalent", "not_compared", "succeeded", "verdict")
    }


RULES = """
rules:
  - {path: hits, reason: a test, expires: never}
  - {path: took, reason: a test, expires: 2020-01-31}
baseline_rate: 0
"""


async def test_reports_have_the_message_of_a_refusal_and_what_rules_ignored(services: ServicePair) -> None:
    (services.folder / "fast.yaml").write_text(RULES)
    refusal = {"__class__": "ClientErrorResponse", "message": "q is too short for this"}
    responses = {"part-1": {"hits": 0}, "part-2": web.json_response(refusal, status=400)}
    services.candidate.answer = lambda q: responses.get(q, {"hits": len(q)})
    options = ("--requests", services.request_file(4), "--yes", "--html", "r.html", "--json", "r.json")
    found = await services.compare(*services.sides, *options)
    assert found.code == 1, found
    texts = [found.out, *(services.text(name) for name in ("r.html", "r.json"))]
    assert [text for text in texts if "q is too short for this" not in text] == []
    result = json.loads(texts[-1])
    assert [group["path"] for group in result["groups"]] == ["(status)"]
    rules = [(rule["name"], rule["ignored"], rule["expired"]) for rule in result["rules"]]
    assert rules == [("hits", 1, False), ("took", 0, True)]
    assert "Renew or remove the expired rules: took." in found.out


async def test_run_needs_a_budget_or_a_word_and_stops_at_it(services: ServicePair) -> None:
    command = (*services.sides, "--requests", services.request_file(30))
    found = await services.compare(*command)
    assert found.code == 3
    assert "30 requests of 30 in urls.txt; 90 parts at most; no budget" in found.err
    assert "up to 90 parts may be spent" in found.err
    assert services.candidate.requests == []
    found = await services.compare(*command, "--budget", "25", "--json", "r.json")
    assert found.code == 2, found
    result = json.loads(services.text("r.json"))
    assert result["spent"] == len(services.candidate.requests) * 2
    assert 22 <= result["spent"] <= result["budget"] == 25
    assert "requests were left out: the budget does not cover" in found.out


async def test_terminal_asks_for_confirmation_before_parts_are_used(services: ServicePair) -> None:
    command = (*services.sides, "--requests", services.request_file(5))
    with terminals(services.start) as run:
        terminal = await run(*command)
        await terminal.until("Up to 15 parts may be spent. Continue?")
        terminal.type("n\n")
        assert (await commands.wait(terminal.process)).code == 3
        terminal = await run(*command)
        await terminal.until("Continue?")
        await terminal.interrupt()
        assert (await commands.wait(terminal.process)).code == 3
        assert services.candidate.requests == []
        terminal = await run(*command, "--budget", "4")
        await terminal.until("Up to 4 parts may be spent. Continue?")
        terminal.type("y\n")
        assert (await commands.wait(terminal.process)).code == 2
    assert len(services.candidate.requests) == 1


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
