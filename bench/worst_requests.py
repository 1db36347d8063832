"""Seeded requests that take the service as long as possible, at its bounds and beyond.

Each is a request target of at most TARGET_BYTES bytes, with a kind that names the work of the service.
"""

import json
import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

TARGET_BYTES = 69_500  # limit of a request line, without method and version
WORDS = ("alpha", "beta", "gamma", "delta", "omega", "micro", "power", "semi", "wave", "x")
COMPANY = ("uid", "name", "homepage_url")
TREE = ("uid", "name", "parent_uid", "children_uids", "ancestor_uids", "ancestor_names", "num_parts")
SPECS = tuple(f"specs.{key}.value" for key in ("resistance", "voltage", "capacitance", "pin_count"))


class Fields(NamedTuple):
    """Fields of one search: for sorting, for facets, for filters by value and by range."""

    every: tuple[str, ...]
    counted: tuple[str, ...]
    named: tuple[str, ...]
    ranged: tuple[str, ...]


LISTS = {
    "brands": Fields(COMPANY, COMPANY, COMPANY, COMPANY),
    "sellers": Fields((*COMPANY, "id"), (*COMPANY, "display_flag"), COMPANY, COMPANY),
    "categories": Fields(TREE, TREE, TREE, TREE),
}
PARTS = Fields(
    ("mpn", "avg_price", *SPECS),
    ("brand.name", "brand.uid", "offers.seller.name", "category_uids", *SPECS),
    ("brand.name", "manufacturer.name"),
    SPECS,
)

Pairs = list[tuple[str, str]]


def name_of(number: int) -> str:
    """Return the name of an entry of the lists."""
    return f"{WORDS[number % 10].title()} {WORDS[number // 10 % 10]} {number}"


def targets(rng: random.Random, each: int) -> Iterator[tuple[str, str]]:
    """Generate kinds and targets, `each` targets per kind; the API key is left out."""
    kinds: dict[str, Callable[[random.Random], str]] = {
        "before the API key is checked": _meaningless,
        "a search of a list": lambda rng: _search(rng, *rng.choice(list(LISTS.items()))),
        "a search of parts": lambda rng: _search(rng, "parts", PARTS),
        "a match": _match,
        "objects by uid": _objects,
    }
    for kind, make in kinds.items():
        yield from ((kind, target) for target in islice(_short(make, rng), each))


def _short(make: Callable[[random.Random], str], rng: random.Random) -> Iterator[str]:
    """Generate targets that fit into a request line."""
    while True:
        if len(target := make(rng)) <= TARGET_BYTES:
            yield target


def _meaningless(rng: random.Random) -> str:
    """Make a meaningless query string."""
    piece = rng.choice(["a=&", "%", "%41", "%41a", "&", "[", "a]&", "%C3%A9=%&", "+", "=", "apikey=&", "a[1]=%zz&"])
    many = rng.choice([200, 1_000, TARGET_BYTES // len(piece)])
    names = "&".join(f"{rng.random()}=" for _ in range(rng.choice([0, 999, 4_000])))
    path = rng.choice(["parts/match", "brands/search", "none", "parts/x"])
    return f"/v3/{path}?{names}&{piece * many}"[:TARGET_BYTES]


def _search(rng: random.Random, path: str, fields: Fields) -> str:
    """Make a search at its bounds; one in four exceeds them or contains syntax errors."""
    factor = 1 if rng.random() < 0.75 else 3
    parameters = [*_filters(rng, fields, factor), *_queries(rng, fields, factor), *_counts(rng, fields, factor)]
    rng.shuffle(parameters)
    order = (f"{rng.choice(fields.every)} {rng.choice(['asc', 'desc'])}" for _ in range(10 * rng.choice([1, factor])))
    pairs = [("q", _words(rng)), ("limit", "100"), ("start", rng.choice(["0", "1000"])), ("sortby", ",".join(order))]
    style = rng.choice([[], [("pretty_print", "1"), ("callback", "f" * 128)]])
    return f"/v3/{path}/search?{_written([*pairs, *style, *parameters[: 990 * factor]])}"


def _filters(rng: random.Random, fields: Fields, factor: int) -> Iterator[tuple[str, str]]:
    """Make filter values for some fields, and a few patterns."""
    for field in rng.sample(fields.named, rng.randrange(len(fields.named) + 1)):
        for _ in range(rng.choice([1, 50, 198 * factor])):
            yield f"filter[fields][{field}][]", _value(rng)
        for _ in range(rng.randrange(2) * factor):
            yield f"filter[fields][{field}][]", rng.choice(PATTERNS)


def _queries(rng: random.Random, fields: Fields, factor: int) -> Iterator[tuple[str, str]]:
    """Make filter queries and facet queries, of 10 000 characters together."""
    for _ in range(rng.choice([0, 5, 5 * factor])):
        kind = rng.choice(["filter", "facet", "facet"])
        yield f"{kind}[queries][]", rng.choice(BROKEN) if factor > 1 and rng.random() < 0.2 else _query(rng, fields)


def _counts(rng: random.Random, fields: Fields, factor: int) -> Iterator[tuple[str, str]]:
    for field in rng.sample(fields.counted, rng.randrange(len(fields.counted) + 1)):
        for option, value in (("include", "1"), ("exclude_filter", "1"), ("start", "1000"), ("limit", "100")):
            yield f"facet[fields][{field}][{option}]", value
    yield from (("facet[queries][]", f"{fields.named[0]}:{n}") for n in range(rng.choice([0, 6, 30 * factor])))
    if "num_parts" in fields.counted:
        yield "stats[num_parts][include]", "1"


def _match(rng: random.Random) -> str:
    numbers = ["*".join(rng.choice(["sn74", "a", "lm", "aaa"]) for _ in range(rng.choice([2, 50, 200]))) for _ in "abc"]
    values = [
        "x" * 3_000,
        "9" * 4_000,
        10**4_000,
        {str(n): n for n in range(300)},
        [[[[]]]] * 200,
        "é" * 1_000,
        *numbers,
    ]
    keys = ("mpn", "sku", "q", "mpn_or_sku", "brand", "reference", "limit", "start", *(f"other{n}" for n in range(200)))
    queries = [{key: rng.choice(values) for key in rng.sample(keys, 3)} for _ in range(rng.choice([1, 20, 20, 21]))]
    return f"/v3/parts/match?{_written(_projection(rng))}&queries={quote(json.dumps(queries))}"


def _objects(rng: random.Random) -> str:
    uids = [("uid[]", f"b4a2d0{rng.randrange(10_000):010x}") for _ in range(rng.choice([100, 100, 100, 900]))]
    return f"/v3/{rng.choice(['parts', *LISTS])}/get_multi?{_written(_projection(rng) + uids)}"


def _projection(rng: random.Random) -> Pairs:
    """Make projection parameters: fields, specs of many keys, long paths."""
    paths = ["offers.seller.name", "specs.*.value", "brand", "a." * 50, *(f"specs.spec{n}.value" for n in range(300))]
    names = [("include[]", "specs"), ("include[]", "descriptions"), ("include[]", "datasheets")]
    count = rng.choice([0, 70, 146, 146, 400])
    shown: Pairs = [(rng.choice(["show[]", "hide[]"]), rng.choice(paths)) for _ in range(count // 2)]
    return [*names, *shown, *((f"slice[{rng.choice(paths)}]", "[0:1]") for _ in range(count // 2))]


def _words(rng: random.Random) -> str:
    star = rng.choice(["", "", "*"])
    return rng.choice(
        ["", "a", " ".join(WORDS), "*" + "a*" * rng.choice([5, 400]), " ".join(map(chr, range(97, 122))) + star, star]
    )


def _value(rng: random.Random) -> str:
    """Make a filter value: a name, a uid, or malformed range syntax."""
    others = [f"b4a2d0{rng.randrange(10_000):010x}", "true", "(" + "__" * 200, "[ TO" + " TO" * 100]
    return name_of(rng.randrange(10_000)) if rng.random() < 0.9 else rng.choice(others)


PATTERNS = ("*99*", "*" + "9*" * 100, "Alpha*7", "*a*a*a*a*a*b")
BROKEN = ("(" * 999, "-" * 1_900, "NOT " * 400, "a:b~" * 400, "a:(" + "b OR " * 300, "a:" + "b" * 2_500)


def _query(rng: random.Random, fields: Fields) -> str:
    """Make a query of nearly the maximum length."""
    field, ranged = rng.choice(fields.named), rng.choice(fields.ranged)
    names = " OR ".join(f'"{name_of(rng.randrange(10_000))}"' for _ in range(70))
    return rng.choice(
        [
            " AND ".join(f"{ranged}:[{n} TO *]" for n in range(20)),
            f"{field}:({names})",
            f"{field}:(" + "b " * 900 + ")",
            "(" * 150 + f"{field}:x" + ")" * 150,
            f"{field}:{rng.choice(PATTERNS)}",
        ]
    )


def _written(pairs: Pairs) -> str:
    return "&".join(f"{quote(name, safe='[]')}={quote(value)}" for name, value in pairs)
