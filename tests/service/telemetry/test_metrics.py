"""Metrics: values and labels in the text, and no label that could hold an API key."""

import re

import prometheus_client
import pytest

from proxy.kit import clock
from proxy.telemetry import metrics

LABELS = {
    "route",
    "cache",
    "stage",
    "status",
    "operation",
    "outcome",
    "application",
    "quota_account",
    "source",
    "reason",
}
LABELS |= {"service", "le"}


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture
def counted(time: clock.ManualClock) -> metrics.Metrics:
    return metrics.Metrics(prometheus_client.CollectorRegistry(), time)


def test_counters_are_in_the_text(counted: metrics.Metrics) -> None:
    counted.requests["/v3/parts/match", "200"] += 1
    counted.parts["demo",] += 3
    for seconds in (0.02, 0.025, 4, 99):
        counted.upstream_seconds.observe("supSearchMpn", seconds)
    text = counted.text().decode()
    assert 'v3bridge_requests_total{route="/v3/parts/match",status="200"} 1.0' in text
    assert 'v3bridge_parts_returned_total{application="demo"} 3.0' in text
    buckets = re.findall(
        r'v3bridge_upstream_request_duration_seconds_bucket{le="(.+?)",operation="supSearchMpn"} (.+)', text
    )
    assert dict(buckets)["0.01"] == "0.0"
    assert (dict(buckets)["0.025"], dict(buckets)["5.0"], dict(buckets)["+Inf"]) == ("2.0", "3.0", "4.0")
    assert 'v3bridge_upstream_request_duration_seconds_count{operation="supSearchMpn"} 4.0' in text
    assert 'v3bridge_upstream_request_duration_seconds_sum{operation="supSearchMpn"} 103.045' in text


def test_gauge_shows_its_current_value(counted: metrics.Metrics) -> None:
    counted.parts_remaining["demo/erp",] = 7
    counted.parts_remaining["demo/erp",] = 5
    assert 'v3bridge_parts_remaining{quota_account="demo/erp"} 5.0' in counted.text().decode()
    assert "# TYPE v3bridge_parts_remaining gauge" in counted.text().decode()


def test_two_metrics_objects_are_independent(counted: metrics.Metrics) -> None:
    other = metrics.Metrics(prometheus_client.CollectorRegistry())
    counted.queries["hit",] += 1
    assert 'source="hit"' not in other.text().decode()


def test_stages_are_observed_in_sequence_to_the_microsecond(counted: metrics.Metrics, time: clock.ManualClock) -> None:
    began = time.monotonic()
    time.advance(0.00002)
    since = counted.observe_stage("parse", began)
    time.advance(0.3)
    counted.observe_stage("upstream", since)
    text = counted.text().decode()
    assert 'v3bridge_stage_duration_seconds_bucket{le="1e-05",stage="parse"} 0.0' in text
    assert 'v3bridge_stage_duration_seconds_bucket{le="2.5e-05",stage="parse"} 1.0' in text
    assert 'v3bridge_stage_duration_seconds_bucket{le="0.25",stage="upstream"} 0.0' in text
    assert 'v3bridge_stage_duration_seconds_bucket{le="0.5",stage="upstream"} 1.0' in text


def test_age_grows_with_the_clock_until_the_next_mark(counted: metrics.Metrics, time: clock.ManualClock) -> None:
    counted.token_age.mark("demo")
    time.advance(60)
    assert 'v3bridge_token_age_seconds{application="demo"} 60.0' in counted.text().decode()
    counted.token_age.mark("demo")
    assert 'v3bridge_token_age_seconds{application="demo"} 0.0' in counted.text().decode()


def test_labels_are_a_fixed_set_that_cannot_hold_an_api_key(counted: metrics.Metrics) -> None:
    for measure in counted.measures().values():
        if isinstance(measure, metrics.Histogram):
            measure.observe("a", 1)
        else:
            measure[("a",) * len(measure.labels)] = 1
    samples = [sample for family in counted.collect() for sample in family.samples]
    assert {name for sample in samples for name in sample.labels} == LABELS
