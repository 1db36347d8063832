"""Replays a recording through the current mappings, or those of another folder, in the test's own process.

Takes about a second of CPU, less than the command; the judging is that of the command.
"""

import datetime
import json
import re
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from proxy.kit import clock, shipped
from proxy.tools.compare import loader
from proxy.tools.compare.command import local_service
from proxy.tools.compare.judging import judge, summary
from proxy.tools.compare.judging.findings import Comparison
from proxy.tools.compare.judging.tally import Tally
from proxy.tools.compare.results import ComparisonResult
from proxy.tools.compare.running import judgement
from proxy.traffic import http_side, v3_request
from proxy.traffic.recording.recorded import RecordedSide, Recording, ReplayedSide
from proxy.upstream import replay

NOW = 1_700_000_000.0  # of the recorded data

MSEC = re.compile(rb'"msec": ?\d+')  # differs with each response, and is ignored by a shipped rule
AT = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC).timestamp()


class RemappingResult(NamedTuple):
    """Result of a replay. `answers` are the candidate's responses by request, without `msec`."""

    result: ComparisonResult
    answers: dict[str, Any]

    @property
    def counted(self) -> dict[tuple[str, str, str], int]:
        """Return the number of counted differences by endpoint, path and kind."""
        return {
            (group.endpoint, group.path, group.kind): group.differences for group in self.result.groups if group.counts
        }


class RemappableRecording:
    """A recording and the configuration to replay it with."""

    def __init__(self, path: Path, config: Path) -> None:
        self._recorded = Recording(path, NOW)
        self._requests = list(self._recorded.requests())
        self._config = config
        # A defect leaves most responses as they were, and judging is pure: equal responses are judged once.
        self._comparisons: dict[tuple[Any, ...], Comparison] = {}

    def close(self) -> None:
        """Close the recording's file."""
        self._recorded.close()

    async def mapped(self, mappings: Path) -> RemappingResult:
        """Replay the recording with the mappings of a folder. Raises MappingError where the service does not start."""
        path = shipped.path
        with mock.patch.object(shipped, "path", lambda name: mappings if name == "mappings" else path(name)):
            return await self._mapped()

    async def _mapped(self) -> RemappingResult:
        player, time = replay.ResponseReplayer(), clock.SystemClock()
        settings = loader.load(None, {})
        judged = judgement.build(settings, None, time, str)
        baseline, answers, tally = RecordedSide(self._recorded), {}, Tally()
        limits = http_side.SideLimits()
        async with (
            local_service.replaying(local_service.load_config(self._config, replayed=True), player) as service,
            http_side.open_session(limits) as session,
        ):
            side = http_side.HttpSide(http_side.base_url(service.url), limits, service.keys.get, session, clock=time)
            candidate = ReplayedSide(self._recorded, side, player, service.keys, replay.ResponseRecorder())
            for number, request in enumerate(self._requests):
                request_id = f"{number:016x}"
                pair = judge.ResponsePair(
                    await baseline.fetch(request, request_id), await candidate.fetch(request, request_id)
                )
                tally.add(self._compared(judged.judge, request, pair))
                answers[request.id] = _answer(request, pair)
        about = summary.RunInfo(started=AT, ended=AT, source="", baseline="baseline", candidate="candidate")
        return RemappingResult(judged.summary.result(tally, about), answers)

    def _compared(self, judging: judge.Judge, request: v3_request.V3Request, pair: judge.ResponsePair) -> Comparison:
        candidate = pair.candidate
        key = (request.id, candidate.status, MSEC.sub(b"", candidate.body), candidate.failure)
        if key not in self._comparisons:
            self._comparisons[key] = judging.compare(request, AT, pair)
        return self._comparisons[key]


def _answer(request: v3_request.V3Request, pair: judge.ResponsePair) -> Any:
    """Status and JSON body of the candidate's response."""
    body = pair.candidate.body.decode()
    text = body[body.index("(") + 1 : body.rindex(")")] if any(request.values("callback")) else body
    read = json.loads(text) if text else pair.candidate.failure
    if isinstance(read, dict):
        read.pop("msec", None)
    return pair.candidate.status, read
