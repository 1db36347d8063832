"""Tests of a run with scripted sides: order, interruption, abort, saved progress, recording."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.comparison_server import request_from_target

from proxy import errors
from proxy.kit import clock
from proxy.redaction import Redaction
from proxy.tools.compare.judging.findings import Comparison
from proxy.tools.compare.judging.judge import Judge
from proxy.tools.compare.running.exchange import ComparisonBudget, Exchanger, Sides
from proxy.tools.compare.running.run import IN_A_ROW, ComparisonRun, RunSinks
from proxy.traffic.recording.recorded import Recording
from proxy.traffic.recording.recorder import Recorder, RecordingHeader
from proxy.traffic.v3_response import SideResponse

NOW = 1_700_000_000.0  # of the recorded data

REQUESTS = [request_from_target(f"/v3/brands/search?q={n}") for n in range(40)]


class Side:
    """Answers by a function of `q`; `then` is called with every request."""

    place = "somewhere"

    def __init__(
        self, answer: Any = lambda q: SideResponse(200, b"{}", 0.1, parts=1), live: bool = True, then: Any = None
    ) -> None:
        self.answer, self.live, self.then = answer, live, then
        self.requests: list[Any] = []

    async def fetch(self, request: Any, request_id: Any) -> Any:
        q = int(request.values("q")[0])
        self.requests.append(q)
        if self.then:
            self.then(q)
        await asyncio.sleep(0)
        return self.answer(q)


def failure(words: Any) -> Any:
    return SideResponse(0, b"", 0.0, parts=0, failure=words)


class _Judge(Judge):
    """Judge that finds every response equivalent; it fails for `broken` requests."""

    def __init__(self, broken: Any = ()) -> None:
        self.broken = broken

    def may_have_moved(self, request: Any, baseline: Any, candidate: Any) -> Any:
        return False

    def compare(self, request: Any, at: Any, pair: Any, *, baseline_again: Any = None, names: Any = None) -> Any:
        if int(request.values("q")[0]) in self.broken:
            raise RecursionError
        return Comparison(request, at, baseline_seconds=pair.baseline.seconds)


@pytest.fixture
def run() -> Any:
    """Runs over CALLS; gives how it ended, and the comparisons by `q`."""

    async def go(
        baseline: Any,
        candidate: Any,
        *,
        judge: Any = None,
        limit: Any = None,
        stop: Any = None,
        at_once: int = 3,
        notes: Any = None,
        requests: Any = REQUESTS,
        secrets: Any = (),
    ) -> Any:
        budget, redaction, found = ComparisonBudget(limit), Redaction(secrets), {}
        exchanger = Exchanger(
            Sides(baseline, candidate),
            budget=budget,
            worst=lambda _: 2,
            paying=lambda *_: None,
            redaction=redaction,
            judge=judge,
        )

        def add(comparison: Any) -> None:
            assert comparison.request.id not in found
            found[comparison.request.id] = comparison

        running = ComparisonRun(
            exchanger,
            judge or _Judge(),
            (notes or RunSinks())._replace(add=add),
            redaction=redaction,
            clock=clock.ManualClock(),
            at_once=at_once,
            spent=lambda: budget.spent,
        )
        ended = await running.run(requests, stop or asyncio.Event())
        return ended, [found[request.id] for request in requests if request.id in found]

    return go


async def test_every_request_is_sent_and_recorded_once(run: Any) -> None:
    baseline, candidate = Side(), Side()
    noted: list[Any] = []
    told: list[Any] = []
    notes = RunSinks(note=lambda id_, comparison: noted.append(id_), tell=told.append)
    ended, found = await run(baseline, candidate, notes=notes)
    assert (ended.complete, ended.stopped, ended.left_out, ended.not_compared) == (True, None, 0, 0)
    assert sorted(baseline.requests) == sorted(candidate.requests) == list(range(40))
    assert sorted(noted) == sorted(request.id for request in REQUESTS)
    assert [each.parts for each in found] == [1] * 40
    assert told[-1] == (40, 0, 0, 40)


async def test_side_that_always_fails_stops_the_run(run: Any) -> None:
    baseline = Side(lambda q: failure("sent HTML instead of JSON (HTTP 200)"))
    candidate = Side()
    ended, found = await run(baseline, candidate)
    assert ended.stopped == f"the baseline sent HTML instead of JSON (HTTP 200), {IN_A_ROW} times in a row"
    assert IN_A_ROW <= len(baseline.requests) <= IN_A_ROW + 3
    assert candidate.requests == []
    assert {each.failure for each in found} == {"the baseline sent HTML instead of JSON (HTTP 200)"}


async def test_progress_holds_no_api_keys(run: Any) -> None:
    request = request_from_target("/v3/brands/search?q=1&other=c4n4ry-key")
    noted = []
    notes = RunSinks(note=lambda id_, comparison: noted.append((id_, comparison)))
    await run(Side(), Side(), notes=notes, requests=[request], secrets=["c4n4ry-key"])
    ((id_, comparison),) = noted
    assert id_ == request.id
    assert "c4n4ry-key" not in repr(comparison)


async def test_full_disk_stops_the_run_with_one_line(run: Any) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(errors.ConfigError, match="the results cannot be written: No space left on device"):
        await run(Side(), Side(), notes=RunSinks(note=full))


async def test_successful_requests_are_recorded_once(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "rec.zst"
    header = RecordingHeader(made=1.0, baseline="a", candidate="b", source="c")
    for _ in range(2):
        recorder = Recorder(file, header, Redaction([]), lambda: NOW)
        baseline = Side(lambda q: failure("…") if q == 3 else SideResponse(200, b'{"q": %d}' % q, 0.1))
        await run(baseline, Side(), notes=RunSinks(recorder=recorder))
        recorder.close()
    recorded = Recording(file, NOW)
    requests = list(recorded.requests())
    assert sorted(request.id for request in requests) == sorted(
        request.id for request in REQUESTS if request.values("q") != ["3"]
    )
    line = recorded.line(REQUESTS[5])
    assert line is not None
    assert line.baseline is not None
    assert line.candidate is not None
    assert (line.baseline.body, line.candidate.body) == ('{"q": 5}', "{}")
    recorded.close()


async def test_unrecorded_request_is_not_marked_as_done(run: Any) -> None:
    class Full:
        known: frozenset[str] = frozenset()

        def keep(self, *_: Any) -> None:
            raise OSError(28, "No space left on device")

    noted = []
    notes = RunSinks(note=lambda id_, _: noted.append(id_), recorder=Full())  # type: ignore[arg-type]
    with pytest.raises(errors.ConfigError, match="No space left on device"):
        await run(Side(), Side(), notes=notes)
    assert noted == []
