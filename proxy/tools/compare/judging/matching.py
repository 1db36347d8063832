"""Matching of the elements of two lists by their identity, so that a moved element is recognized. Pure; used by diff.

Identifying fields: uid of a part, else part number and manufacturer; seller (uid, else id, else name) and SKU of an
offer; quantity of a price break; reference and position of a result; otherwise the first usual field that is present.
Texts and numbers identify themselves.
"""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from proxy.tools.compare.judging import json_values, unknown_uids

ALIKE_MAX = 2_500  # pairs that are scored to match elements with equal keys; bounded because the scoring is quadratic

Pairs = list[tuple[int, int]]
Key = Callable[[Any], Hashable]  # returns None where the element lacks the identifying fields
Label = tuple[str | None, int]  # identifying text of an element, and its ordinal among those with the same


class ElementIdentity(NamedTuple):
    """Identity of the elements of one list: `keys` are tried in order, each on the elements that the previous ones did
    not match. A label shows an element to readers: by default its first key that is a text. With `by_position`, the
    others are matched by index, and labels are indexes."""

    keys: tuple[Key, ...]
    own_label: Callable[[Any], str | None] | None = None
    by_position: bool = False


class ListMatching(NamedTuple):
    """Result of matching two lists, by index.

    `changed` are the pairs of matched elements that differ, `missing` are only in the baseline, `extra` only in the
    candidate. `orders` are the baseline's indexes of the matched elements in the order of each side, where they moved.
    """

    changed: Pairs
    missing: list[int]
    extra: list[int]
    orders: tuple[list[int], list[int]] | None
    baseline_labels: list[Label]
    extra_labels: dict[int, Label]


def text(value: Any) -> str | None:
    """Return a text or number as text; None for other values, which identify nothing."""
    return str(value) if type(value) in (str, int, Decimal) and value != "" else None


def _field(element: Any, path: str) -> str | None:
    """Return the text or number at dotted names in an element; `a|b` is the first that it has."""
    for names in path.split("|"):
        value = element
        for name in names.split("."):
            value = value.get(name) if type(value) is dict else None
        if (found := text(value)) is not None:
            return found
    return None


def _by(*paths: str, needed: int = 1) -> Key:
    """Make a key of fields, of which an element must have the first, or as many as are `needed`."""

    def key(element: Any) -> Hashable:
        found = tuple(_field(element, path) for path in paths)
        if None in found[:needed]:
            return None
        return found if len(found) > 1 else found[0]

    return key


def _by_uid(element: Any) -> str | None:
    """Key by uid; none for one that v3bridge computed, which no element of the baseline has."""
    uid = _field(element, "uid")
    return None if unknown_uids.computed(None, uid) else uid


def _by_spelling(element: Any) -> Hashable:
    """Key of a scalar; two spellings of a spec value, such as `22` and `22.0`, have the same key."""
    if type(element) in (dict, list):
        return None
    shown = text(element)
    return json_values.spelling_key(shown) if shown else json_values.canonical(element)


def _quantity(price_break: Any) -> str | None:
    return text(price_break[0]) if type(price_break) is list and price_break else None


def _of_item(key: Key) -> Key:
    return lambda result: key(result.get("item") if type(result) is dict else None)


USUAL = (_by_uid, *map(_by, ("url", "listing_url", "sku", "mpn", "name", "value", "key", "id")))
PART = (_by_uid, _by("mpn", "manufacturer.name|brand.name"))
VARIANT = ("packaging", "eligible_region")
BREAKS = ElementIdentity((lambda each: (shown := _quantity(each)) and _by_spelling(shown), _by_spelling), _quantity)
ASKED = ElementIdentity((_by("reference"), _by_spelling), by_position=True)
FOUND = ElementIdentity((*map(_of_item, (*PART, _by("id"), *USUAL)), _by_spelling))
ANYTHING = ElementIdentity((*USUAL, _by_spelling))
NAMED = {
    "results": FOUND,  # of a search; those of a match are ASKED
    "items": ElementIdentity((*PART, *USUAL, _by_spelling)),
    "queries": ASKED,
    "offers": ElementIdentity(
        (
            _by("sku", "seller.uid", *VARIANT),
            _by("sku", "seller.id", *VARIANT, needed=2),
            _by("sku", "seller.name", *VARIANT, needed=2),
            _by("sku", "seller.uid"),
            _by("sku", "seller.id", needed=2),
            _by("sku", "seller.name"),
            _by_spelling,
        ),
        lambda offer: " ".join(filter(None, (_field(offer, "seller.name|seller.uid"), _field(offer, "sku")))) or None,
    ),
    "imagesets": ElementIdentity(
        (_by("large_image.url|medium_image.url|small_image.url|swatch_image.url"), _by_spelling)
    ),
    "sources": ElementIdentity((_by_uid, _by("name"), _by_spelling), _by_uid),
    # Not by listing_url, a click link that differs in each response: without a seller they are compared in order.
    "broker_listings": ElementIdentity((_by("seller.name"), _by("seller.id"), _by_spelling)),
}


def match(name: str, within: str, baseline: Sequence[Any], candidate: Sequence[Any]) -> ListMatching:
    """Match two lists in the field `name` of the field `within`: equal elements at both ends first, then equal elements
    anywhere, then by each key, then by position. Results of a match are matched by reference and position, unless
    nothing but their order differs."""
    identity, first = BREAKS if within == "prices" else NAMED.get(name, ANYTHING), (*baseline[:1], *candidate[:1])
    if identity is FOUND and not any(type(each) is dict and "item" in each for each in first):
        identity = ASKED
    rest = _Unmatched(baseline, candidate, identity)
    same = rest.ends() + rest.by(json_values.canonical)
    if identity.by_position and rest.baseline_left and len(baseline) == len(candidate):
        rest, same = _Unmatched(baseline, candidate, identity), []
    keyed = [pair for key in identity.keys for pair in rest.by(key)]
    places = [now for _, now in sorted([*same, *keyed])]
    orders = None
    pairs = sorted([*keyed, *rest.leftover()])
    if any(later < earlier for earlier, later in itertools.pairwise(places)):
        matched = sorted([*same, *pairs])
        orders = [was for was, _ in matched], [was for was, _ in sorted(matched, key=lambda pair: pair[1])]
    changed = [pair for pair in pairs if not json_values.same(baseline[pair[0]], candidate[pair[1]])]
    turns: Counter[str | None] = Counter()
    labels: list[Label] = []
    for place, element in itertools.chain(
        enumerate(baseline), ((place, candidate[place]) for place in rest.candidate_left)
    ):
        if identity.by_position:
            shown: str | None = str(place)
        elif identity.own_label:
            shown = identity.own_label(element)
        elif type(element) not in (dict, list):
            shown = text(element) or json.dumps(element).strip('"')
        else:
            shown = next((each for key in identity.keys if isinstance(each := key(element), str)), None)
        turns[shown] += 1
        labels.append((shown, 1 if identity.by_position else turns[shown]))
    extra = dict(zip(rest.candidate_left, labels[len(baseline) :], strict=True))
    return ListMatching(changed, rest.baseline_left, rest.candidate_left, orders, labels[: len(baseline)], extra)


class _Unmatched:
    """Elements that are not matched yet, as ascending indexes."""

    def __init__(self, baseline: Sequence[Any], candidate: Sequence[Any], identity: ElementIdentity) -> None:
        self._baseline, self._candidate, self._identity = baseline, candidate, identity
        self.baseline_left, self.candidate_left = list(range(len(baseline))), list(range(len(candidate)))

    def take(self, found: Pairs) -> Pairs:
        """Return the pairs, whose elements are matched now."""
        taken = {was for was, _ in found}, {now for _, now in found}
        self.baseline_left = [place for place in self.baseline_left if place not in taken[0]]
        self.candidate_left = [place for place in self.candidate_left if place not in taken[1]]
        return found

    def ends(self) -> Pairs:
        """Match equal elements at both ends, so that one inserted element among equal ones is one difference and moves
        nothing."""
        one, other = self._baseline, self._candidate
        least = min(len(one), len(other))
        head = next((n for n in range(least) if not json_values.same(one[n], other[n])), least)
        rest = least - head
        tail = next((n for n in range(rest) if not json_values.same(one[-1 - n], other[-1 - n])), rest)
        starts = [(place, place) for place in range(head)]
        return self.take(starts + [(len(one) - place, len(other) - place) for place in range(tail, 0, -1)])

    def by(self, key: Key) -> Pairs:
        """Match elements with equal keys; among several with the same key, those with the most equal fields first."""
        if not self.baseline_left or not self.candidate_left:
            return []
        by_key: defaultdict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for place in self.baseline_left:
            by_key[key(self._baseline[place])][0].append(place)
        for place in self.candidate_left:
            by_key[key(self._candidate[place])][1].append(place)
        found: Pairs = []
        for before, after in [places for value, places in by_key.items() if value is not None]:
            if max(len(before), len(after)) <= 1 or len(before) * len(after) > ALIKE_MAX:
                found += zip(before, after, strict=False)
                continue
            scores, left = [], (set(before), set(after))
            for was, now in itertools.product(before, after):
                one, other, equal = self._baseline[was], self._candidate[now], 0
                if type(one) is dict and type(other) is dict:
                    equal = sum(name in other and json_values.same(value, other[name]) for name, value in one.items())
                scores.append((-equal, was, now))
            for _, was, now in sorted(scores):
                if was in left[0] and now in left[1]:
                    left[0].remove(was)
                    left[1].remove(now)
                    found.append((was, now))
        return self.take(found)

    def leftover(self) -> Pairs:
        """Match the remaining elements: by index, or in order where a side has nothing that identifies them."""
        if self._identity.by_position:
            places = set(self.candidate_left)
            return self.take([(place, place) for place in self.baseline_left if place in places])
        sides = (self._baseline, self.baseline_left), (self._candidate, self.candidate_left)
        nested = [[place for place in left if type(side[place]) in (dict, list)] for side, left in sides]
        # Without identity; a scalar has none beside another single value.
        unknown = [
            [
                place
                for place in left
                if all(key(side[place]) is None for key in self._identity.keys)
                or (len(side) == 1 and type(side[place]) not in (dict, list))
            ]
            for side, left in sides
        ]
        if len(self._baseline) == 1 == len(self._candidate) and self.baseline_left and any(unknown):
            return self.take([(0, 0)])
        # One side lacks the identifying fields in all of its elements.
        lacks = any(len(places) == len(left) for places, (_, left) in zip(unknown, sides, strict=True))
        return self.take(list(zip(*(nested if lacks else unknown), strict=False)))
