"""History of the last hour: differences of counts by source, windows, series, and percentiles of durations."""

import math
import random

import msgspec
import prometheus_client
import pytest

from proxy.telemetry import history, metrics

NOW = 1_800_000_000.0


def _source(requests: int, name: str = "a", started: float = 0.0) -> history.CountSource:
    return history.CountSource(name, started, history.Counts(requests=requests))


def _requests(past: history.History) -> list[int]:
    return [each.counts.requests for each in past.samples]


def test_percentiles_are_those_of_a_sort_to_the_width_of_a_bucket() -> None:
    random_source = random.Random(3)
    for spread in (0.001, 0.02, 0.3, 2.0, 9.0):
        counted = metrics.Metrics(prometheus_client.CollectorRegistry())
        durations = sorted(random_source.expovariate(1 / spread) for _ in range(1_001))
        for each in durations:
            counted.request_seconds.observe("/v3/parts/match", each)
        counts = history.Counts.of(counted)
        for share in (0.01, 0.5, 0.95, 0.99, 1.0):
            exact = durations[math.ceil(share * len(durations)) - 1]
            estimate = counts.percentile(share)
            assert estimate is not None
            # Both are in the same bucket; above all bounds the last bound is all that is known.
            bounds = (0.0, *metrics.SECONDS)
            lower = max(each for each in bounds if each < exact)
            upper = min((each for each in bounds if each >= exact), default=bounds[-1])
            assert lower <= estimate <= upper


@pytest.mark.parametrize(
    "durations, share, expected",
    [
        ([0.003] * 4, 0.5, 0.0025),  # half of the first bucket, which ends at 5 ms
        ([0.03] * 10, 0.5, 0.0375),  # half of 25 to 50 ms
        ([0.03] * 5 + [0.2] * 5, 0.9, 0.22),  # four fifths of 100 to 250 ms
        ([40.0] * 3, 0.5, 30.0),
        ([], 0.5, None),
    ],
)
def test_percentile_is_interpolated_in_its_bucket(durations: list[float], share: float, expected: float | None) -> None:
    counted = metrics.Metrics(prometheus_client.CollectorRegistry())
    for each in durations:
        counted.request_seconds.observe("/v3/parts/match", each)
    assert history.Counts.of(counted).percentile(share) == (None if expected is None else pytest.approx(expected))


def test_counts_are_those_of_the_metrics_without_uncounted_routes() -> None:
    counted = metrics.Metrics(prometheus_client.CollectorRegistry())
    for route, status, number in (("/v3/parts/match", "200", 5), ("unknown", "404", 2), ("/v3/x", "503", 1)):
        counted.requests[route, status] += number
    counted.requests["/healthz", "200"] += 9
    counted.request_seconds.observe("/healthz", 0.1)
    counted.request_seconds.observe("/v3/x", 0.1)
    counted.parts["demo",] += 3
    counted.parts["erp",] += 4
    counted.queries["shared",] += 6
    counted.upstream_requests["supMultiMatch", "ok"] += 2
    counted.upstream_requests["supMultiMatch", "UpstreamFault"] += 1
    counts = history.Counts.of(counted, uncounted={"/healthz"})
    assert (counts.requests, counts.failed, counts.refused, counts.parts) == (8, 1, 2, 7)
    assert (counts.operations, counts.failed_operations, counts.results) == (3, 1, (0, 6, 0, 0))
    assert (sum(counts.buckets), counts.buckets[metrics.SECONDS.index(0.1)]) == (1, 1)


def test_samples_are_differences_by_source() -> None:
    past = history.History()
    past.add([_source(100, "long here")], NOW)
    past.add([_source(103, "long here"), _source(50, "seen first")], NOW + 5)
    past.add([_source(104, "long here"), _source(57, "seen first"), _source(2, "new", NOW + 6)], NOW + 10)
    past.add([_source(58, "seen first"), _source(2, "new", NOW + 6)], NOW + 15)
    assert _requests(past) == [3, 1 + 7 + 2, 1]


def test_counts_that_fall_count_as_none() -> None:
    past = history.History()
    past.add([_source(100)], NOW)
    past.add([_source(10)], NOW + 5)
    past.add([_source(12)], NOW + 10)
    assert _requests(past) == [0, 2]


def test_last_hour_is_held() -> None:
    past = history.History()
    for number in range(2_000):
        past.add([_source(number)], NOW + number * history.SAMPLE_SECONDS)
    assert len(past.samples) == history.HISTORY_SECONDS / history.SAMPLE_SECONDS


def test_window_covers_the_last_samples_only() -> None:
    past = history.History()
    for number in range(101):
        past.add([_source(number * 10)], NOW + number * 5)
    last = past.window(NOW + 500, 60)
    assert (last.counts.requests, last.seconds) == (120, 60)
    assert past.window(NOW + 503, 60).counts.requests == 120
    assert past.window(NOW + 500, 3_600).seconds == 500
    assert history.History().window(NOW, 60).seconds == 0
    assert past.window(NOW + 10_000, 60).counts.requests == 0


def test_series_adds_up_to_the_hour() -> None:
    past = history.History()
    for number in range(721):
        past.add([_source(number * 2)], NOW + number * 5)
    points = past.series(NOW + 3_600, 120)
    assert (len(points), {each.counts.requests for each in points}) == (120, {12})
    assert points[-1].at == NOW + 3_600
    later = past.series(NOW + 3_600 + 1_800, 120)
    assert [each.counts.requests for each in later[60:]] == [0] * 60


def test_history_can_be_stored() -> None:
    past = history.History()
    for number in range(3):
        past.add([_source(number)], NOW + number)
    again = msgspec.json.decode(msgspec.json.encode(past), type=history.History)
    assert again == past
    again.add([_source(7)], NOW + 3)
    assert _requests(again)[-1] == 5
