"""Hypothesis strategies for v3 responses: complete ones with identifiable elements, and arbitrary JSON."""

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

# Few and close to each other, so that equal, nearly equal and equal to Python are all common.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 2, 10**25, Decimal("1"), Decimal("1.0"), Decimal("1.00"), Decimal("1E+1"), Decimal("0.5")]),
    st.sampled_from(["", "1", "1.0", "true", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00+00:00", "\ud800", "x\x00"]),
    st.text(max_size=3),
)
KEYS = st.one_of(
    st.sampled_from(["uid", "sku", "mpn", "name", "value", "items", "item", "offers", "results", "queries", "prices"]),
    st.sampled_from(["a.b", "[*]", "*", '"', "$", "", "seller", "reference", "USD"]),
    st.text(max_size=2),
)
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
RANDOM = st.integers(0, 2**32).map(random.Random)  # a seed is drawn, shrunk and printed in no time


def uid(number: int) -> str:
    return f"{number:016x}"


def match(rng: random.Random) -> dict[str, Any]:
    results = [
        {"items": _some(part, rng, 3), "hits": rng.randint(0, 9), "reference": f"line {number}", "error": None}
        for number in range(rng.randint(1, 3))
    ]
    return {"__class__": "PartsMatchResponse", "msec": 7, "results": results}


def search(rng: random.Random) -> dict[str, Any]:
    results = [{"item": each, "snippet": None} for each in _some(part, rng, 4)]
    return {"__class__": "SearchResponse", "hits": 4, "results": results}


def get_multi(rng: random.Random) -> dict[str, Any]:
    return {found["uid"]: found for found in _some(part, rng, 3)}


def part(rng: random.Random, number: int = 1) -> dict[str, Any]:
    return {
        "__class__": "Part",
        "uid": uid(number),
        "mpn": _word(rng),
        "brand": {"uid": uid(99), "name": _word(rng)},
        "offers": _some(offer, rng, 4),
        "specs": {
            key: {"value": rng.sample(WORDS, rng.randint(0, 2)), "min_value": None}
            for key in rng.sample(["case_package", "resistance", "rohs.status"], rng.randint(0, 3))
        },
    }


def offer(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "__class__": "PartOffer",
        "sku": f"SKU-{number}",
        "seller": rng.choice([{"uid": uid(77), "name": "Digi-Key"}, {"uid": uid(78), "name": "Mouser"}]),
        "prices": {currency: _breaks(rng) for currency in rng.sample(["USD", "EUR"], rng.randint(0, 2))},
        "in_stock_quantity": rng.randint(-4, 9000),
        "packaging": rng.choice([None, "Reel", "Tube"]),
        "is_authorized": rng.random() < 0.5,
    }


WORDS = ["a", "SN74S74N", "1.50", "Ω", "x.y", "10 kΩ", "<b>", "0402"]
RESPONSES = st.one_of(RANDOM.map(match), RANDOM.map(search), RANDOM.map(get_multi), RANDOM.map(part))


def _word(rng: random.Random) -> str:
    return rng.choice(WORDS)


def _some(one: Callable[[random.Random, int], dict[str, Any]], rng: random.Random, most: int) -> list[dict[str, Any]]:
    return [one(rng, number) for number in rng.sample(range(50), rng.randint(0, most))]


def _breaks(rng: random.Random) -> list[Any]:
    quantities = sorted(rng.sample([1, 2, 10, 100, 1000], rng.randint(0, 4)))
    return [[quantity, f"{rng.randint(1, 10**7) / 10**5:.5f}"] for quantity in quantities]


def containers(value: Any, kind: type) -> list[Any]:
    """All lists or objects within a value, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if type(value) is kind else ()), *(found for each in inner for found in containers(each, kind))]
