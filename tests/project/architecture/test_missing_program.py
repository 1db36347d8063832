"""A test whose server is missing is skipped for a user and fails in CI."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ABSENT = "no-such-program-anywhere"


def test_installed_program_is_returned_as_path(
    needs_program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path(sys.executable)
    monkeypatch.setenv("PATH", str(here.parent))
    assert needs_program(here.name) == str(here)


def test_missing_program_skips_the_test_with_a_reason(
    needs_program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"{ABSENT} is not installed"):
        needs_program(ABSENT)


def test_missing_program_fails_the_test_in_ci(
    needs_program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"add its package to \.ci/programs"):
        needs_program(ABSENT)
