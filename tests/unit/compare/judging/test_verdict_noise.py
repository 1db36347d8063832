"""Intervals, what passes for noise, and the sample that is asked twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.compare import requests
from proxy.compare.judging import verdict


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
def test_the_interval_is_wilsons(hits: int, of: int, low: float, high: float) -> None:
    found = verdict.wilson_interval(hits, of)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_nothing_is_known_of_no_requests() -> None:
    assert (verdict.wilson_interval(0, 0).low, verdict.wilson_interval(0, 0).high) == (0.0, 1.0)


@given(st.integers(1, 10_000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_share_lies_in_its_interval_and_more_requests_make_it_narrower(counts: Any) -> None:
    hits, of = counts
    found, more = verdict.wilson_interval(hits, of), verdict.wilson_interval(hits * 4, of * 4)
    assert 0 <= found.low <= hits / of <= found.high <= 1
    assert more.high - more.low <= found.high - found.low


@given(st.integers(1, 1000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_interval_of_the_rest_is_the_mirror(counts: Any) -> None:
    hits, of = counts
    found, rest = verdict.wilson_interval(hits, of), verdict.wilson_interval(of - hits, of)
    assert found.low == pytest.approx(1 - rest.high)
    assert found.high == pytest.approx(1 - rest.low)


def test_what_differs_as_often_as_the_baseline_side_from_itself_is_noise() -> None:
    assert not verdict.exceeds_noise(requests=100, of=1000, flaky_fields=20, twice=200, least=30)


def test_what_differs_more_often_than_that_counts() -> None:
    assert verdict.exceeds_noise(requests=300, of=1000, flaky_fields=20, twice=200, least=30)


def test_a_path_that_never_flaky_fields_has_no_noise() -> None:
    assert verdict.exceeds_noise(requests=1, of=1000, flaky_fields=0, twice=200, least=30)


def test_too_few_requests_asked_twice_excuse_nothing() -> None:
    assert verdict.exceeds_noise(requests=1, of=1000, flaky_fields=5, twice=29, least=30)
    assert not verdict.exceeds_noise(requests=1, of=1000, flaky_fields=5, twice=30, least=30)


def test_the_sample_that_is_asked_twice_is_the_same_in_every_run_and_of_the_size_asked_for() -> None:
    ids = [requests.V3Request("/parts/match", (("q", str(each)),)).id for each in range(4000)]
    chosen = [each for each in ids if verdict.in_noise_sample(each, 0.2)]
    assert chosen == [each for each in ids if verdict.in_noise_sample(each, 0.2)]
    assert 650 < len(chosen) < 950
    assert all(verdict.in_noise_sample(each, 1.0) for each in ids)
    assert not any(verdict.in_noise_sample(each, 0.0) for each in ids)
