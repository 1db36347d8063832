"""Requests of v3: query strings in every spelling of clients (contract v3-rest.md §2, §6), and slips in a path."""

import time
from urllib import parse

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy import errors, model
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.v3 import encoding, endpoints
from proxy.v3.actions import parse_projection
from proxy.v3.encoding import Parameters, ResponseFormat, encode_body

BOOK = loader.load(shipped("mappings"))


def shape(query: str, features: frozenset[str] = frozenset()) -> model.Projection:
    return parse_projection(of(query), features, BOOK, "Part")


def of(query: str) -> Parameters:
    return Parameters(f"/v3/parts/match?{query}")


@cases.parametrize(
    "query, value",
    ("q=\udcc2\udcb5", "µ"),
    ("q=\udcff", "�"),
)
def test_text_is_percent_decoded(query: str, value: str | None) -> None:
    assert of(query).text("q") == value


@pytest.mark.parametrize(
    "query", ["includes[]=specs", "include[x]=specs", "include[=specs", "include]=specs", "uids[0]=a"]
)
def test_other_names_are_no_elements_of_the_array(query: str) -> None:
    assert of(query).texts("include") == []


SLICES = ["1:2:3", "[1;2]", "1.5:2", "١:٢", "[[1:2]]", "-:", ":-", "-:-", ":9999999999"]


@pytest.mark.parametrize(
    "query, message",
    [
        *((f"exact_only={value}", r"exact_only must be true or false, not '") for value in ("%00", "x" * 1000)),
        *(
            (f"callback={name}", "callback must be the name of a JavaScript function")
            for name in ("a b", "a()", "a.", ".a", "a[b]", "é", "%3C")
        ),
        *(
            (f"slice[offers]={text}", r"slice\[offers\] must be a range like \[0:5\], not '")
            for text in (*SLICES, ":" + "9" * 5000)
        ),
    ],
)
def test_invalid_value_is_an_error_naming_its_parameter(query: str, message: str) -> None:
    with pytest.raises(errors.BadRequest, match=f"^{message}") as caught:
        ResponseFormat.of(of(query)), of(query).flag("exact_only"), shape(query)
    assert len(caught.value.message) < 120


def test_unknown_names_never_reach_the_projection() -> None:
    projection = shape("show[]=uid&show[]=x&show[]=brand.x&hide[]=x&slice[x]=0:1&slice[offers.x]=0:1&include[]=x")
    assert projection == shape("show[]=uid&hide[]=&include[]=")
    assert len(shape("show[]=x").show) == 1
    assert shape("show[]=x") == shape("show[]=other")


@given(st.text("%4aé1+", max_size=20))
def test_decoding_equals_that_of_urllib(text: str) -> None:
    assert encoding.decoded(text) == parse.unquote_plus(text)


@pytest.mark.parametrize("name", ["include[]", "show[]", "hide[]"])
def test_show_hide_and_slices_have_a_common_bound(name: str) -> None:
    slices = "&".join(f"slice[specs.key{n}.value]=0:1" for n in range(70))
    fields = "&".join(f"{name}=specs.key{n}.value" for n in range(80))
    assert shape(f"{slices}&{fields}")
    message = r"^include\[\], show\[\], hide\[\], slice\[<field>\]: at most 150 values together, not 151$"
    with pytest.raises(errors.BadRequest, match=message):
        shape(f"{slices}&{fields}&{name}=specs")


# ? is jQuery's own name for what it replaces.
@pytest.mark.parametrize("callback", ["app.handle", "?", "app.handlers[0].done", "$jq_1", "jQuery111_222"])
def test_callback_is_called_with_the_json(callback: str) -> None:
    encoded = encode_body('{"mpn":"A\u2028\u2029"}'.encode(), ResponseFormat.of(of(f"callback={callback}")), gzip=False)
    assert encoded.body == callback.encode() + b'({"mpn":"A\\u2028\\u2029"})'
    assert encoded.headers["Content-Type"] == "application/javascript; charset=utf-8"


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
