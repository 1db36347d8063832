"""Query strings in every spelling that v3 clients use (contract v3-rest.md §2, §6)."""

from urllib import parse

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy import errors, model
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.v3 import parameters
from proxy.v3.actions import parse_projection
from proxy.v3.encoding import ResponseFormat, encode_body
from proxy.v3.parameters import Parameters

BOOK = loader.load(shipped.path("mappings"))


def shape(query: str, features: frozenset[str] = frozenset()) -> model.Projection:
    """Parse the projection of a part from a query string."""
    return parse_projection(of(query), features, BOOK, "Part")


def of(query: str) -> Parameters:
    return Parameters(f"/v3/parts/match?{query}")


@cases.parametrize("target")
def test_target_is_parsed_in_every_form(target: str) -> None:
    parameters = Parameters(target)
    assert (parameters.text("apikey"), parameters.text("queries")) == ("K", "[1]")


@pytest.mark.parametrize(
    "query, value",
    [
        *cases.of(__file__, "text_is_percent_decoded"),
        ("q=\udcc2\udcb5", "µ"),
        ("q=\udcff", "�"),
    ],
)
def test_text_is_percent_decoded(query: str, value: str | None) -> None:
    assert of(query).text("q") == value


def test_target_without_query_has_no_parameters() -> None:
    assert Parameters("/v3/parts/match").text("q") is None


@cases.parametrize("query")
def test_array_has_four_spellings(query: str) -> None:
    assert shape(query).include == {"specs", "datasheets"}


@pytest.mark.parametrize(
    "query", ["includes[]=specs", "include[x]=specs", "include[=specs", "include]=specs", "uids[0]=a"]
)
def test_other_names_are_no_elements_of_the_array(query: str) -> None:
    assert of(query).texts("include") == []


@pytest.mark.parametrize("value", ["=true", "=True", "=TRUE", "=1", "", "="])
def test_true_spellings_are_recognized(value: str) -> None:
    assert of(f"exact_only{value}").flag("exact_only") is True


@pytest.mark.parametrize(
    "query", ["exact_only=false", "exact_only=False", "exact_only=0", "", "exact_only=1&exact_only=0"]
)
def test_false_spellings_are_recognized(query: str) -> None:
    assert of(query).flag("exact_only") is False


@pytest.mark.parametrize("value", ["yes", "2", "none", "%00", "x" * 1000])
def test_invalid_boolean_is_an_error_naming_it(value: str) -> None:
    with pytest.raises(errors.BadRequest, match=r"^exact_only must be true or false, not '") as caught:
        of(f"exact_only={value}").flag("exact_only")
    assert len(caught.value.message) < 100


@pytest.mark.parametrize(
    "query, style",
    [
        ("", ResponseFormat()),
        ("pretty_print=1", ResponseFormat(pretty_print=True)),
        ("callback=", ResponseFormat()),
        ("callback=cb&suppress_status_codes=True", ResponseFormat(callback="cb", suppress_status_codes=True)),
        ("callback=app.handlers[0].done", ResponseFormat(callback="app.handlers[0].done")),
        ("callback=$jq_1", ResponseFormat(callback="$jq_1")),
        ("callback=jQuery111_222&pretty_print=true", ResponseFormat(pretty_print=True, callback="jQuery111_222")),
    ],
)
def test_response_style_is_parsed(query: str, style: ResponseFormat) -> None:
    assert ResponseFormat.of(of(query)) == style


@pytest.mark.parametrize("name", ["1a", "a b", "a()", "alert(1)", "a.", ".a", "a[b]", "a;b", "é", "a%0A", "%3C"])
def test_invalid_callback_is_an_error_without_its_value(name: str) -> None:
    with pytest.raises(errors.BadRequest, match=r"^callback must be the name of a JavaScript function") as caught:
        ResponseFormat.of(of(f"callback={name}"))
    assert len(caught.value.message) < 120


def test_show_and_hide_are_dotted_paths() -> None:
    projection = shape("show[]=brand.name&show[0]=uid&hide=offers&show[]=")
    assert projection.show == {("brand", "name"), ("uid",)}
    assert projection.hide == {("offers",)}


def test_unknown_names_never_reach_the_projection() -> None:
    projection = shape("show[]=uid&show[]=x&show[]=brand.x&hide[]=x&slice[x]=0:1&slice[offers.x]=0:1&include[]=x")
    assert projection == shape("show[]=uid&hide[]=&include[]=")
    assert len(shape("show[]=x").show) == 1
    assert shape("show[]=x") == shape("show[]=other")


def test_features_and_known_names_come_from_the_application_and_the_mapping() -> None:
    projection = shape("include[]=specs&include[]=market_status_v2", frozenset({"TECH_SPECS"}))
    assert projection == model.Projection(include=frozenset({"specs"}), features=frozenset({"TECH_SPECS"}))


@cases.parametrize("value, start, stop")
def test_slice_spellings_are_recognized(value: str, start: int | None, stop: int | None) -> None:
    assert shape(f"slice[offers]={value}").slices == ((("offers",), (start, stop)),)


@pytest.mark.parametrize(
    "value",
    ["", "1", "1:2:3", "a:b", "[1;2]", "1.5:2", "١:٢", "[[1:2]]", "-:", ":-", "-:-", ":" + "9" * 10, ":" + "9" * 5000],
)
def test_invalid_slice_is_an_error_naming_it(value: str) -> None:
    with pytest.raises(errors.BadRequest, match=r"^slice\[offers\] must be a range like \[0:5\], not '"):
        shape(f"slice[offers]={value}")


def test_error_of_a_slice_has_bounded_length() -> None:
    with pytest.raises(errors.BadRequest) as caught:
        shape(f"slice[{'x' * 5000}]={'y' * 5000}")
    assert len(caught.value.message) < 200


def test_slices_are_per_field_and_the_last_one_counts() -> None:
    slices = shape("slice[offers]=:1&slice%5Bdescriptions%5D=2:&slice[offers]=:2").slices
    assert slices == ((("offers",), (None, 2)), (("descriptions",), (2, None)))


def test_too_long_query_string_is_refused_without_parsing() -> None:
    assert of("a=&" * 999 + "q=1").text("q") == "1"
    with pytest.raises(errors.BadRequest, match=r"^query string: at most 1000 parameters, not 22001$"):
        of("a=&" * 22_000)


def test_api_key_is_read_without_decoding_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    whole = parameters.decoded

    def record(text: str) -> str:
        decoded.append(text)
        return whole(text)

    monkeypatch.setattr(parameters, "decoded", record)
    assert of("queries=%5B%5D&apikey=%4B&q=%41").text("apikey") == "K"
    assert {"%5B%5D", "%41"}.isdisjoint(decoded)


@given(st.text("%4aé1+", max_size=20))
def test_decoding_equals_that_of_urllib(text: str) -> None:
    assert parameters.decoded(text) == parse.unquote_plus(text)


@pytest.mark.parametrize("name", ["include[]", "show[]", "hide[]"])
def test_show_hide_and_slices_have_a_common_bound(name: str) -> None:
    slices = "&".join(f"slice[specs.key{n}.value]=0:1" for n in range(70))
    fields = "&".join(f"{name}=specs.key{n}.value" for n in range(80))
    assert shape(f"{slices}&{fields}")
    message = r"^include\[\], show\[\], hide\[\], slice\[<field>\]: at most 150 values together, not 151$"
    with pytest.raises(errors.BadRequest, match=message):
        shape(f"{slices}&{fields}&{name}=specs")


@pytest.mark.parametrize("callback", ["app.handle", "?"])  # ? is jQuery's own name for what it replaces
def test_callback_is_called_with_the_json(callback: str) -> None:
    encoded = encode_body('{"mpn":"A\u2028\u2029"}'.encode(), ResponseFormat.of(of(f"callback={callback}")), gzip=False)
    assert encoded.body == callback.encode() + b'({"mpn":"A\\u2028\\u2029"})'
    assert encoded.headers["Content-Type"] == "application/javascript; charset=utf-8"
