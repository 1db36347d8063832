"""Tests of confidence intervals, of the noise threshold, and of the sample that is sent twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tools.compare.judging import verdict
from proxy.traffic import v3_request


@pytest.mark.parametrize(
    "hits, of, low, high",
    [
        (15, 148, 0.0624, 0.1605),  # Newcombe 1998, table I: method 3
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (81, 263, 0.2553, 0.3662),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_interval_is_that_of_wilson(hits: int, of: int, low: float, high: float) -> None:
    found = verdict.wilson_interval(hits, of)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_interval_of_no_requests_is_everything() -> None:
    assert (verdict.wilson_interval(0, 0).low, verdict.wilson_interval(0, 0).high) == (0.0, 1.0)


@given(st.integers(1, 10_000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_interval_contains_the_share_and_narrows_with_requests(counts: Any) -> None:
    hits, of = counts
    found, more = verdict.wilson_interval(hits, of), verdict.wilson_interval(hits * 4, of * 4)
    assert 0 <= found.low <= hits / of <= found.high <= 1
    assert more.high - more.low <= found.high - found.low


@given(st.integers(1, 1000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_interval_of_the_complement_is_mirrored(counts: Any) -> None:
    hits, of = counts
    found, rest = verdict.wilson_interval(hits, of), verdict.wilson_interval(of - hits, of)
    assert found.low == pytest.approx(1 - rest.high)
    assert found.high == pytest.approx(1 - rest.low)


def test_difference_as_frequent_as_baseline_noise_is_noise() -> None:
    assert not verdict.exceeds_noise(requests=100, of=1000, flaky_fields=20, sample=200, least=30)


def test_difference_more_frequent_than_noise_counts() -> None:
    assert verdict.exceeds_noise(requests=300, of=1000, flaky_fields=20, sample=200, least=30)


def test_stable_path_has_no_noise() -> None:
    assert verdict.exceeds_noise(requests=1, of=1000, flaky_fields=0, sample=200, least=30)


def test_too_few_repetitions_excuse_nothing() -> None:
    assert verdict.exceeds_noise(requests=1, of=1000, flaky_fields=5, sample=29, least=30)
    assert not verdict.exceeds_noise(requests=1, of=1000, flaky_fields=5, sample=30, least=30)


def test_noise_sample_is_stable_and_of_the_configured_size() -> None:
    ids = [v3_request.V3Request("/parts/match", (("q", str(each)),)).id for each in range(4000)]
    chosen = [each for each in ids if verdict.in_noise_sample(each, 0.2)]
    assert chosen == [each for each in ids if verdict.in_noise_sample(each, 0.2)]
    assert 650 < len(chosen) < 950
    assert all(verdict.in_noise_sample(each, 1.0) for each in ids)
    assert not any(verdict.in_noise_sample(each, 0.0) for each in ids)
