"""Tests of matching: every element of two lists is in one pair or on one side."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support import v3_responses

from proxy.tools.compare.judging import identity, json_values, matching

NAMES = st.sampled_from(["results", "items", "offers", "queries", "imagesets", "broker_listings", "other"])
ELEMENTS = st.lists(
    st.one_of(
        v3_responses.SCALARS,
        st.fixed_dictionaries(
            {}, optional={name: st.sampled_from([1, "1", "a", None]) for name in ("uid", "sku", "reference")}
        ),
        st.tuples(st.sampled_from([1, 2, "1"]), st.sampled_from(["0.5", "0.50"])).map(list),
    ),
    max_size=6,
)


@given(ELEMENTS, ELEMENTS, NAMES, st.sampled_from(["", "prices"]))
def test_every_element_is_paired_at_most_once_and_none_lost(
    baseline: Any, candidate: Any, name: Any, within: Any
) -> None:
    found = matching.match(baseline, candidate, identity.for_list(name, within, [*baseline, *candidate]))
    pairs = [*found.same, *found.changed]
    assert sorted([*(was for was, _ in pairs), *found.missing]) == list(range(len(baseline)))
    assert sorted([*(now for _, now in pairs), *found.extra]) == list(range(len(candidate)))


@given(ELEMENTS, ELEMENTS, NAMES, st.sampled_from(["", "prices"]))
def test_equal_pairs_are_equal_and_changed_pairs_are_not(baseline: Any, candidate: Any, name: Any, within: Any) -> None:
    found = matching.match(baseline, candidate, identity.for_list(name, within, [*baseline, *candidate]))
    assert all(json_values.same(baseline[was], candidate[now]) for was, now in found.same)
    assert not any(json_values.same(baseline[was], candidate[now]) for was, now in found.changed)


@given(ELEMENTS, ELEMENTS)
def test_element_is_missing_only_without_a_counterpart(baseline: Any, candidate: Any) -> None:
    found = matching.match(baseline, candidate, identity.for_list("other", "", []))
    left = {json_values.canonical(candidate[at]) for at in found.extra}
    assert not left.intersection(json_values.canonical(baseline[at]) for at in found.missing)
