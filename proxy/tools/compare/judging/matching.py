"""Matching of the elements of two lists. Pure; used by diff. Each element is in exactly one pair or unmatched."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from proxy.tools.compare.judging import equality
from proxy.tools.compare.judging.identity import ElementIdentity

ALIKE_MAX = 2_500  # pairs that are scored to match elements with equal keys; bounded because the scoring is quadratic

Pairs = list[tuple[int, int]]


class ListMatching(NamedTuple):
    """Result of matching two lists, as indexes (baseline, candidate).

    `missing` are only in the baseline, `extra` only in the candidate; `moved` tells that matched elements are in
    another order.
    """

    same: Pairs
    changed: Pairs
    missing: list[int]
    extra: list[int]
    moved: bool

    def orders(self) -> tuple[list[int], list[int]]:
        """Return the baseline indexes of the matched elements, in the order of each side."""
        pairs = sorted([*self.same, *self.changed])
        return [baseline for baseline, _ in pairs], [
            baseline for baseline, _ in sorted(pairs, key=lambda pair: pair[1])
        ]


def match(baseline: Sequence[Any], candidate: Sequence[Any], identity: ElementIdentity) -> ListMatching:
    """Match two lists: equal elements at both ends first, then equal elements anywhere, then by each key, then by
    position.
    """
    rest = _Unmatched(baseline, candidate, identity)
    same = rest.in_place() if identity.by_position and len(baseline) == len(candidate) else rest.ends()
    same += rest.anywhere()
    keyed = [pair for key in identity.keys for pair in rest.by(key)]
    moved = _moved([*same, *keyed])
    changed = sorted([*keyed, *rest.leftover()])
    if identity.by_position:  # a moved element among changed ones was not searched for by value
        known = len(baseline) == len(candidate)  # equal elements at the same index are already in `same`
        same += [
            (was, now)
            for was, now in changed
            if not (known and was == now) and equality.same(baseline[was], candidate[now])
        ]
        changed = sorted(set(changed).difference(same))
    return ListMatching(sorted(same), changed, rest.baseline_left, rest.candidate_left, moved)


class _Unmatched:
    """Elements that are not matched yet, as ascending indexes."""

    def __init__(self, baseline: Sequence[Any], candidate: Sequence[Any], identity: ElementIdentity) -> None:
        self._baseline, self._candidate, self._identity = baseline, candidate, identity
        self.baseline_left, self.candidate_left = list(range(len(baseline))), list(range(len(candidate)))

    def ends(self) -> Pairs:
        """Match equal elements at both ends, so that one inserted element among equal ones is one difference and moves
        nothing.
        """
        sizes = len(self._baseline), len(self._candidate)
        most = min(sizes)
        # Most lists are equal except for a few elements, so this leaves little for the quadratic steps.
        head = self._same(range(most))
        tail = self._same(range(-1, head - most - 1, -1))
        starts = [(place, place) for place in range(head)]
        return self._take(starts + [(sizes[0] - place, sizes[1] - place) for place in range(tail, 0, -1)])

    def in_place(self) -> Pairs:
        """Match equal elements at the same index."""
        return self._take(
            [
                (place, place)
                for place in self.baseline_left
                if equality.same(self._baseline[place], self._candidate[place])
            ]
        )

    def anywhere(self) -> Pairs:
        """Match equal elements at any index.

        In a list known by position this would separate elements at the same index, so it applies there only where the
        lengths differ or where the order is the only difference.
        """
        if len(self.baseline_left) == 1 == len(self.candidate_left):
            return []
        all_or_none = self._identity.by_position and len(self._baseline) == len(self._candidate)
        few = len(self.baseline_left) * len(self.candidate_left) <= ALIKE_MAX
        if few and not self._any_equal(self.baseline_left[:1] if all_or_none else self.baseline_left):
            return []  # a quick exit: the check is cheaper than canonical forms of all elements
        # Restored below where not all elements match.
        left = self.baseline_left, self.candidate_left
        found = self.by(equality.canonical)
        if all_or_none and self.baseline_left:
            self.baseline_left, self.candidate_left = left
            return []
        return found

    def _any_equal(self, baseline_indexes: Sequence[int]) -> bool:
        return any(
            self._baseline[baseline] == self._candidate[candidate]
            for baseline in baseline_indexes
            for candidate in self.candidate_left
        )

    def by(self, key: Callable[[Any], Hashable]) -> Pairs:
        """Match elements with equal keys; among several with the same key, the most similar ones."""
        if not self.baseline_left or not self.candidate_left:
            return []
        if len(self.baseline_left) == 1 == len(self.candidate_left):
            return self._lone(key)
        candidate_by_key: defaultdict[Hashable, list[int]] = defaultdict(list)
        baseline_by_key: defaultdict[Hashable, list[int]] = defaultdict(list)
        for place in self.candidate_left:
            candidate_by_key[key(self._candidate[place])].append(place)
        for place in self.baseline_left:
            baseline_by_key[key(self._baseline[place])].append(place)
        both = (
            (places, candidate_by_key[each])
            for each, places in baseline_by_key.items()
            if each is not None and each in candidate_by_key
        )
        return self._take(
            [
                pair
                for baseline_indexes, candidate_indexes in both
                for pair in self._alike(baseline_indexes, candidate_indexes)
            ]
        )

    def _lone(self, key: Callable[[Any], Hashable]) -> Pairs:
        """Match the last element of each side: `by` for the most frequent case, without its dicts."""
        baseline, candidate = self.baseline_left[0], self.candidate_left[0]
        known = key(self._baseline[baseline])
        return (
            self._take([(baseline, candidate)])
            if known is not None and known == key(self._candidate[candidate])
            else []
        )

    def _alike(self, baseline_indexes: list[int], candidate_indexes: list[int]) -> Pairs:
        """Pair elements with equal keys, those with the most common fields first."""
        several = len(baseline_indexes) > 1 or len(candidate_indexes) > 1
        if (
            not several
            or len(baseline_indexes) * len(candidate_indexes) > ALIKE_MAX
            or len(_objects(self._baseline, baseline_indexes)) < len(baseline_indexes)
        ):
            return list(zip(baseline_indexes, candidate_indexes, strict=False))
        scores = sorted(
            (-_common(self._baseline[baseline], self._candidate[candidate]), baseline, candidate)
            for baseline in baseline_indexes
            for candidate in candidate_indexes
        )
        left, found = (set(baseline_indexes), set(candidate_indexes)), []
        for _, baseline, candidate in scores:
            if baseline in left[0] and candidate in left[1]:
                left[0].remove(baseline)
                left[1].remove(candidate)
                found.append((baseline, candidate))
        return found

    def leftover(self) -> Pairs:
        """Match the remaining elements: by index, or in order where a side has nothing that identifies them."""
        if not self.baseline_left or not self.candidate_left:
            return []
        if self._identity.by_position:
            places = set(self.candidate_left)
            return self._take([(place, place) for place in self.baseline_left if place in places])
        if len(self._baseline) == 1 == len(self._candidate) and self.baseline_left and self._may_be_one():
            return self._take([(0, 0)])
        baseline_indexes, candidate_indexes = (
            self._unknown(self._baseline, self.baseline_left),
            self._unknown(self._candidate, self.candidate_left),
        )
        if len(baseline_indexes) == len(self.baseline_left) or len(candidate_indexes) == len(
            self.candidate_left
        ):  # one side lacks the identifying fields in all of its elements
            baseline_indexes, candidate_indexes = (
                _objects(self._baseline, self.baseline_left),
                _objects(self._candidate, self.candidate_left),
            )
        return self._take(list(zip(baseline_indexes, candidate_indexes, strict=False)))

    def _unknown(self, side: Sequence[Any], left: list[int]) -> list[int]:
        return [place for place in left if self._identity.unknown(side[place])]

    def _may_be_one(self) -> bool:
        """Return true if two single elements may correspond: not where both are objects with their own identity."""
        known = (
            _objects(side, [0]) and not self._identity.unknown(side[0]) for side in (self._baseline, self._candidate)
        )
        return not all(known)

    def _same(self, places: range) -> int:
        """Count the leading indexes whose elements are equal."""
        for count, place in enumerate(places):
            if not equality.same(self._baseline[place], self._candidate[place]):
                return count
        return len(places)

    def _take(self, found: Pairs) -> Pairs:
        if not found:
            return found
        baseline_indexes, candidate_indexes = {baseline for baseline, _ in found}, {candidate for _, candidate in found}
        self.baseline_left = [place for place in self.baseline_left if place not in baseline_indexes]
        self.candidate_left = [place for place in self.candidate_left if place not in candidate_indexes]
        return found


def _common(baseline: Any, candidate: Any) -> int:
    """Count the fields that are equal in two objects."""
    if type(baseline) is not dict or type(candidate) is not dict:
        return 0
    return sum(key in candidate and equality.same(value, candidate[key]) for key, value in baseline.items())


def _objects(side: Sequence[Any], left: list[int]) -> list[int]:
    return [place for place in left if type(side[place]) in (dict, list)]


def _moved(pairs: Pairs) -> bool:
    places = [candidate for _, candidate in sorted(pairs)]
    return any(later < earlier for earlier, later in itertools.pairwise(places))
