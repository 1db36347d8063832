"""The workflow of the hosted checks and the pre-commit hooks: valid, and the same commands as here."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

MINOR_VERSION = "Programming Language :: Python :: 3."


@pytest.fixture
def job(root: Path) -> Any:
    workflow = yaml.safe_load((root / ".github/workflows/check.yml").read_text(encoding="utf-8"))
    return workflow["jobs"]["check"]


def test_workflow_runs_the_whole_proof_on_every_declared_version(root: Path, job: Any) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [line.rpartition(" ")[2] for line in project["classifiers"] if line.startswith(MINOR_VERSION)]
    assert job["strategy"]["matrix"]["python"] == declared
    (step,) = [step for step in job["steps"] if "run" in step]
    assert step["run"] == ".ci/run"
    assert (root / step["run"]).is_file()
    assert step["env"] == {"PYTHON": "python${{ matrix.python }}"}


def test_actions_and_base_images_are_pinned_by_digest(root: Path) -> None:
    workflow = (root / ".github/workflows/check.yml").read_text(encoding="utf-8")
    image = (root / "deploy/Dockerfile").read_text(encoding="utf-8")
    actions, bases = re.findall(r"uses: (\S+)", workflow), re.findall(r"^FROM (\S+)", image, re.MULTILINE)
    assert [name for name in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []
    assert [name for name in bases if not re.fullmatch(r"[\w.:-]+@sha256:[0-9a-f]{64}", name)] == []
    assert actions
    assert bases


def test_pre_commit_hooks_are_valid_and_run_the_tools_of_make_check(root: Path) -> None:
    file = root / ".pre-commit-config.yaml"
    command = [sys.executable, "-m", "pre_commit", "validate-config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    hooks = [hook for repo in yaml.safe_load(file.read_text(encoding="utf-8"))["repos"] for hook in repo["hooks"]]
    tools = {Path(hook["entry"].split()[0]).name for hook in hooks}
    check = (root / "Makefile").read_text(encoding="utf-8").partition("\ncheck:")[2]
    assert {tool for tool in tools if f"$(BIN)/{tool}" in check} == tools == {"ruff", "mypy", "lint-imports"}
