"""Metrics: counted things are shown, and no label can hold an apikey."""

import prometheus_client
import pytest

from proxy.telemetry import metrics

LABELS = {"route", "status", "operation", "outcome", "application", "le"}


@pytest.fixture
def counted() -> metrics.Metrics:
    return metrics.Metrics(prometheus_client.CollectorRegistry())


def test_what_was_counted_is_in_the_text(counted):
    counted.requests["/v3/parts/match", "200"].inc()
    counted.parts["demo"].inc(3)
    counted.upstream_seconds["supSearchMpn"].observe(0.02)
    text = counted.text().decode()
    assert 'v3bridge_requests_total{route="/v3/parts/match",status="200"} 1.0' in text
    assert 'v3bridge_parts_returned_total{application="demo"} 3.0' in text
    assert 'v3bridge_upstream_seconds_bucket{le="0.025",operation="supSearchMpn"} 1.0' in text


def test_two_processes_worth_of_metrics_do_not_meet(counted):
    other = metrics.Metrics(prometheus_client.CollectorRegistry())
    counted.answers["hit"].inc()
    assert 'outcome="hit"' not in other.text().decode()


def test_there_is_no_label_that_could_hold_an_apikey(counted):
    for metric in vars(counted).values():
        assert set(getattr(metric, "_labelnames", ())) <= LABELS
