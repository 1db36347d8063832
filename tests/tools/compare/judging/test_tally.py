"""Tests of tallies: they add up in any order, and their size is bounded for any data."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.tools.compare.judging import counting, tally
from proxy.tools.compare.judging.findings import Cause, Comparison, Difference, Finding
from proxy.tools.compare.judging.tally import Tally
from proxy.traffic.v3_request import V3Request

MPN = Finding(Difference("value", "results[*].items[*].mpn", "results[0].items[0].mpn", "A", "B"), "unexplained")
PRICE = Finding(
    Difference("missing", "offers[*].prices.USD[*]", "offers[D 1].prices.USD[10]", [10, "1"]), "unexplained"
)


def request(number: int = 0, client: str = "erp", path: str = "/parts/match", times: int = 1) -> Any:
    return V3Request(path, (("q", str(number)),), client, times, f"log:{number}")


def of(*comparisons: Any) -> Any:
    made = Tally()
    for each in comparisons:
        made.add(each)
    return made


def merged(*tallies: Any) -> Any:
    made = Tally()
    for each in tallies:
        made.merge(each)
    return made


findings = st.lists(
    st.builds(
        Finding,
        st.builds(
            Difference, st.sampled_from(["value", "missing"]), st.sampled_from("abcdefgh"), st.sampled_from("xyz")
        ),
        st.sampled_from(["unexplained", "derived"]),
    ),
    max_size=4,
).map(tuple)
comparisons = st.builds(
    Comparison,
    st.builds(
        request,
        st.integers(0, 50),
        st.sampled_from(["erp", "shop", "bom"]),
        st.sampled_from(["/parts/match", "/parts/search"]),
        st.integers(1, 9),
    ),
    st.integers(0, 1000).map(float),
    findings,
    findings,
    st.dictionaries(st.sampled_from(["r1", "r2"]), st.integers(1, 3)),
    st.none() | st.sampled_from(["baseline: gone", "candidate: HTML"]),
    st.floats(0, 100),
    st.floats(0, 100),
    st.integers(0, 5),
    st.none() | st.integers(0, 5),
)


@given(st.lists(comparisons, max_size=12).flatmap(lambda made: st.tuples(st.just(made), st.permutations(made))))
@settings(max_examples=60)
def test_counting_order_does_not_matter(both: Any) -> None:
    one, other = both
    assert of(*one) == of(*other)


@given(st.lists(comparisons, max_size=5), st.lists(comparisons, max_size=5), st.lists(comparisons, max_size=5))
@settings(max_examples=60)
def test_adding_tallies_is_associative(one: Any, two: Any, three: Any) -> None:
    a, b, c = of(*one), of(*two), of(*three)
    assert merged(merged(a, b), c) == merged(a, merged(b, c)) == merged(c, b, a) == of(*one, *two, *three)
    assert merged(a) == a


@given(st.lists(comparisons, max_size=8))
@settings(max_examples=30)
def test_stored_tally_is_read_back_equal(made: Any) -> None:
    whole = of(*made)
    assert msgspec.json.decode(msgspec.json.encode(whole), type=Tally) == whole
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(whole), type=Tally) == whole


def test_request_counts_once_compared_and_by_frequency_in_the_log() -> None:
    (row,) = of(Comparison(request(times=40), 1.0, (MPN, MPN, PRICE), price=2)).rows.values()
    assert (row.compared, row.occurrences, row.differing, row.paid, row.priced) == (1, 40, 1, 80, 40)


def test_group_counts_requests_and_differences() -> None:
    made = of(
        Comparison(request(1), 5.0, (MPN, MPN)),
        Comparison(request(2, "shop"), 3.0, (MPN,)),
        Comparison(request(3), 9.0, ()),
    )
    (group,) = made.groups.values()
    assert (group.requests, group.differences, group.first_seen, group.last_seen) == (2, 3, 3.0, 5.0)
    assert set(group.clients.values()) == {"erp", "shop"}
    assert {kept.request.origin for kept in group.samples.values()} == {"log:1", "log:2"}
    assert {(kept.baseline, kept.candidate) for kept in group.samples.values()} == {('"A"', '"B"')}


def test_group_keeps_three_samples_without_oversized_requests() -> None:
    long = V3Request("/parts/match", (("q", "x" * 9000),))
    made = of(*(Comparison(request(n), 1.0, (MPN,)) for n in range(50)), Comparison(long, 1.0, (MPN,)))
    (group,) = made.groups.values()
    assert (group.requests, len(group.samples)) == (51, counting.SAMPLES)
    assert len(of(Comparison(long, 1.0, (MPN,))).groups) == 1
    assert of(Comparison(long, 1.0, (MPN,))).groups.popitem()[1].samples == {}


def flood(number: Any, cause: Cause = "unexplained") -> Finding:
    return Finding(Difference("extra", f"k{number}", f"k{number}", candidate=number), cause)


def test_excess_groups_are_counted_without_displacing_others() -> None:
    hostile = [Comparison(request(n), 1.0, tuple(flood(n * 100 + at) for at in range(100))) for n in range(30)]
    real = Comparison(request(99), 1.0, (MPN,))
    one, other = of(real, *hostile), merged(of(*hostile[15:]), of(*hostile[:15]), of(real))
    assert one == other
    assert "results[*].items[*].mpn" in {group.path for group in one.groups.values()}
    assert len(one.groups) <= tally.GROUPS_OF_A_SORT + 1
    assert one.rest + sum(group.differences for group in one.groups.values()) == 3001
    assert len(msgspec.json.encode(one)) < 500_000


def test_excess_clients_are_merged() -> None:
    made = [Comparison(request(n, f"key {n}", times=2), 1.0, (MPN,), price=1) for n in range(700)]
    whole = of(*made)
    assert whole == merged(of(*made[350:]), of(*made[:350]))
    assert len(whole.rows) == tally.ROWS + 1
    assert sum(row.compared for row in whole.rows.values()) == 700
    (others,) = (row for row in whole.rows.values() if row.client == tally.OTHERS)
    assert (others.compared, others.occurrences, others.differing, others.paid) == (200, 400, 200, 400)


def test_samples_end_within_a_day_and_counts_stay() -> None:
    made = of(Comparison(request(1), 100.0, (MPN,)), Comparison(request(2), 50_000.0, (MPN,)))
    before = {key: (group.requests, group.differences, group.first_seen) for key, group in made.groups.items()}
    made.drop_ended(100.0 + 86_000)
    assert [sample.at for group in made.groups.values() for sample in group.samples.values()] == [50_000.0]
    assert {key: (group.requests, group.differences, group.first_seen) for key, group in made.groups.items()} == before
