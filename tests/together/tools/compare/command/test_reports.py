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
    assert "Ready: 4 requests compared, all equivalent." in found.err


@pytest.mark.parametrize("option, other", [("--html", "--requests"), ("--record", "--json")])
async def test_report_never_replaces_a_file_of_another_option(
    run_command: Any, services: Any, arguments: Any, tmp_path: Path, option: str, other: str
) -> None:
    file = "urls.txt" if other == "--requests" else "report"
    refused = await run_command("compare", *services.sides, *arguments, "--json", "report", option, f"./{file}")
    assert (refused.code, (tmp_path / "urls.txt").read_text(), (tmp_path / "report").exists()) == (3, REQUESTS, False)
    assert f"{option}: {file} is the file of another option, too: name another" in refused.err


async def test_single_request_is_inconclusive(run_command: Any, services: Any, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(REQUESTS.partition("\n")[0])
    found = await run_command("compare", *services.sides, "--requests", "urls.txt", "--yes", "--json", "-")
    assert json.loads(found.out)["verdict"] == "inconclusive"
    assert "Inconclusive: 1 request compared, all equivalent, but too few at 1 of 1 endpoint." in found.err


@pytest.mark.parametrize(
    "number, sample, differing, verdict",
    [
        (2, None, (), "ready"),  # all that there are: however few, they are no sample
        (1, None, (), "inconclusive"),
        (120, 99, (), "inconclusive"),
        (120, 100, (), "ready"),
        (120, 99, ("part-7",), "not ready"),
        (3, None, ("part-2",), "not ready"),
    ],
)
async def test_one_rule_gives_the_verdict_and_nothing_stands_beside_it(
    run_command: Any, services: Any, tmp_path: Path, number: int, sample: int | None, differing: Any, verdict: str
) -> None:
    """No estimate, interval or share that the rule does not use."""
    lines = [f"/v3/parts/search?apikey=a-key&q=part-{n % number}\n" for n in range(number + 1)]
    (tmp_path / "urls.txt").write_text("".join(lines))
    services.candidate.answer = lambda q: {"hits": 0 if q in differing else len(q)}
    chosen = () if sample is None else ("--sample", str(sample))
    options = ("--requests", "urls.txt", "--yes", *chosen, "--html", "r.html", "--json", "r.json")
    found = await run_command("compare", *services.sides, *options)
    result, page = json.loads((tmp_path / "r.json").read_text()), (tmp_path / "r.html").read_text()
    assert (result["verdict"], {row["verdict"] for row in result["rows"]}) == (verdict, {verdict})
    assert found.code == ["ready", "not ready", "inconclusive"].index(verdict)
    assert "%" not in found.out + page.rpartition("</style>")[2]
    assert set(result["rows"][0]) == {
        *("endpoint", "requests", "occurrences", "equivalent", "not_compared", "succeeded", "verdict")
    }


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


RULES = """
rules:
  - {path: hits, reason: a test, expires: never}
  - {path: took, reason: a test, expires: 2020-01-31}
baseline_rate: 0
"""


async def test_rules_are_reported_with_what_they_ignored(
    run_command: Any, services: Any, arguments: Any, tmp_path: Path
) -> None:
    (tmp_path / "fast.yaml").write_text(RULES)
    services.candidate.answer = lambda q: {"hits": 0 if q == "part-1" else len(q)}
    found = await run_command("compare", *services.sides, *arguments, "--json", "r.json")
    assert found.code == 0, found
    rules = json.loads((tmp_path / "r.json").read_text())["rules"]
    assert [(rule["name"], rule["ignored"], rule["expired"]) for rule in rules] == [
        ("hits", 1, False),
        ("took", 0, True),
    ]
    assert "Renew or remove the expired rules: took." in found.out
