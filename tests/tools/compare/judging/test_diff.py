"""Tests of the diff of two responses: one difference each, of the right kind, at its path."""

import copy
import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases, v3_responses

from proxy.tools.compare.judging import diff, json_values
from proxy.tools.compare.judging.findings import ABSENT, Difference

DIGI_KEY = {"__class__": "Seller", "uid": "2c3be9310496fffc", "name": "Digi-Key"}
MOUSER = {"__class__": "Seller", "uid": "a5e060ea85e77627", "name": "Mouser"}


def offer(sku: str = "296-1-ND", seller: Any = DIGI_KEY, **fields: Any) -> Any:
    return {"__class__": "PartOffer", "sku": sku, "seller": seller, "prices": {}, "packaging": None, **fields}


def part(uid: str = "aa00000000000001", mpn: str = "SN74S74N", **fields: Any) -> Any:
    return {"__class__": "Part", "uid": uid, "mpn": mpn, "manufacturer": {"name": "TI"}, "offers": [], **fields}


def match(*items: Any, reference: Any = None) -> Any:
    return {"items": list(items), "hits": len(items), "reference": reference, "error": None}


def answer(*results: Any) -> Any:
    return {"__class__": "PartsMatchResponse", "results": list(results), "msec": 5}


def of_offers(*offers: Any) -> Any:
    return answer(match(part(offers=list(offers))))


def seen(baseline: Any, candidate: Any) -> Any:
    return [(each.kind, each.path, each.place) for each in diff.diff(baseline, candidate)]


OFFERS = "results[*].items[*].offers"
AT_OFFERS = "results[0].items[aa00000000000001].offers"


def test_changed_price_is_reported_at_its_quantity() -> None:
    baseline = of_offers(offer(prices={"USD": [[1, "0.64700"], [10, "0.5"]]}))
    candidate = of_offers(offer(prices={"USD": [[1, "0.64700"], [10, "0.6"]]}))
    assert diff.diff(baseline, candidate) == [
        Difference(
            "value",
            "results[*].items[*].offers[*].prices.USD[*]",
            "results[0].items[aa00000000000001].offers[Digi-Key 296-1-ND].prices.USD[10]",
            "0.5",
            "0.6",
        )
    ]


def test_dropped_price_break_is_one_difference() -> None:
    baseline = of_offers(offer(prices={"USD": [[1, "0.7"], [10, "0.6"], [100, "0.5"]]}))
    candidate = of_offers(offer(prices={"USD": [[1, "0.7"], [100, "0.5"]]}))
    assert diff.diff(baseline, candidate) == [
        Difference(
            "missing", OFFERS + "[*].prices.USD[*]", AT_OFFERS + "[Digi-Key 296-1-ND].prices.USD[10]", [10, "0.6"]
        )
    ]


def test_text_quantity_is_a_type_difference_and_no_lost_price_break() -> None:
    baseline, candidate = (of_offers(offer(prices={"USD": [[quantity, "0.7"]]})) for quantity in (10, "10"))
    path = "[*].prices.USD[*].quantity"
    assert seen(baseline, candidate) == [
        ("type", OFFERS + path, AT_OFFERS + "[Digi-Key 296-1-ND].prices.USD[10].quantity")
    ]


def test_malformed_price_break_is_compared_by_element() -> None:
    baseline = of_offers(offer(prices={"USD": [[10, "0.7"]]}))
    candidate = of_offers(offer(prices={"USD": [[10, "0.7", "net"]]}))
    place = AT_OFFERS + "[Digi-Key 296-1-ND].prices.USD[10][net]"
    assert seen(baseline, candidate) == [("extra", OFFERS + "[*].prices.USD[*][*]", place)]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_added_offer_is_one_difference_at_any_position(at: int) -> None:
    offers = [offer(), offer("67K1122", MOUSER)]
    added = offer("candidate", MOUSER)
    candidate = of_offers(*offers[:at], added, *offers[at:])
    assert diff.diff(of_offers(*offers), candidate) == [
        Difference("extra", OFFERS + "[*]", AT_OFFERS + "[Mouser candidate]", ABSENT, added)
    ]


def test_moved_offers_are_one_difference_of_the_list() -> None:
    offers = [offer("1"), offer("2"), offer("3")]
    assert diff.diff(of_offers(*offers), of_offers(*reversed(offers))) == [
        Difference(
            "order",
            OFFERS,
            AT_OFFERS,
            ["[Digi-Key 1]", "[Digi-Key 2]", "[Digi-Key 3]"],
            ["[Digi-Key 3]", "[Digi-Key 2]", "[Digi-Key 1]"],
        )
    ]


def test_offers_of_one_sku_are_distinguished_by_packaging() -> None:
    reel, cut = offer(packaging="Reel", moq=1000), offer(packaging="Cut Tape", moq=1)
    candidate = of_offers({**cut, "moq": 2}, {**reel, "moq": 2000})
    assert [(each.kind, each.baseline, each.candidate) for each in diff.diff(of_offers(reel, cut), candidate)] == [
        ("order", ["[Digi-Key 296-1-ND]", "[Digi-Key 296-1-ND #2]"], ["[Digi-Key 296-1-ND #2]", "[Digi-Key 296-1-ND]"]),
        ("value", 1000, 2000),
        ("value", 1, 2),
    ]


def test_offers_without_sku_are_compared_by_position() -> None:
    offers = [offer("1"), offer("2", MOUSER)]
    lost = [{key: value for key, value in each.items() if key != "sku"} for each in offers]
    assert seen(of_offers(*offers), of_offers(*lost)) == [
        ("missing", OFFERS + "[*].sku", AT_OFFERS + "[Digi-Key 1].sku"),
        ("missing", OFFERS + "[*].sku", AT_OFFERS + "[Mouser 2].sku"),
    ]


def test_seller_with_another_uid_is_matched_by_name() -> None:
    renamed = offer(seller={**DIGI_KEY, "uid": "0" * 16})
    assert [each.path for each in diff.diff(of_offers(offer()), of_offers(renamed))] == [OFFERS + "[*].seller.uid"]


def test_missing_part_is_one_difference() -> None:
    one, other = part(), part("aa00000000000002", "SN74LS74")
    candidate = {**answer(match(one)), "results": [{**match(one), "hits": 2}]}
    assert diff.diff(answer(match(one, other)), candidate) == [
        Difference("missing", "results[*].items[*]", "results[0].items[aa00000000000002]", other)
    ]


def test_part_with_another_uid_is_matched_by_mpn_and_manufacturer() -> None:
    baseline, candidate = answer(match(part())), answer(match(part("bb00000000000001")))
    assert seen(baseline, candidate) == [("value", "results[*].items[*].uid", "results[0].items[aa00000000000001].uid")]


def test_results_are_matched_by_reference() -> None:
    baseline = answer(match(part(), reference="a"), match(reference="b"))
    candidate = answer(match(reference="b"), match(part(moq=1), reference="a"))
    assert seen(baseline, candidate) == [
        ("order", "results", "results"),
        ("extra", "results[*].items[*].moq", "results[0].items[aa00000000000001].moq"),
    ]


def test_results_without_reference_are_matched_by_position() -> None:
    nothing, one = match(), match(part())
    assert seen(answer(nothing, one, nothing), answer(one, nothing, nothing)) == [("order", "results", "results")]
    other = match(part(moq=1))
    assert seen(answer(nothing, one, nothing), answer(other, nothing, nothing)) == [
        ("extra", "results[*].items[*]", "results[0].items[aa00000000000001]"),
        ("value", "results[*].hits", "results[0].hits"),
        ("missing", "results[*].items[*]", "results[1].items[aa00000000000001]"),
        ("value", "results[*].hits", "results[1].hits"),
    ]


def test_reference_of_another_type_is_a_type_difference() -> None:
    baseline, candidate = (
        answer(match(reference=7), match(reference=8)),
        answer(match(reference="7"), match(reference="8")),
    )
    assert seen(baseline, candidate) == [
        ("type", "results[*].reference", "results[0].reference"),
        ("type", "results[*].reference", "results[1].reference"),
    ]


def test_missing_result_is_found_among_equal_ones() -> None:
    results = [match(part(f"aa0000000000000{number}")) for number in range(5)]
    assert seen(answer(*results), answer(*results[:1], *results[2:])) == [("missing", "results[*]", "results[1]")]


def test_search_results_are_matched_by_their_item() -> None:
    one, other = ({"item": part(f"aa0000000000000{number}"), "snippet": None} for number in (1, 2))
    changed = {**one, "snippet": "text"}
    assert seen({"results": [one, other]}, {"results": [other, changed]}) == [
        ("order", "results", "results"),
        ("type", "results[*].snippet", "results[aa00000000000001].snippet"),
    ]
    assert seen({"results": [one, other]}, {"results": [other]}) == [
        ("missing", "results[*]", "results[aa00000000000001]")
    ]


def test_brands_with_computed_uids_and_no_names_are_compared_in_order() -> None:
    def response(*brands: tuple[str, str]) -> Any:
        found = [{"item": {"__class__": "Brand", "uid": uid, "homepage_url": url}} for uid, url in brands]
        return {"results": found, "hits": len(found)}

    known = ("2239e3330e2df5fe", "http://ti.com")
    baseline = response(("03342567f14e6eb4", "http://a.com"), known, ("0db60eafd68822e8", "http://b.com"))
    candidate = response(("b4a2d0000000001e", "http://a.com"), known, ("b4a2d0000000002e", "http://c.com"))
    assert [(kind, path) for kind, path, _ in seen(baseline, candidate)] == [
        ("uid not known", "results[*].item.uid"),
        ("uid not known", "results[*].item.uid"),
        ("value", "results[*].item.homepage_url"),
    ]


def test_uids_of_get_multi_are_data() -> None:
    one, other = part(), part("aa00000000000002")
    baseline = {one["uid"]: one, "bb00000000000009": other}
    assert diff.diff(baseline, {one["uid"]: {**one, "mpn": "X"}}) == [
        Difference("missing", "[*]", "[bb00000000000009]", other),
        Difference("value", "[*].mpn", "[aa00000000000001].mpn", "SN74S74N", "X"),
    ]


def test_uid_is_data_beside_an_error() -> None:
    candidate = {"__class__": "ClientErrorResponse", "message": "no"}
    assert seen({"aa00000000000001": part()}, candidate) == [
        ("missing", "[*]", "[aa00000000000001]"),
        ("extra", "__class__", "__class__"),
        ("extra", "message", "message"),
    ]


def test_missing_field_is_one_difference_of_any_size() -> None:
    baseline = of_offers(offer(prices={"USD": [[1, "1.0"], [2, "2.0"]], "EUR": [[1, "1.0"]]}))
    assert seen(baseline, of_offers(offer(prices={"EUR": [[1, "1.0"]]}))) == [
        ("missing", OFFERS + "[*].prices.USD", AT_OFFERS + "[Digi-Key 296-1-ND].prices.USD")
    ]


def test_unusual_keys_are_quoted() -> None:
    baseline = {"facet_results": {"fields": {"specs.resistance.value": {"missing": 1}}}}
    candidate = {"facet_results": {"fields": {"specs.resistance.value": {"missing": 2}}}}
    where = 'facet_results.fields["specs.resistance.value"].missing'
    assert seen(baseline, candidate) == [("value", where, where)]


def test_documents_are_matched_by_url_and_descriptions_by_text() -> None:
    baseline = part(datasheets=[{"url": "a"}, {"url": "b"}], descriptions=[{"value": "x"}, {"value": "y"}])
    candidate = part(datasheets=[{"url": "b", "mimetype": "text/html"}], descriptions=[{"value": "y"}, {"value": "x"}])
    assert seen(baseline, candidate) == [
        ("missing", "datasheets[*]", "datasheets[a]"),
        ("extra", "datasheets[*].mimetype", "datasheets[b].mimetype"),
        ("order", "descriptions", "descriptions"),
    ]


def test_single_different_text_is_a_change() -> None:
    assert diff.diff({"value": ["22"]}, {"value": ["33"]}) == [Difference("value", "value[*]", "value[22]", "22", "33")]


@cases.parametrize("baseline,candidate,kind")
@pytest.mark.parametrize("around", [b"%s", b'{"a": [{"b": %s}], "c": [%s]}', b'[[%s], {"uid": 4, "d": {"e": %s}}]'])
def test_values_equal_only_in_python_differ(baseline: str, candidate: str, kind: str, around: bytes) -> None:
    values = [json_values.read(around.replace(b"%s", text.encode())) for text in (baseline, candidate)]
    assert {each.kind for each in diff.diff(*values)} == {kind}
    assert diff.diff(values[0], values[0]) == []


@pytest.mark.parametrize("name", ["mpn", "sku", "uid", "name", "reference"])
def test_numeric_looking_name_is_no_index(name: str) -> None:
    assert seen({name: "1.5"}, {name: "1.50"}) == [("value", name, name)]


def test_response_of_another_type_is_one_difference() -> None:
    assert diff.diff({"a": 1}, [1]) == [Difference("type", "$", "$", {"a": 1}, [1])]


@pytest.mark.parametrize("around", [b"[%s]", b'{"a": %s}', b'{"items": [%s]}'])
@pytest.mark.parametrize("leaf", [b"1", b"123456789012345678901234567890"])
def test_deep_nesting_is_compared_completely(around: bytes, leaf: bytes) -> None:
    levels = 125 if b"items" in around else 250

    def nested(text: Any) -> Any:
        for _ in range(levels):
            text = around.replace(b"%s", text)
        return json_values.read(text)

    assert [each.kind for each in diff.diff(nested(leaf), nested(b'"x"'))] == ["type"]
    assert [each.kind for each in diff.diff(nested(b"1"), nested(b"1.0"))] == ["format"]
    assert diff.diff(nested(leaf), nested(leaf)) == []


def test_huge_texts_are_complete_as_values_and_truncated_in_paths() -> None:
    huge = "x" * 10_000_000
    [missing, extra] = diff.diff({"l": [huge, "a"], "v": 1}, {"l": ["a", huge + "y"], "v": 1})
    assert (missing.baseline, extra.candidate) == (huge, huge + "y")
    assert len(missing.place) < 200
    assert missing.place != extra.place


def test_lone_surrogates_are_compared_like_text() -> None:
    baseline, candidate = (
        json_values.read(rb'{"a": "\ud800", "b": [1]}'),
        json_values.read(rb'{"b": [1], "a": "\ud801"}'),
    )
    assert seen(baseline, candidate) == [("value", "a", "a")]
    assert diff.diff(baseline, dict(reversed(baseline.items()))) == []


def again(value: Any, rng: random.Random) -> Any:
    """Return a deep copy with the keys in another order."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: again(value[key], rng) for key in keys}
    return [again(each, rng) for each in value] if isinstance(value, list) else copy.copy(value)


def alike(baseline: Any, candidate: Any) -> bool:
    """Compare like `same`, in the simplest way."""
    if type(baseline) is not type(candidate):
        return False
    if isinstance(baseline, dict):
        return baseline.keys() == candidate.keys() and all(alike(baseline[key], candidate[key]) for key in baseline)
    if isinstance(baseline, list):
        return len(baseline) == len(candidate) and all(map(alike, baseline, candidate))
    return str(baseline) == str(candidate)


def shuffled(value: Any, rng: random.Random) -> Any:
    """All lists in another order, but not the two halves of a price break."""
    if isinstance(value, dict):
        return {key: shuffled(each, rng) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    made = [each if isinstance(each, list) else shuffled(each, rng) for each in value]
    rng.shuffle(made)
    return made


def prices(found: dict[str, Any]) -> Any:
    return found.get("prices")


def changed(value: Any, rng: random.Random) -> tuple[Any, bool]:
    """One thing in it is another now; whether there was anything to change."""
    made = copy.deepcopy(value)
    whole = [*v3_responses.containers(made, dict), *v3_responses.containers(made, list)]
    spots = [(each, at) for each in whole for at in (each if isinstance(each, dict) else range(len(each)))]
    if not spots:
        return made, False
    container, at = rng.choice(spots)
    before = container[at]
    others = [None, True, 1, 0, Decimal("1.0"), "1", "1.0", [], {}, [before], {"uid": before}]
    container[at] = rng.choice([other for other in others if not alike(other, before)])
    return made, True


@given(st.one_of(v3_responses.RESPONSES, v3_responses.ANY_JSON), v3_responses.RANDOM)
def test_value_does_not_differ_from_itself(value: Any, rng: Any) -> None:
    assert diff.diff(value, again(value, rng)) == []


@given(v3_responses.ANY_JSON, v3_responses.ANY_JSON)
def test_differences_exist_exactly_for_unequal_values(baseline: Any, candidate: Any) -> None:
    assert (diff.diff(baseline, candidate) == []) == alike(baseline, candidate)


@given(st.one_of(v3_responses.RESPONSES, v3_responses.ANY_JSON), v3_responses.RANDOM)
def test_every_single_change_is_found(value: Any, rng: Any) -> None:
    made, any_ = changed(value, rng)
    assert bool(diff.diff(value, made)) == any_


@given(v3_responses.RESPONSES, v3_responses.RANDOM)
def test_reordered_v3_list_is_only_an_order_difference(value: Any, rng: Any) -> None:
    assert {each.kind for each in diff.diff(value, shuffled(value, rng))} <= {"order"}
