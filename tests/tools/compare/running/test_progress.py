"""Tests of the saved progress of a run, and of resumed runs."""

import contextlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support import cases
from support.comparison_server import request_from_target

from proxy import errors
from proxy.tools.compare.judging.findings import Comparison, Difference, Finding
from proxy.tools.compare.running.progress import ProgressFile, ProgressHeader

HEADER = ProgressHeader(
    baseline="http://old/v3", candidate="http://new/v3", source="/logs/access.log", settings="s1", requests="c1"
)


def compared(n: Any, **fields: Any) -> Any:
    return Comparison(request_from_target(f"/v3/brands/search?q={n}"), 1_700_000_000.5, **fields)


@pytest.fixture
def file(tmp_path: Path) -> Any:
    return tmp_path / "state" / "run.jsonl"


@pytest.fixture
def open_progress() -> Any:
    """Opens progress files, which are closed with the test."""
    with contextlib.ExitStack() as stack:

        def of(file: Any, header: Any = HEADER) -> Any:
            progress = ProgressFile(file, header)
            stack.callback(progress.close)
            return progress

        yield of


@pytest.fixture
def interrupted_file(file: Any) -> Any:
    """A file of a run that was interrupted: two requests done, one in trouble, one under way."""
    progress = ProgressFile(file, HEADER)
    found = Finding(Difference("value", "results[*].msec", "results[0].msec", Decimal("1.10"), 2), "unexplained")
    for n, fields in ((1, {"parts": 3, "findings": (found,)}), (2, {}), (3, {"failure": "the baseline …", "parts": 1})):
        comparison = compared(n, **fields)
        progress.sending(comparison.request.id, 10)
        progress.note(comparison.request.id, comparison)
    progress.sending("under way", 20)
    progress.close()
    return file


def test_run_resumes_with_its_progress(open_progress: Any, interrupted_file: Any) -> None:
    again = open_progress(interrupted_file)
    first, second = again.comparisons()
    assert again.done == {compared(1).request.id, compared(2).request.id}
    assert (first.parts, first.at, second) == (3, 1_700_000_000.5, compared(2))
    assert first.findings[0].difference.baseline == Decimal("1.10")
    assert str(first.findings[0].difference.baseline) == "1.10"


def test_requests_in_flight_count_as_used(open_progress: Any, interrupted_file: Any) -> None:
    assert open_progress(interrupted_file).spent == 3 + 1 + 20


def test_failed_request_is_repeated_and_counted_once(open_progress: Any, interrupted_file: Any) -> None:
    again = open_progress(interrupted_file)
    again.note(compared(3).request.id, compared(3, parts=2))
    again.close()
    last = open_progress(interrupted_file)
    assert [each.request for each in last.comparisons()] == [compared(n).request for n in (1, 2, 3)]
    assert last.spent == 3 + 1 + 2 + 20


@pytest.mark.parametrize("off", [1, 5, 30])
def test_truncated_last_line_is_ignored(open_progress: Any, interrupted_file: Any, off: int) -> None:
    interrupted_file.write_bytes(interrupted_file.read_bytes()[:-off])
    again = open_progress(interrupted_file)
    assert len(again.done) == 2
    again.note(compared(4).request.id, compared(4))
    again.close()
    assert len(open_progress(interrupted_file).done) == 3


@cases.parametrize("other,words")
def test_progress_of_another_run_is_refused_with_the_reason(
    open_progress: Any, interrupted_file: Any, other: Any, words: str
) -> None:
    before = interrupted_file.read_bytes()
    header = ProgressHeader(
        **{name: getattr(HEADER, name) for name in ("baseline", "candidate", "source", "settings", "requests")} | other
    )
    with pytest.raises(errors.ConfigError, match=r"run\.jsonl belongs to another run") as raised:
        open_progress(interrupted_file, header)
    assert words in str(raised.value)
    assert "--fresh" in str(raised.value)
    assert interrupted_file.read_bytes() == before


@pytest.mark.parametrize("text", [b"a file of somebody's own\n", b"no line", b'{"v3bridge-progress": 1}\n', b"\n"])
def test_foreign_file_is_unchanged(open_progress: Any, file: Any, text: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(text)
    with pytest.raises(errors.ConfigError, match="is not a progress file"):
        open_progress(file)
    assert file.read_bytes() == text


def test_unreadable_line_in_the_middle_is_refused(open_progress: Any, interrupted_file: Any) -> None:
    lines = interrupted_file.read_bytes().splitlines(keepends=True)
    interrupted_file.write_bytes(b"".join([*lines[:2], b"what is this\n", *lines[2:]]))
    with pytest.raises(errors.ConfigError, match="has a line that cannot be read"):
        open_progress(interrupted_file)


@pytest.mark.parametrize("fresh", [False, True])
def test_progress_file_has_one_writer(open_progress: Any, file: Any, fresh: bool) -> None:
    first = open_progress(file)
    with pytest.raises(errors.ConfigError, match=r"run\.jsonl cannot be written: another run is writing to it"):
        ProgressFile(file, HEADER, fresh=fresh)
    first.note("a request", compared(1))
    first.close()
    assert open_progress(file).done == {"a request"}
