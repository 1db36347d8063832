"""`v3bridge explain --trace`: on the embedded sandbox, and on a configured upstream, where it costs parts."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.running_commands import run_in_this_process

import nexar_sandbox
from nexar_sandbox import faults

TARGET = '/v3/parts/match?queries=[{"mpn":"SN74S74N"}]'
Result = subprocess.CompletedProcess[str]
CONFIG = """
upstream: {{graphql_url: "{graphql_url}", token_url: "{token_url}"}}
store: sqlite:state.sqlite
applications:
  shop: {{client_id: "{client_id}", client_secret: "{client_secret}", apikeys: ["k3y-of-the-shop"], parts: 100}}
"""


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[nexar_sandbox.Sandbox]:
    """A sandbox of its own, which `own.yaml` names as the upstream."""
    with nexar_sandbox.running() as served:
        account = served.default_application
        text = CONFIG.format(
            graphql_url=served.graphql_url,
            token_url=served.token_url,
            client_id=account.client_id,
            client_secret=account.client_secret,
        )
        (tmp_path / "own.yaml").write_text(text, encoding="utf-8")
        yield served


def explain(folder: Path, *arguments: str) -> Result:
    return run_in_this_process("explain", *arguments, folder=folder)


def execute(folder: Path, *arguments: str) -> Result:
    return explain(folder, "--trace", *arguments)


def lines_of(done: Result, title: str) -> list[str]:
    """The lines of a section."""
    _, _, rest = done.stdout.partition(f"\n{title}\n")
    return [line.strip() for line in rest.partition("\n\n")[0].splitlines()]


def test_a_trace_runs_on_the_embedded_sandbox(tmp_path: Path) -> None:
    done = execute(tmp_path, f"{TARGET}&apikey=EXAMPLE_KEY")
    assert (done.returncode, done.stderr) == (0, "")
    assert "executed on the embedded sandbox" in done.stdout
    names = [line.split(maxsplit=2)[2].split("  ")[0] for line in lines_of(done, "Steps")[1:]]
    assert names[:6] == ["authenticate", "admit", "parse", "compile", "look up", "plan"]
    assert lines_of(done, "Queries") == ["queries[0] SN74S74N  from the upstream"]
    assert lines_of(done, "Result")[1:] == [
        "3 parts billed; 1 GraphQL request, 1 token request",
        "quota: 3 used, no limit",
    ]
    assert '"__class__": "PartsMatchResponse"' in done.stdout
    assert "EXAMPLE_KEY" not in done.stdout


def test_json_has_the_explanation_the_trace_and_the_whole_response(tmp_path: Path) -> None:
    done = execute(tmp_path, "--json", TARGET)
    assert (done.returncode, done.stderr) == (0, "")
    value = json.loads(done.stdout)
    assert value["explanation"]["cost"]["parts_max"] == value["trace"]["parts"] == 3
    assert len(value["trace"]["response"]["results"][0]["items"]) == 3


def test_an_error_is_shown_where_it_arose(tmp_path: Path) -> None:
    done = execute(tmp_path, "/v3/parts/match?apikey=EXAMPLE_KEY")
    assert done.returncode == 0
    assert "queries argument missing" in lines_of(done, "Steps")[-1]
    assert lines_of(done, "Result")[0].startswith("HTTP 400 in ")


def test_a_path_that_v3_never_had_is_not_executed(tmp_path: Path) -> None:
    done = execute(tmp_path, "/v3/partz/match")
    assert "not executed: 404 there is no such path" in done.stdout
    assert "Steps" not in done.stdout


def test_each_kind_of_a_file_is_executed(tmp_path: Path) -> None:
    targets = [TARGET, '/v3/parts/match?queries=[{"mpn":"1N4007"}]', "/v3/brands/search?q=texas"]
    (tmp_path / "calls.txt").write_text("".join(f"{each}\n" for each in targets), encoding="utf-8")
    traced = json.loads((execute(tmp_path, "--json", "calls.txt")).stdout)
    assert [each["trace"]["endpoint"] for each in traced] == ["/parts/match", "/brands/search"]
    # The second one uses the token of the first.
    assert [each["trace"]["token_requests"] for each in traced] == [1, 0]


def test_on_a_real_upstream_parts_are_not_spent_unasked(tmp_path: Path, upstream: nexar_sandbox.Sandbox) -> None:
    done = execute(tmp_path, "--config", "own.yaml", TARGET)
    assert (done.returncode, done.stdout) == (2, "")
    assert "to execute: 1 request, up to 3 parts" in done.stderr
    assert "--budget" in done.stderr
    assert list(upstream.documents) == []


def test_a_real_upstream_is_charged_as_by_the_service(tmp_path: Path, upstream: nexar_sandbox.Sandbox) -> None:
    done = execute(tmp_path, "--config", "own.yaml", "--yes", TARGET)
    assert done.returncode == 0, done
    assert "executed on the configured upstream" in done.stdout
    assert "quota: 3 of 100 used" in done.stdout
    assert upstream.part_usage.used(upstream.default_application.application_id) == 3
    secrets: list[Any] = ["k3y-of-the-shop", upstream.default_application.client_secret, "eyJ", upstream.graphql_url]
    assert [each for each in secrets if each in done.stdout + done.stderr] == []
    again = execute(tmp_path, "--config", "own.yaml", "--yes", "--json", TARGET)
    trace = json.loads(again.stdout)["trace"]
    # From the store: the token, and the results of the run before.
    assert (trace["cache"], trace["parts"], trace["token_requests"]) == ("hit", 0, 0)


def test_a_budget_leaves_out_what_may_cost_more(tmp_path: Path, upstream: nexar_sandbox.Sandbox) -> None:
    (tmp_path / "calls.txt").write_text(f"{TARGET}\n{TARGET}&include[]=specs\n", encoding="utf-8")
    done = execute(tmp_path, "--config", "own.yaml", "--budget", "5", "--json", "calls.txt")
    traced = json.loads(done.stdout)
    assert [None if each["trace"] is None else each["trace"]["parts"] for each in traced] == [3, None]
    assert "left out, as it may cost more than is left of the budget: /parts/match" in done.stderr
    assert upstream.part_usage.used(upstream.default_application.application_id) == 3


def test_a_budget_counts_parts_that_may_have_been_billed(tmp_path: Path, upstream: nexar_sandbox.Sandbox) -> None:
    upstream.faults.replace((faults.ResetFault(when="after"),))
    (tmp_path / "calls.txt").write_text(f"{TARGET}\n{TARGET}&include[]=specs\n", encoding="utf-8")
    done = execute(tmp_path, "--config", "own.yaml", "--budget", "5", "--json", "calls.txt")
    lost, left_out = json.loads(done.stdout)
    assert (lost["trace"]["parts"], lost["trace"]["uncertain_parts"], left_out["trace"]) == (0, 3, None)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--trace", "--queries"), "choose one of --plan, --queries and --trace"),
        (("--yes",), "only --trace costs parts"),
        (("--budget", "5"), "only --trace costs parts"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = explain(tmp_path, *arguments, TARGET)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
