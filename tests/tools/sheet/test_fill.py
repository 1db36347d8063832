"""Tests of one run, with a job that takes notes and a source in memory."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from support import cases
from tools.sheet.part_source import MemoryPartSource

from proxy.tools.sheet import fill
from proxy.tools.sheet.command.fill_files import FillFiles
from proxy.tools.sheet.command.fill_options import FillOptions
from proxy.tools.sheet.package import saving
from proxy.tools.sheet.parts import Part, PartQuery, PartResult

NUMBERS = [f"PART{number}" for number in range(10)]


class _Notes:
    """A job that keeps its results."""

    unit = "line"
    kept_queries: Sequence[PartQuery] = ()
    later_queries = 0
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()
    distributors: Sequence[str] = ()
    reasons: Mapping[str, int] = {}

    def __init__(self) -> None:
        self.results: list[str] = []

    @property
    def lines(self) -> int:
        return len(NUMBERS)

    @property
    def queries(self) -> Sequence[PartQuery]:
        return [PartQuery(number) for number in NUMBERS]

    def refuse_distributor(self, name: str, reason: str) -> None:
        raise AssertionError("a run fetches; its caller checks names")

    def add(self, result: PartResult) -> None:
        self.results.append(result.query.mpn)

    async def proceed(self, *, stopped: bool) -> Sequence[PartQuery]:
        return ()

    def write(self, target: Path) -> Mapping[str, int]:
        raise AssertionError("a run fetches; its caller writes")


class _Saved(_Notes):
    """A job whose file somebody saves while it is to be written."""

    def write(self, target: Path) -> Mapping[str, int]:
        if target.name == "BOM.csv":
            target.write_bytes(b"mine")
        with saving.replacing(target, target) as stream:
            stream.write(b"filled")
        return {}


def source(batch: int = 4) -> MemoryPartSource:
    """A source of all numbers."""
    return MemoryPartSource({number: Part(number, "TI") for number in NUMBERS}, batch=batch)


async def test_run_gives_the_job_every_result_and_reports_progress() -> None:
    job, parts, progress = _Notes(), source(), list[fill.FillProgress]()
    end = await fill.fetch(job, parts, asyncio.Event(), tell=progress.append)
    assert (sorted(job.results), end) == (NUMBERS, fill.FillEnd(10, 10, None))
    assert progress[-1] == fill.FillProgress(10, 10)
    assert [each.results for each in progress] == list(range(1, 11))


async def test_stopped_run_keeps_its_results_and_the_next_run_continues() -> None:
    job, parts, stop = _Notes(), source(), asyncio.Event()
    end = await fill.fetch(job, parts, stop, tell=lambda progress: stop.set() if progress.results == 3 else None)
    # The fourth was paid for with the others of its request: it is taken from the cache.
    assert (end.results, end.stopped, parts.parts_spent, parts.closed) == (4, fill.INTERRUPTED, 4, True)
    end = await fill.fetch(_Notes(), parts, asyncio.Event())
    assert (end.stopped, parts.parts_spent, parts.upstream_requests) == (None, 10, 3)


async def test_queries_that_need_results_of_others_are_fetched_within_the_budget() -> None:
    class Staged(_Notes):
        """Has two further queries for each result."""

        async def proceed(self, *, stopped: bool) -> Sequence[PartQuery]:
            return [] if stopped or len(self.results) > len(NUMBERS) else [PartQuery("0"), PartQuery("10")]

    parts = MemoryPartSource({number: Part(number, "TI") for number in [*NUMBERS, "0", "10"]})
    end = await fill.fetch(Staged(), parts, asyncio.Event(), budget=100)
    assert end.results == len(NUMBERS) + 2
    job = Staged()
    end = await fill.fetch(job, source(), asyncio.Event(), budget=len(NUMBERS))
    assert (end.results, end.stopped) == (len(NUMBERS), "the budget does not cover the next request")


async def test_budget_ends_the_run_with_its_reason() -> None:
    job = _Notes()
    end = await fill.fetch(job, source(), asyncio.Event(), budget=7)
    assert (end.results, end.parts, end.stopped) == (4, 4, "the budget does not cover the next request")
    assert len(job.results) == 4


async def test_refresh_ignores_the_cache() -> None:
    parts = source()
    await fill.fetch(_Notes(), parts, asyncio.Event())
    await fill.fetch(_Notes(), parts, asyncio.Event(), refresh="everything")
    assert parts.parts_spent == 20


async def test_failures_are_fetched_again_and_parts_are_not() -> None:
    parts = source()
    del parts.parts["PART3"]
    await fill.fetch(_Notes(), parts, asyncio.Event())
    parts.parts["PART3"] = Part("PART3", "TI")
    end = await fill.fetch(_Notes(), parts, asyncio.Event(), refresh="failures")
    assert (end.results, parts.parts_spent) == (10, 10)


def test_what_is_saved_while_the_result_is_written_stays(tmp_path: Path) -> None:
    file = tmp_path / "BOM.csv"
    file.write_bytes(b"read")
    files = FillFiles(FillOptions(file=file, columns="price", in_place=True))
    with files.held():
        files.write(_Saved())
    assert (files.left, file.read_bytes(), files.target.read_bytes()) == (file, b"mine", b"filled")


@cases.parametrize("name, copy")
def test_copy_is_named_after_the_file(name: str, copy: str) -> None:
    assert fill.copy_path(Path("dir") / name) == Path("dir") / copy
