"""Matching of the elements of two lists. Pure; used by diff. Each element is in exactly one pair or unmatched."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from proxy.tools.compare.judging import json_values
from proxy.tools.compare.judging.identity import ElementIdentity

ALIKE_MAX = 2_500  # pairs that are scored to match elements with equal keys; bounded because the scoring is quadratic

Pairs = list[tuple[int, int]]


class ListMatching(NamedTuple):
    """Result of matching two lists, as indexes (baseline, candidate).

    `missing` are only in the baseline, `extra` only in the candidate; `moved` tells that matched elements are in
    another order."""

    same: Pairs
    changed: Pairs
    missing: list[int]
    extra: list[int]
    moved: bool

    def orders(self) -> tuple[list[int], list[int]]:
        """Return the baseline indexes of the matched elements, in the order of each side."""
        pairs = sorted([*self.same, *self.changed])
        return [was for was, _ in pairs], [was for was, _ in sorted(pairs, key=lambda pair: pair[1])]


def match(baseline: Sequence[Any], candidate: Sequence[Any], identity: ElementIdentity) -> ListMatching:
    """Match two lists: equal elements at both ends first, then equal elements anywhere, then by each key, then by
    position. Results of a match are matched by reference and position, unless nothing but their order differs."""
    rest = _Unmatched(baseline, candidate, identity)
    same = rest.ends() + rest.by(json_values.canonical)
    if identity.by_position and rest.baseline_left and len(baseline) == len(candidate):
        rest, same = _Unmatched(baseline, candidate, identity), []
    keyed = [pair for key in identity.keys for pair in rest.by(key)]
    places = [now for _, now in sorted([*same, *keyed])]
    moved = any(later < earlier for earlier, later in itertools.pairwise(places))
    pairs = sorted([*keyed, *rest.leftover()])
    same += [pair for pair in pairs if json_values.same(baseline[pair[0]], candidate[pair[1]])]
    changed = [pair for pair in pairs if pair not in same]
    return ListMatching(sorted(same), changed, rest.baseline_left, rest.candidate_left, moved)


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
        sizes = len(self._baseline), len(self._candidate)
        head = self._same(range(min(sizes)))
        tail = self._same(range(-1, head - min(sizes) - 1, -1))
        starts = [(place, place) for place in range(head)]
        return self.take(starts + [(sizes[0] - place, sizes[1] - place) for place in range(tail, 0, -1)])

    def _same(self, places: range) -> int:
        """Count the leading indexes whose elements are equal."""
        equal = (json_values.same(self._baseline[place], self._candidate[place]) for place in places)
        return sum(1 for _ in itertools.takewhile(bool, equal))

    def by(self, key: Callable[[Any], Hashable]) -> Pairs:
        """Match elements with equal keys; among several with the same key, the most similar ones."""
        if not self.baseline_left or not self.candidate_left:
            return []
        by_key: defaultdict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for place in self.baseline_left:
            by_key[key(self._baseline[place])][0].append(place)
        for place in self.candidate_left:
            by_key[key(self._candidate[place])][1].append(place)
        alike = (self._alike(*places) for each, places in by_key.items() if each is not None)
        return self.take([pair for pairs in alike for pair in pairs])

    def _alike(self, before: list[int], after: list[int]) -> Pairs:
        """Pair elements with equal keys, those with the most common fields first."""
        is_lone = len(before) <= 1 and len(after) <= 1
        if is_lone or len(before) * len(after) > ALIKE_MAX:
            return list(zip(before, after, strict=False))
        scores = ((-_common(self._baseline[was], self._candidate[now]), was, now) for was in before for now in after)
        left, found = (set(before), set(after)), []
        for _, was, now in sorted(scores):
            if was in left[0] and now in left[1]:
                left[0].remove(was)
                left[1].remove(now)
                found.append((was, now))
        return found

    def leftover(self) -> Pairs:
        """Match the remaining elements: by index, or in order where a side has nothing that identifies them."""
        if self._identity.by_position:
            places = set(self.candidate_left)
            return self.take([(place, place) for place in self.baseline_left if place in places])
        left = self._unknown(self._baseline, self.baseline_left)
        right = self._unknown(self._candidate, self.candidate_left)
        if len(self._baseline) == 1 == len(self._candidate) and self.baseline_left and (left or right):
            return self.take([(0, 0)])
        # One side lacks the identifying fields in all of its elements.
        if len(left) == len(self.baseline_left) or len(right) == len(self.candidate_left):
            left = [place for place in self.baseline_left if type(self._baseline[place]) in (dict, list)]
            right = [place for place in self.candidate_left if type(self._candidate[place]) in (dict, list)]
        return self.take(list(zip(left, right, strict=False)))

    def _unknown(self, side: Sequence[Any], left: list[int]) -> list[int]:
        """Return the places of elements without identity; a scalar has none beside another single value."""
        is_single = len(side) == 1
        return [
            place
            for place in left
            if self._identity.unknown(side[place]) or (is_single and type(side[place]) not in (dict, list))
        ]


def _common(baseline: Any, candidate: Any) -> int:
    """Count the fields that are equal in two objects."""
    if type(baseline) is not dict or type(candidate) is not dict:
        return 0
    return sum(key in candidate and json_values.same(value, candidate[key]) for key, value in baseline.items())
