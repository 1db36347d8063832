"""Tests of `v3bridge doctor`: its output in a terminal, a pipe and as JSON, exit codes, and that it changes nothing."""

import io
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support.running_commands import Run

from proxy.cli import doctor
from proxy.doctor import findings
from proxy.doctor.run import STAGES

MISTAKES = """\
listen: {port: 70000}
log: {level: loud}
store: redis://user:planted-password@127.0.0.1:1
applications:
  demo: {apikeys: [planted-key, planted-key], client_id: planted-id, client_secret: planted-secret, features: [X]}
"""
WRONG_STORE = """\
listen: {port: 0}
upstream: {graphql_url: "http://127.0.0.1:1/graphql", token_url: "http://127.0.0.1:1/connect/token"}
store: sqlite:state.sqlite
applications:
  demo: {apikeys: [planted-key], client_id: planted-id, client_secret: planted-secret}
"""


@pytest.fixture
def config_file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        file = tmp_path / "own.yaml"
        file.write_text(text)
        file.chmod(0o600)
        return file

    return write


@pytest.fixture(scope="module")
def shipped(run_command: Run) -> "subprocess.CompletedProcess[str]":
    """The report about the shipped configuration; made once, because the sandbox is started for it."""
    return run_command("doctor", "--json")


def failed(report: Any) -> list[str]:
    return [
        result["code"] for stage in report["stages"] for result in stage["findings"] if result["outcome"] == "failed"
    ]


def test_every_stage_is_run_in_its_order(shipped: "subprocess.CompletedProcess[str]") -> None:
    report = json.loads(shipped.stdout)
    assert [stage["name"] for stage in report["stages"]] == [stage.name for stage in STAGES]
    assert all(stage["findings"][0]["outcome"] == "passed" for stage in report["stages"])


def test_mistakes_of_the_configuration_are_those_that_serve_prints(run_command: Run, config_file: Any) -> None:
    file = config_file(MISTAKES)
    served, used, examined = (run_command(name, "--config", str(file)) for name in ("serve", "usage", "doctor"))
    mistakes = [line.removeprefix("v3bridge: ") for line in served.stderr.splitlines()]
    assert len(mistakes) == 4
    assert (used.stderr, used.returncode) == (served.stderr, 2)
    assert [line[4:] for line in examined.stdout.splitlines() if line.startswith("  ✗")] == mistakes
    assert examined.stdout.count("  – needs the stage ") == len(STAGES) - 1
    assert examined.stdout.endswith(f"\nnot ready: 4 failed, {len(STAGES) - 1} skipped\n")
    assert (served.returncode, examined.returncode, examined.stderr) == (2, 2, "")


REPORT = findings.Report(
    (
        findings.Stage(
            "configuration",
            (
                findings.CheckResult("a_code", "passed", "everything is there: redis://… at 20 °C"),
                findings.CheckResult("b_code", "failed", "a long text " * 20, "what to do about it " * 20, "erp"),
                findings.CheckResult("c_code", "warning", "not \x1b[31mred", "look"),
            ),
        ),
        findings.Stage("machine", (findings.CheckResult("skipped", "skipped", "needs another stage"),)),
    )
)


def printed(console: Console) -> None:
    printer = doctor.ReportPrinter(console)
    for stage in REPORT.stages:
        printer.begin(stage.name)
        for finding in stage.findings:
            printer.show(stage.name, finding)
    printer.result(REPORT)


def test_a_pipe_gets_one_line_for_a_finding() -> None:
    output = io.StringIO()
    printed(Console(file=output, highlight=False, no_color=True))
    assert output.getvalue() == (
        "configuration\n  ✓ everything is there: redis://… at 20 °C\n"
        f"  ✗ erp: {'a long text ' * 20}\n    → {'what to do about it ' * 20}\n"
        "  ! not \\x1b[31mred\n    → look\n"
        "machine\n  – needs another stage\n"
        "\nnot ready: 1 passed, 1 failed, 1 skipped, 1 warning\n"
    )


def test_trouble_outside_the_configuration_has_exit_code_1_and_changes_nothing(
    run_command: Run, config_file: Any, tmp_path: Path
) -> None:
    store = tmp_path / "state.sqlite"
    store.write_text("no database")
    done = run_command("doctor", "--config", str(config_file(WRONG_STORE)), "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert "store_damaged" in failed(report)
    assert not report["ok"]
    assert store.read_text() == "no database"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["own.yaml", "state.sqlite"]


@pytest.mark.parametrize("text", [MISTAKES, WRONG_STORE])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_secret_is_printed(run_command: Run, config_file: Any, text: str, options: tuple[str, ...]) -> None:
    done = run_command("doctor", "--config", str(config_file(text)), *options)
    assert done.stdout
    assert "planted" not in done.stdout + done.stderr


def test_recorded_requests_are_estimated(run_command: Run, config_file: Any) -> None:
    done = run_command("doctor", "--config", str(config_file(WRONG_STORE)), "--requests", "examples/access.log")
    assert "✓ examples/access.log: 34 requests, at most 138 parts without a cache: /parts/match 96" in done.stdout
    assert not os.path.exists(config_file("").with_name("state.sqlite"))
