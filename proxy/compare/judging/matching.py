"""Which element of one list belongs to which of another. Pure; used by diff. Loses none, pairs none twice."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from proxy.compare.judging import equality
from proxy.compare.judging.identity import ElementIdentity

ALIKE_MAX = 2_500  # pairs that are looked at to tell elements of one key apart

Pairs = list[tuple[int, int]]


class ListMatching(NamedTuple):
    """Indexes, old and new. `missing` and `extra` stand on one side only; `moved`: what belongs together stands in
    another order.
    """

    same: Pairs
    changed: Pairs
    missing: list[int]
    extra: list[int]
    moved: bool

    def orders(self) -> tuple[list[int], list[int]]:
        """The old indexes of what both sides have, in the order of each side."""
        pairs = sorted([*self.same, *self.changed])
        return [old for old, _ in pairs], [old for old, _ in sorted(pairs, key=lambda pair: pair[1])]


def match(old: Sequence[Any], new: Sequence[Any], identity: ElementIdentity) -> ListMatching:
    """What is the same at both ends first, then what is the same anywhere, then by each key, then by position."""
    rest = _Unmatched(old, new, identity)
    same = rest.in_place() if identity.by_position and len(old) == len(new) else rest.ends()
    same += rest.anywhere()
    keyed = [pair for key in identity.keys for pair in rest.by(key)]
    moved = _moved([*same, *keyed])
    changed = sorted([*keyed, *rest.leftover()])
    if identity.by_position:  # what has moved together with others was not looked for anywhere
        known = len(old) == len(new)  # what stands at one place is not the same
        same += [(was, now) for was, now in changed if not (known and was == now) and equality.same(old[was], new[now])]
        changed = sorted(set(changed).difference(same))
    return ListMatching(sorted(same), changed, rest.old_left, rest.new_left, moved)


class _Unmatched:
    """What is not paired yet, as indexes in order."""

    def __init__(self, old: Sequence[Any], new: Sequence[Any], identity: ElementIdentity) -> None:
        self._old, self._new, self._identity = old, new, identity
        self.old_left, self.new_left = list(range(len(old))), list(range(len(new)))

    def ends(self) -> Pairs:
        """Both ends, so that one element more or less among equal ones is one difference, and nothing has moved."""
        sizes = len(self._old), len(self._new)
        most = min(sizes)
        head = self._same(range(most))
        tail = self._same(range(-1, head - most - 1, -1))
        starts = [(place, place) for place in range(head)]
        return self._take(starts + [(sizes[0] - place, sizes[1] - place) for place in range(tail, 0, -1)])

    def in_place(self) -> Pairs:
        """What is the same at its place."""
        return self._take(
            [(place, place) for place in self.old_left if equality.same(self._old[place], self._new[place])]
        )

    def anywhere(self) -> Pairs:
        """What is the same to the last digit. In lists known by position that would tear apart what stands at one
        place, unless one side has fewer, or nothing but the order differs.
        """
        if len(self.old_left) == 1 == len(self.new_left):
            return []
        all_or_none = self._identity.by_position and len(self._old) == len(self._new)
        few = len(self.old_left) * len(self.new_left) <= ALIKE_MAX
        if few and not self._any_equal(self.old_left[:1] if all_or_none else self.old_left):
            return []  # which is quicker to see than what else they are
        left = self.old_left, self.new_left
        found = self.by(equality.canonical)
        if all_or_none and self.old_left:
            self.old_left, self.new_left = left
            return []
        return found

    def _any_equal(self, olds: Sequence[int]) -> bool:
        return any(self._old[old] == self._new[new] for old in olds for new in self.new_left)

    def by(self, key: Callable[[Any], Hashable]) -> Pairs:
        """What has an equal key; where several have it, what is most alike."""
        if not self.old_left or not self.new_left:
            return []
        if len(self.old_left) == 1 == len(self.new_left):
            return self._lone(key)
        waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
        asking: defaultdict[Hashable, list[int]] = defaultdict(list)
        for place in self.new_left:
            waiting[key(self._new[place])].append(place)
        for place in self.old_left:
            asking[key(self._old[place])].append(place)
        both = ((places, waiting[each]) for each, places in asking.items() if each is not None and each in waiting)
        return self._take([pair for olds, news in both for pair in self._alike(olds, news)])

    def _lone(self, key: Callable[[Any], Hashable]) -> Pairs:
        """As `by`, for one on each side: what most changes leave over."""
        old, new = self.old_left[0], self.new_left[0]
        known = key(self._old[old])
        return self._take([(old, new)]) if known is not None and known == key(self._new[new]) else []

    def _alike(self, olds: list[int], news: list[int]) -> Pairs:
        """Elements that a key does not tell apart, those with the most fields in common first."""
        several = len(olds) > 1 or len(news) > 1
        if not several or len(olds) * len(news) > ALIKE_MAX or len(_objects(self._old, olds)) < len(olds):
            return list(zip(olds, news, strict=False))
        scores = sorted((-_common(self._old[old], self._new[new]), old, new) for old in olds for new in news)
        left, found = (set(olds), set(news)), []
        for _, old, new in scores:
            if old in left[0] and new in left[1]:
                left[0].remove(old)
                left[1].remove(new)
                found.append((old, new))
        return found

    def leftover(self) -> Pairs:
        """What stands at the same place, or, where nothing identifies it on a side, comes in the same turn."""
        if not self.old_left or not self.new_left:
            return []
        if self._identity.by_position:
            places = set(self.new_left)
            return self._take([(place, place) for place in self.old_left if place in places])
        if len(self._old) == 1 == len(self._new) and self.old_left and self._may_be_one():
            return self._take([(0, 0)])
        olds, news = self._unknown(self._old, self.old_left), self._unknown(self._new, self.new_left)
        if len(olds) == len(self.old_left) or len(news) == len(self.new_left):  # one side lost what identifies them
            olds, news = _objects(self._old, self.old_left), _objects(self._new, self.new_left)
        return self._take(list(zip(olds, news, strict=False)))

    def _unknown(self, side: Sequence[Any], left: list[int]) -> list[int]:
        return [place for place in left if self._identity.unknown(side[place])]

    def _may_be_one(self) -> bool:
        """Whether two lone elements can be one: not where both are objects that something tells apart."""
        known = (_objects(side, [0]) and not self._identity.unknown(side[0]) for side in (self._old, self._new))
        return not all(known)

    def _same(self, places: range) -> int:
        """How many in a row are the same."""
        for count, place in enumerate(places):
            if not equality.same(self._old[place], self._new[place]):
                return count
        return len(places)

    def _take(self, found: Pairs) -> Pairs:
        if not found:
            return found
        olds, news = {old for old, _ in found}, {new for _, new in found}
        self.old_left = [place for place in self.old_left if place not in olds]
        self.new_left = [place for place in self.new_left if place not in news]
        return found


def _common(old: Any, new: Any) -> int:
    """How many fields two objects have in common."""
    if type(old) is not dict or type(new) is not dict:
        return 0
    return sum(key in new and equality.same(value, new[key]) for key, value in old.items())


def _objects(side: Sequence[Any], left: list[int]) -> list[int]:
    return [place for place in left if type(side[place]) in (dict, list)]


def _moved(pairs: Pairs) -> bool:
    places = [new for _, new in sorted(pairs)]
    return any(later < earlier for earlier, later in itertools.pairwise(places))
