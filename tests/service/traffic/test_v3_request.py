"""Tests of request targets, parsed and written back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy.traffic import v3_request


@cases.parametrize("target")
def test_target_is_parsed_in_every_form(target: str) -> None:
    assert v3_request.parse_target(target) == ("/parts/match", (("queries", "[1]"),), "K")


@cases.parametrize(
    "query, pairs",
    ("q=caf\udce9", [("q", "caf\ufffd")]),
    ("q=\ud800", [("q", "?")]),
)
def test_values_are_decoded_as_by_the_service(query: str, pairs: Any) -> None:
    assert v3_request.parse_target(f"/v3/parts/match?{query}") == ("/parts/match", tuple(map(tuple, pairs)), None)


@cases.parametrize("target")
def test_path_without_prefix_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="its path does not begin with /v3 or /api/v3"):
        v3_request.parse_target(target)


@pytest.mark.parametrize(
    "target", ["/v3/", "/v3/part/x", "/v3/parts/a/b", "/v3//parts/x", "/v3/openapi.json", "/v3/manufacturers/x"]
)
def test_unknown_v3_path_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="its path is none of v3's"):
        v3_request.parse_target(target)


def test_empty_api_key_is_none() -> None:
    assert v3_request.parse_target("/v3/brands/x?apikey=")[2] is None


@pytest.mark.parametrize(
    "name", ["apikey", "APIKey", "apikey[]", "apikey%5B0%5D", "apikey[a]", "apikey[a][]", "%61pikey"]
)
def test_api_key_is_found_for_any_spelling_of_its_name(name: str) -> None:
    assert v3_request.parse_target(f"/v3/brands/x?{name}=K&q=1") == ("/brands/x", (("q", "1"),), "K")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAME = TEXT.filter(lambda name: not name.lower().startswith("apikey"))
PAIR = st.tuples(NAME, TEXT)


@given(
    path=st.sampled_from(["/parts/match", "/brands/ü ?#%", "/parts/search"]), query=st.lists(PAIR, max_size=5), key=TEXT
)
def test_serialized_request_is_parsed_back_equal(path: Any, query: Any, key: Any) -> None:
    request = v3_request.V3Request(path, tuple(query))
    read = v3_request.parse_target("/v3" + request.target(key))
    assert read == (path, request.query, key or None)
