"""Tests of operations for parts by v3 uid (contract graphql.md §1.1, §2.1)."""

import json

from hypothesis import given
from hypothesis import strategies as st

from proxy.kit import shipped
from proxy.mapping import loader
from proxy.model import MappingContext, Projection
from proxy.planning import parts, projection_cache

DOCUMENT = (
    projection_cache.ProjectionCache(loader.load(shipped.path("mappings"), "octopart")).parts(Projection()).document
)
HERE = MappingContext("DE", "EUR")

uids = st.text("0123456789abcdef", min_size=16, max_size=16)


@given(st.lists(uids | st.text(max_size=20), max_size=30))
def test_valid_uids_are_requested_once_in_order(given_uids: list[str]) -> None:
    asked = parts.valid_uids(given_uids)
    assert len(set(asked)) == len(asked)
    assert set(asked) <= set(given_uids)
    assert asked == sorted(asked, key=given_uids.index)
    assert all(len(uid) == 16 and set(uid) <= set("0123456789abcdef") for uid in asked)


@given(st.lists(uids, unique=True, max_size=250))
def test_operations_stay_within_the_upstream_id_limit(wanted: list[str]) -> None:
    asks = parts.operations(wanted, DOCUMENT, json.loads, HERE)
    assert all(len(ask.positions) <= 100 and ask.operation.parts_max == len(ask.positions) for ask in asks)
    assert [position for ask in asks for position in ask.positions] == list(range(len(wanted)))


def test_ids_and_market_are_variables() -> None:
    (ask,) = parts.operations(["a" * 16, "b" * 16], DOCUMENT, json.loads, HERE)
    assert (
        b'"variables":{"ids":["aaaaaaaaaaaaaaaa","bbbbbbbbbbbbbbbb"],"country":"DE","currency":"EUR"}'
        in ask.operation.payload
    )


def test_unknown_part_has_no_result() -> None:
    (ask,) = parts.operations(["a" * 16, "b" * 16], DOCUMENT, json.loads, HERE)
    first, second = ask.read(ask.operation.decode(b'{"data": {"supParts": [{"mpn": "A"}, null]}}').data)
    assert (first.records, first.hits, second.records, second.hits) == ([b'{"mpn": "A"}'], 1, [], 0)
