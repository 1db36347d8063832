"""Renewals of recorded responses change the lines of what ran, and nothing if a test fails."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support import recorded_responses

TEST = "tests/test_cases.py::test_case[head-1]"
RESPONSE: Any = SimpleNamespace(status=200, headers={}, request_info=SimpleNamespace(url="http://127.0.0.1/v3"))


def run(file: Path, *names: str, renewed: bool = False, failed: bool = False) -> list[str]:
    """Have each name respond with itself; return the differences."""
    session = SimpleNamespace(testsfailed=0)
    request: Any = SimpleNamespace(config=SimpleNamespace(getoption=lambda _: renewed), session=session)
    with recorded_responses.opened(file, request) as recording:
        differences = [recording.difference(name, TEST, RESPONSE, name) for name in names]
        session.testsfailed = int(failed)
    return [each for each in differences if each]


def test_renewal_changes_the_lines_of_what_ran(tmp_path: Path) -> None:
    file = tmp_path / "responses.txt"
    wrong = "".join(f"{'0' * 12} {name}\n" for name in ("brand-1", "head-1"))
    file.write_text(wrong)
    (difference,) = run(file, "head-1")
    assert difference.endswith(f"renew it with: pytest --renew-responses '{TEST}'")
    assert run(file, "head-1", renewed=True, failed=True) == []
    assert file.read_text() == wrong
    run(file, "head-1", renewed=True)
    assert (run(file, "head-1"), len(run(file, "brand-1", "head-1"))) == ([], 1)
    assert file.read_text().startswith(f"{'0' * 12} brand-1\n")
