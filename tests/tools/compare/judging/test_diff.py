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
from proxy.tools.compare.judging.findings import ABSENT

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


ONE, OTHER = part(), part("aa00000000000002", "SN74LS74")
REEL, CUT = offer(packaging="Reel", moq=1000), offer(packaging="Cut Tape", moq=1)
THREE = [offer("1"), offer("2"), offer("3")]
FOUND, FOUND_TOO = ({"item": part(f"aa0000000000000{number}"), "snippet": None} for number in (1, 2))
NOTHING = match()
RANGE = "specs.resistance.value"


def usd(*breaks: Any) -> Any:
    return of_offers(offer(prices={"USD": [*breaks]}))


def without(name: str, *objects: Any) -> list[Any]:
    return [{key: value for key, value in each.items() if key != name} for each in objects]


AT_PRICES = AT_OFFERS + "[Digi-Key 296-1-ND].prices.USD"
MOVED = [("order", OFFERS, AT_OFFERS)] + [
    ("value", OFFERS + "[*].moq", f"{AT_OFFERS}[Digi-Key 296-1-ND{place}].moq") for place in ("", " #2")
]
# What changed, both sides, and kind, path and place of each difference.
CASES: dict[str, tuple[Any, Any, list[tuple[str, str, str]]]] = {
    "a price break is gone": (
        usd([1, "0.7"], [10, "0.6"], [100, "0.5"]),
        usd([1, "0.7"], [100, "0.5"]),
        [("missing", OFFERS + "[*].prices.USD[*]", AT_PRICES + "[10]")],
    ),
    "a quantity is a text": (
        usd([10, "0.7"]),
        usd(["10", "0.7"]),
        [("type", OFFERS + "[*].prices.USD[*].quantity", AT_PRICES + "[10].quantity")],
    ),
    "a price break has three elements": (
        usd([10, "0.7"]),
        usd([10, "0.7", "net"]),
        [("extra", OFFERS + "[*].prices.USD[*][*]", AT_PRICES + "[10][net]")],
    ),
    "an offer is new": (
        of_offers(*THREE[:2]),
        of_offers(THREE[0], THREE[2], THREE[1]),
        [("extra", OFFERS + "[*]", AT_OFFERS + "[Digi-Key 3]")],
    ),
    "offers of one SKU, told apart by their packaging": (
        of_offers(REEL, CUT),
        of_offers({**CUT, "moq": 2}, {**REEL, "moq": 2000}),
        MOVED,
    ),
    "offers of one SKU and packaging, those with most equal fields": (
        of_offers(offer(moq=1, eta=1), offer(moq=2, eta=2)),
        of_offers(offer(moq=3, eta=2), offer(moq=4, eta=1)),
        MOVED,
    ),
    "offers without SKU, compared by position": (
        of_offers(offer("1"), offer("2", MOUSER)),
        of_offers(*without("sku", offer("1"), offer("2", MOUSER))),
        [
            ("missing", OFFERS + "[*].sku", AT_OFFERS + "[Digi-Key 1].sku"),
            ("missing", OFFERS + "[*].sku", AT_OFFERS + "[Mouser 2].sku"),
        ],
    ),
    "the uid of a seller, who has a name": (
        of_offers(offer()),
        of_offers(offer(seller={**DIGI_KEY, "uid": "0" * 16})),
        [("value", OFFERS + "[*].seller.uid", AT_OFFERS + "[Digi-Key 296-1-ND].seller.uid")],
    ),
    "the uid of a part, which has a number and a maker": (
        answer(match(ONE)),
        answer(match(part("bb00000000000001"))),
        [("value", "results[*].items[*].uid", "results[0].items[aa00000000000001].uid")],
    ),
    "results moved, matched by reference": (
        answer(match(ONE, reference="a"), match(reference="b")),
        answer(match(reference="b"), match(part(moq=1), reference="a")),
        [
            ("order", "results", "results"),
            ("extra", "results[*].items[*].moq", "results[0].items[aa00000000000001].moq"),
        ],
    ),
    "results without reference moved": (
        answer(NOTHING, match(ONE), NOTHING),
        answer(match(ONE), NOTHING, NOTHING),
        [("order", "results", "results")],
    ),
    "results without reference, compared by position": (
        answer(NOTHING, match(ONE), NOTHING),
        answer(match(part(moq=1)), NOTHING, NOTHING),
        [
            ("extra", "results[*].items[*]", "results[0].items[aa00000000000001]"),
            ("value", "results[*].hits", "results[0].hits"),
            ("missing", "results[*].items[*]", "results[1].items[aa00000000000001]"),
            ("value", "results[*].hits", "results[1].hits"),
        ],
    ),
    "references are texts": (
        answer(match(reference=7), match(reference=8)),
        answer(match(reference="7"), match(reference="8")),
        [("type", "results[*].reference", f"results[{place}].reference") for place in (0, 1)],
    ),
    "a result is gone among equal ones": (
        answer(*[match(part(f"aa0000000000000{number}")) for number in range(5)]),
        answer(*[match(part(f"aa0000000000000{number}")) for number in (0, 2, 3, 4)]),
        [("missing", "results[*]", "results[1]")],
    ),
    "results of a search moved, matched by their item": (
        {"results": [FOUND, FOUND_TOO]},
        {"results": [FOUND_TOO, {**FOUND, "snippet": "text"}]},
        [("order", "results", "results"), ("type", "results[*].snippet", "results[aa00000000000001].snippet")],
    ),
    "parts by uid": (
        {ONE["uid"]: ONE, "bb00000000000009": OTHER},
        {ONE["uid"]: {**ONE, "mpn": "X"}},
        [("missing", "[*]", "[bb00000000000009]"), ("value", "[*].mpn", "[aa00000000000001].mpn")],
    ),
    "an error instead of parts by uid": (
        {"aa00000000000001": ONE},
        {"__class__": "ClientErrorResponse", "message": "no"},
        [
            ("missing", "[*]", "[aa00000000000001]"),
            ("extra", "__class__", "__class__"),
            ("extra", "message", "message"),
        ],
    ),
    "a key that is no word": (
        {"facet_results": {"fields": {RANGE: {"missing": 1}}}},
        {"facet_results": {"fields": {RANGE: {"missing": 2}}}},
        [("value", f'facet_results.fields["{RANGE}"].missing', f'facet_results.fields["{RANGE}"].missing')],
    ),
    "documents by URL, descriptions by text": (
        part(datasheets=[{"url": "a"}, {"url": "b"}], descriptions=[{"value": "x"}, {"value": "y"}]),
        part(datasheets=[{"url": "b", "mimetype": "text/html"}], descriptions=[{"value": "y"}, {"value": "x"}]),
        [
            ("missing", "datasheets[*]", "datasheets[a]"),
            ("extra", "datasheets[*].mimetype", "datasheets[b].mimetype"),
            ("order", "descriptions", "descriptions"),
        ],
    ),
    "one of two equal numbers, and as a text": (
        {"l": [1, 1]},
        {"l": ["1"]},
        [("missing", "l[*]", "l[1 #2]"), ("type", "l[*]", "l[1]")],
    ),
    "the type of all": ({"a": 1}, [1], [("type", "$", "$")]),
}


@pytest.mark.parametrize("name", CASES)
def test_differences_have_their_kind_path_and_place(name: str) -> None:
    baseline, candidate, expected = CASES[name]
    assert seen(baseline, candidate) == expected


def test_difference_has_both_values() -> None:
    prices = [usd([1, "0.647"], [10, price]) for price in ("0.5", "0.6")]
    (found,) = diff.diff(*prices)
    assert (found.baseline, found.candidate) == ("0.5", "0.6")
    (found,) = diff.diff(of_offers(*THREE), of_offers(*reversed(THREE)))
    assert found.candidate == ["[Digi-Key 3]", "[Digi-Key 2]", "[Digi-Key 1]"]
    (found,) = diff.diff(of_offers(), of_offers(THREE[0]))
    assert (found.baseline, found.candidate) == (ABSENT, THREE[0])


@cases.parametrize("baseline,candidate,kind")
@pytest.mark.parametrize("around", [b"%s", b'{"a": [{"b": %s}], "c": [%s]}', b'[[%s], {"uid": 4, "d": {"e": %s}}]'])
def test_values_equal_only_in_python_differ(baseline: str, candidate: str, kind: str, around: bytes) -> None:
    values = [json_values.read(around.replace(b"%s", text.encode())) for text in (baseline, candidate)]
    assert {each.kind for each in diff.diff(*values)} == {kind}
    assert diff.diff(values[0], values[0]) == []


@pytest.mark.parametrize("name", ["mpn", "sku", "uid", "name", "reference"])
def test_numeric_looking_name_is_no_index(name: str) -> None:
    assert seen({name: "1.5"}, {name: "1.50"}) == [("value", name, name)]


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


def alike(baseline: Any, candidate: Any) -> bool:
    """Compare like `same`, in the simplest way."""
    if type(baseline) is not type(candidate):
        return False
    if isinstance(baseline, dict):
        return baseline.keys() == candidate.keys() and all(alike(baseline[key], candidate[key]) for key in baseline)
    if isinstance(baseline, list):
        return len(baseline) == len(candidate) and all(map(alike, baseline, candidate))
    return str(baseline) == str(candidate)


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


@given(v3_responses.ANY_JSON, v3_responses.ANY_JSON)
def test_differences_exist_exactly_for_unequal_values(baseline: Any, candidate: Any) -> None:
    assert (diff.diff(baseline, candidate) == []) == alike(baseline, candidate)


@given(st.one_of(v3_responses.RESPONSES, v3_responses.ANY_JSON), v3_responses.RANDOM)
def test_every_single_change_is_found(value: Any, rng: Any) -> None:
    made, any_ = changed(value, rng)
    assert bool(diff.diff(value, made)) == any_
