"""docs/how-to/troubleshooting.md works as written, and its diagnoses are those of the program."""

import ast
import os
import re
import subprocess
import sys
from typing import Any, get_args

import pytest

from proxy.cli import doctor
from proxy.doctor import findings, run

from .conftest import ROOT

PROGRAM = f"{sys.executable} -m proxy"


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/how-to/troubleshooting.md"]


@pytest.fixture(scope="module")
def outputs(page: Any, tmp_path_factory: pytest.TempPathFactory, needs_program: Any) -> list[str]:
    """Output of each command of the page, in a folder with its configuration."""
    needs_program("jq")
    folder = tmp_path_factory.mktemp("doctor")
    (configuration,) = page.blocks("yaml", "our.yaml")
    (folder / "our.yaml").write_text(configuration.text)
    (folder / "examples").symlink_to(ROOT / "examples")
    hidden = ("NEXAR_CLIENT_ID", "NEXAR_CLIENT_SECRET")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    environ |= {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    commands = [page.blocks("sh")[0], *page.blocks("sh", "run")]
    return [
        subprocess.run(
            ["sh", "-c", re.sub(r"^v3bridge\b", PROGRAM, block.text, flags=re.MULTILINE)],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        ).stdout
        for block in commands
    ]


def test_shown_output_is_the_real_one(page: Any, outputs: list[str]) -> None:
    mistakes, recorded = page.blocks("text", "output")
    assert outputs[0].startswith(mistakes.text)
    assert set(recorded.text.splitlines()) <= {line.strip() for line in outputs[1].splitlines()}


def test_a_right_installation_has_no_failure(outputs: list[str]) -> None:
    assert outputs[2] == ""


def test_every_stage_is_described(page: Any) -> None:
    stages = [row[0] for row in page.table("stage")]
    assert stages == [stage.name for stage in run.STAGES] == list(get_args(findings.StageName))


def test_exit_codes_are_those_of_the_program(page: Any) -> None:
    assert [row[0] for row in page.table("exit code")] == [
        str(code) for code in (doctor.OK, doctor.FAILED, doctor.UNUSABLE)
    ]


def test_every_diagnosis_of_the_program_is_listed_once(pages: Any) -> None:
    listed = [row[0].strip("`") for row in pages["docs/how-to/troubleshooting.md"].table("code")]
    # Mistakes in the configuration have their codes from its loader.
    files = [file for package in ("doctor", "config") for file in (ROOT / "proxy" / package).glob("*.py")]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    texts |= {"duplicate_apikey", "duplicate_name"}  # made of a noun
    # Services put their names in front.
    texts |= {f"{service}_{text}" for service in ("identity", "graphql") for text in texts}
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    firsts = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "found"]
    found = {first.value for first in firsts if isinstance(first, ast.Constant)}
    assert len(listed) == len(set(listed))
    assert found <= set(listed) <= texts


def test_secrets_are_read_as_the_service_reads_them(page: Any) -> None:
    unit = (ROOT / "deploy/v3bridge.service").read_text(encoding="utf-8")
    (command,) = [block.text for block in page.blocks("sh") if "systemd-run" in block.text]
    paths = [word for word in command.replace("=", " ").split() if word.startswith("/")]
    assert [path for path in paths if path not in unit] == []
