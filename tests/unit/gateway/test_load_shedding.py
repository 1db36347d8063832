"""Tests of load shedding by event loop lag and memory."""

import io
import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support import log_lines

from proxy import config
from proxy.gateway.load_shedding import LATE_CHECKS, LoadShedding
from proxy.telemetry.metrics import Metrics

LATE, CALM = 1.0, 0.01
MB = 1_000_000


class _Load:
    """Load shedding whose memory is what the test says."""

    def __init__(self, lag_seconds: float = 0.25, memory_mb: int = 0) -> None:
        settings = config.OverloadSettings(lag_seconds=lag_seconds, memory_bytes=memory_mb * MB)
        self.used = 0
        self.metrics = Metrics(CollectorRegistry())
        self.shedding = LoadShedding(settings, self.metrics, lambda: self.used * MB)

    def look(self, lag: Any = CALM, times: int = 1) -> None:
        for _ in range(times):
            self.shedding.check(lag)

    def admitted(self, of: int = 1000) -> Any:
        return sum(self.shedding.refusal() is None for _ in range(of))


@pytest.fixture
def log_output() -> Any:
    with log_lines.collected() as stream:
        yield stream


def events(stream: io.StringIO) -> Any:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_single_pause_is_no_overload() -> None:
    load = _Load()
    for _ in range(10):
        load.look(LATE, LATE_CHECKS - 1)
        load.look(CALM)
    assert load.admitted() == 1000


def test_admitted_share_falls_quickly_and_rises_slowly() -> None:
    load = _Load()
    load.look(LATE, LATE_CHECKS)
    assert load.admitted() == pytest.approx(667, abs=2)
    load.look(LATE, 3)
    assert load.admitted() == pytest.approx(197, abs=2)
    load.look(LATE, 100)
    assert load.admitted() == pytest.approx(20, abs=2)  # enough to learn that it can work again
    load.look(CALM, 25)
    assert load.admitted() == pytest.approx(520, abs=2)
    load.look(LATE)  # while it sheds, one late look is enough
    assert load.admitted() == pytest.approx(347, abs=2)
    load.look(CALM, 50)
    assert load.admitted() == 1000


def test_near_the_memory_limit_nothing_is_admitted() -> None:
    load = _Load(memory_mb=1000)
    for used, admitted in ((899, 10), (900, 0), (850, 0), (799, 10), (850, 10)):
        load.used = used
        load.look()
        assert load.admitted(of=10) == admitted, used


def test_zero_disables_load_shedding() -> None:
    load = _Load(lag_seconds=0)
    load.used = 10**9
    load.look(60.0, 100)
    assert load.admitted() == 1000


def test_begin_and_end_of_overload_are_logged(log_output: Any) -> None:
    load = _Load()
    load.used = 123
    load.look(LATE, LATE_CHECKS + 5)
    refused = 10 - load.admitted(of=10)
    load.look(CALM, 100)
    began, ended = events(log_output)
    assert (began["event"], began["reason"], began["lag_seconds"], began["memory_mb"]) == (
        "overload began",
        "event loop lag",
        LATE,
        123,
    )
    assert (ended["event"], ended["refused"]) == ("overload ended", refused)
    text = load.metrics.text().decode()
    assert f"v3bridge_overload_refused_total {refused}.0" in text
    assert "v3bridge_overload 0.0" in text
