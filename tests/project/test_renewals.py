"""Renewals of recorded responses touch what ran, and nothing if it fails (tests/support/recorded_responses.py)."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = ("brand_of_an_unknown_uid", "head", "no_such_endpoint")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A copy of the cases' test with three of them, and their lines of the recording."""
    tests = tmp_path / "tests"
    copy = tests / "service/cases"
    copy.mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tests / "support").symlink_to(ROOT / "tests/support")
    shutil.copy(ROOT / "tests/conftest.py", tests)
    original = ROOT / "tests/service/cases"
    shutil.copy(original / "test_cases.py", copy)
    for name in (*CASES, "answers"):
        shutil.copytree(original / name, copy / name)
    lines = (original / "responses.txt").read_text("utf-8").splitlines(keepends=True)
    own = [line for line in lines if line.split()[1].rstrip("-0123456789") in CASES]
    (copy / "responses.txt").write_text("".join(own), "utf-8")
    return copy


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    return run


def change_all(recording: Path) -> list[str]:
    """Make every digest of a recording a wrong one; return the lines that it has now."""
    changed = re.sub("(?m)^[0-9a-f]+", "0" * 12, recording.read_text("utf-8"))
    recording.write_text(changed, "utf-8")
    return changed.splitlines()


def test_printed_renewal_of_one_case_makes_it_pass_and_touches_no_other(cases: Path, run: Run) -> None:
    recording = cases / "responses.txt"
    right = recording.read_text("utf-8").splitlines()
    wrong = change_all(recording)
    test = "tests/service/cases/test_cases.py::test_response_and_operations_match_the_case[head-1]"
    failed = run(test)
    assert failed.returncode == 1
    printed = re.search("renew it with: pytest (.+)", failed.stdout)
    assert printed
    assert run(*shlex.split(printed[1])).returncode == 0
    expected = [right[number] if line.endswith(" head-1") else line for number, line in enumerate(wrong)]
    assert recording.read_text("utf-8").splitlines() == expected


def test_renewal_with_a_failing_case_changes_nothing(cases: Path, run: Run) -> None:
    wrong = change_all(cases / "responses.txt")
    (cases / "no_such_endpoint/reply.json").write_text(json.dumps({"status": 299}), "utf-8")
    assert run("tests/service/cases", "--renew-responses").returncode == 1
    assert (cases / "responses.txt").read_text("utf-8").splitlines() == wrong
