"""Tests of a run: the order of the stages, what is skipped and why, and what observers get."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from proxy.doctor import run
from proxy.doctor.findings import CheckResult, Report, found, passed
from proxy.doctor.inspection import Inspection, StageCheck
from proxy.kit import clock

from .conftest import start_nothing


async def right(_: Inspection) -> AsyncIterator[CheckResult]:
    yield passed("right_thing", "it is right")


async def wrong(_: Inspection) -> AsyncIterator[CheckResult]:
    yield found("proxy_failed", "it is wrong", application="erp")
    yield found("proxy_failed", "it is wrong, too", advice="a better remedy")


async def odd(_: Inspection) -> AsyncIterator[CheckResult]:
    yield found("clock_inexact", "it is odd")


def never(_: Inspection) -> bool:
    return False


def always(_: Inspection) -> bool:
    return True


async def run_of(monkeypatch: pytest.MonkeyPatch, *stages: StageCheck) -> tuple[Report, list[Any]]:
    monkeypatch.setattr(run, "STAGES", stages)
    seen: list[Any] = []
    async with AsyncExitStack() as resources:
        inspection = Inspection(Path("config.yaml"), {}, clock.ManualClock(), start_nothing, resources)
        report = await run.run(inspection, lambda stage, finding: seen.append((stage, finding.code)), seen.append)
    return report, seen


def test_a_stage_needs_one_before_it() -> None:
    names = [stage.name for stage in run.STAGES]
    assert all(names.index(stage.needs) < place for place, stage in enumerate(run.STAGES) if place)


async def test_a_stage_is_skipped_because_of_the_one_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = await run_of(
        monkeypatch,
        StageCheck("network", wrong, is_ready=always),
        StageCheck("identity", right, "network", never),
        StageCheck("graphql", right, "identity", never),
    )
    assert [finding.text for stage in report.stages[1:] for finding in stage.findings] == [
        "needs the stage network, which has failed",
        "needs the stage identity, which was skipped",
    ]
    assert [finding.outcome for stage in report.stages[1:] for finding in stage.findings] == ["skipped"] * 2


@pytest.mark.parametrize("check, ok", [(right, True), (odd, True), (wrong, False)])
async def test_only_failures_make_a_run_unsuccessful(monkeypatch: pytest.MonkeyPatch, check: Any, ok: bool) -> None:
    report, _ = await run_of(monkeypatch, StageCheck("machine", check, is_ready=always))
    assert (report.ok, report.stages[0].has_failed) == (ok, not ok)
