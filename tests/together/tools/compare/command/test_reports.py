"""Tests of report output: destinations, refused requests, and differences hidden by rules."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

REQUESTS = "".join(f"/v3/parts/search?apikey=a-key&q=part-{number}\n" for number in range(4))


@pytest.fixture
def arguments(tmp_path: Path) -> Any:
    (tmp_path / "urls.txt").write_text(REQUESTS)
    return ("--requests", "urls.txt", "--yes")


async def test_report_can_be_written_to_standard_output(run_command: Any, services: Any, arguments: Any) -> None:
    found = await run_command("compare", *services.sides, *arguments, "--json", "-")
    assert (found.code, json.loads(found.out)["verdict"]) == (0, "ready")
    assert "Ready: equivalent on 100" in found.err
    refused = await run_command("compare", *services.sides, *arguments, "--json", "-", "--html", "-")
    assert (refused.code, refused.out) == (2, "")
    assert "only one report can go to standard output" in refused.err


@pytest.mark.parametrize("option, other", [("--html", "--requests"), ("--record", "--json")])
async def test_report_never_replaces_a_file_of_another_option(
    run_command: Any, services: Any, arguments: Any, tmp_path: Path, option: str, other: str
) -> None:
    file = "urls.txt" if other == "--requests" else "report"
    refused = await run_command("compare", *services.sides, *arguments, "--json", "report", option, f"./{file}")
    assert (refused.code, (tmp_path / "urls.txt").read_text(), (tmp_path / "report").exists()) == (2, REQUESTS, False)
    assert f"{option}: {file} is the file of {other}, too: name another" in refused.err


async def test_single_request_is_inconclusive(run_command: Any, services: Any, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(REQUESTS.partition("\n")[0])
    found = await run_command("compare", *services.sides, "--requests", "urls.txt", "--yes", "--json", "-")
    assert json.loads(found.out)["verdict"] == "inconclusive"
    assert "Inconclusive: equivalent on 100" in found.err


async def test_refusal_message_is_in_every_report(
    run_command: Any, services: Any, arguments: Any, tmp_path: Path
) -> None:
    refusal = {"__class__": "ClientErrorResponse", "message": "q is too short for this"}
    services.candidate.answer = lambda q: web.json_response(refusal, status=400)
    files = {name: tmp_path / f"report.{name}" for name in ("html", "json")}
    options = [each for name, file in files.items() for each in (f"--{name}", file)]
    found = await run_command("compare", *services.sides, *arguments, *options)
    assert found.code == 1, found
    result = json.loads(files["json"].read_text("utf-8"))
    assert [group["path"] for group in result["groups"]] == ["(status)"]
    for text in (found.out, *(file.read_text("utf-8") for file in files.values())):
        assert "q is too short for this" in text


async def test_curl_line_is_shown_only_for_sides_with_an_address(
    run_command: Any, services: Any, arguments: Any, tmp_path: Path
) -> None:
    recorded = await run_command(
        "compare", "--baseline", services.baseline_url, "--baseline-rate", "0", *arguments, "--record", "old.zst"
    )
    assert recorded.code == 0, recorded
    services.candidate.answer = lambda q: {"hits": -1}
    found = await run_command(
        "compare", "--baseline", "old.zst", "--candidate", services.candidate_url, *arguments, "--html", "report.html"
    )
    assert found.code == 1, found
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count('<p class="curl"><span>Candidate</span><code>curl ') == 3
    assert '<p class="curl"><span>Baseline</span>' not in page


RULES = """
rules:
  - {name: any hits, path: hits, ignore: [value], reason: a test, expires: never}
  - {name: any time, path: took, ignore: [value], varies: true, reason: a test, expires: never}
"""


async def test_rule_that_ignores_more_than_before_fails_the_run(
    run_command: Any, services: Any, arguments: Any, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(RULES)
    command = ("compare", *services.sides, *arguments, "--rules", "own.yaml")
    services.candidate.answer = lambda q: {"hits": 0 if q == "part-1" else len(q)}
    saved = await run_command(*command, "--save-ignored", "ignored.json")
    assert (saved.code, "rules ignored 1 difference (any hits 1)" in " ".join(saved.out.split())) == (0, True), saved
    assert json.loads((tmp_path / "ignored.json").read_text()) == {"requests": 4, "ignored": {"any hits": 1}}
    held = ("--ignored-limits", "ignored.json")
    assert (await run_command(*command, *held, "--fresh")).code == 0
    services.candidate.answer = lambda q: {"hits": 0}
    more = await run_command(*command, *held, "--fresh")
    assert more.code == 1, more
    words = "the rule any hits ignores 4 differences of 4 requests, more than the baseline: 1 of 4"
    assert words in " ".join(more.out.split())
    (tmp_path / "own.yaml").write_text(RULES + "ignored_margin: 3\n")
    assert (await run_command(*command, *held, "--fresh")).code == 0
