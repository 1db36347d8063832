"""Tests of the suggestion in a 404: the intended path, in bounded time, without client data."""

import time

from hypothesis import given
from hypothesis import strategies as st

from proxy.v3 import endpoints

PATHS = [each.path for each in endpoints.ENDPOINTS if "{" not in each.path]


@given(st.sampled_from(PATHS), st.data())
def test_missing_or_doubled_letter_is_recognized(path: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(2, len(path) - 1))
    if path[place] == "/":
        return
    for slip in (path[:place] + path[place + 1 :], path[:place] + path[place] + path[place:]):
        assert endpoints.no_such_path(f"/api/v3{slip}") == f"there is no such path; use /api/v3{path}"


@given(st.text(max_size=60), st.sampled_from(["/", "/v3/", "/api/v4/", "/v3/parts/"]))
def test_suggestion_never_repeats_the_request(text: str, start: str) -> None:
    assert "EXAMPLE_KEY" not in endpoints.no_such_path(f"{start}EXAMPLE_KEY{text}")
    assert "EXAMPLE_KEY" not in endpoints.no_such_path(f"{start}{text}/EXAMPLE_KEY")


def test_long_path_takes_no_more_time_than_a_short_one() -> None:
    began = time.process_time()
    for _ in range(100):
        endpoints.no_such_path("/v3/" + "partz/" * 100_000)
    assert time.process_time() - began < 1


def test_uid_is_no_misspelling() -> None:
    assert endpoints.instead_of_uid("/v3/parts/bd4d768f82c5628a", "bd4d768f82c5628a") is None
    assert endpoints.instead_of_uid("/v3/parts/none", "none") is None
    assert endpoints.instead_of_uid("/v3/parts/matches", "matches") == "there is no such path; use /v3/parts/match"
