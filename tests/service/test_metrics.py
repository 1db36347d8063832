"""Metrics of several processes, each of which writes its values to a file of one folder."""

import re
from pathlib import Path

import pytest

from proxy.metrics import Metrics

NAMES = (
    'v3bridge_parts_returned_total{application="demo"}',
    "v3bridge_upstream_requests_in_flight",
    'v3bridge_request_duration_seconds_bucket{le="0.05",route="/v3"}',
    'v3bridge_request_duration_seconds_bucket{le="+Inf",route="/v3"}',
    'v3bridge_request_duration_seconds_count{route="/v3"}',
    'v3bridge_request_duration_seconds_sum{route="/v3"}',
    "v3bridge_store_unavailable",
)


def count(process: Metrics, number: int) -> None:
    process.parts.labels("demo").inc(number)
    process.upstream_in_flight.inc(number)
    process.store_unavailable.set(number == 3)
    for seconds in (0.04, 0.05, 60.0):
        process.request_seconds.labels("/v3").observe(seconds)
    process.flush()


def shown(process: Metrics) -> list[float]:
    lines = dict(re.findall(r"^([^#\n].*) (\S+)$", process.text().decode(), re.MULTILINE))
    return [float(lines[each]) for each in NAMES]


def test_any_process_shows_the_counts_of_all_and_the_gauges_of_those_that_live(tmp_path: Path) -> None:
    one, other = (Metrics(file=tmp_path / f"{number}.metrics") for number in (1, 2))
    count(one, 3)
    assert shown(one) == pytest.approx([3, 3, 2, 3, 3, 60.09, 1])
    count(other, 4)
    assert shown(other) == shown(one) == pytest.approx([7, 7, 4, 6, 6, 120.18, 1])
    successor = Metrics(file=tmp_path / "1.metrics")
    assert shown(other) == pytest.approx([7, 4, 4, 6, 6, 120.18, 0])
    count(successor, 1)
    assert shown(successor) == shown(other) == pytest.approx([8, 5, 6, 9, 9, 180.27, 0])


def test_what_cannot_be_written_is_shown_by_its_own_process(tmp_path: Path) -> None:
    process = Metrics(file=tmp_path / "gone" / "1.metrics")
    count(process, 3)
    assert shown(process)[0] == 3


def test_every_metric_is_named_once_before_it_has_values() -> None:
    process = Metrics()
    before = re.findall(r"^# TYPE (\w+)", process.text().decode(), re.MULTILINE)
    count(process, 1)
    assert re.findall(r"^# TYPE (\w+)", process.text().decode(), re.MULTILINE) == before
    assert len(set(before)) == len(before) > 20
