"""An index of the words in names, by the number of what is called so. Built once; a search reads the index alone."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain, pairwise

from proxy.kit import slices
from proxy.kit.slices import Slices
from proxy.planning import wildcards

WORD = re.compile(r"\w+")
LAST = "\U0010ffff"  # sorts behind every letter


class Words:
    """Which names have a word. What is numbered can have several names, in lower case."""

    def __init__(self, names: list[tuple[str, ...]]) -> None:
        self._every = frozenset(range(len(names)))
        self._words: dict[str, list[int]] = defaultdict(list)
        self._names: dict[str, list[int]] = defaultdict(list)
        for number, own in enumerate(names):
            for name in own:
                self._names[name].append(number)
            for word in set(chain.from_iterable(map(WORD.findall, own))):
                self._words[word].append(number)
        self._sorted = sorted(self._words)

    def beginning(self, text: str) -> Slices[frozenset[int]]:
        """The numbers of all that have, for each word of a text, a word that begins with it."""
        found = self._every
        for start in _longest(WORD.findall(text)):
            first, last = bisect_left(self._sorted, start), bisect_left(self._sorted, start + LAST)
            found &= frozenset(chain.from_iterable(map(self._words.__getitem__, self._sorted[first:last])))
            yield
            if not found:
                break
        return found

    def like(self, pattern: str) -> Slices[frozenset[int]]:
        """The numbers of all that have a name, or a word in it, that is wholly what a pattern says."""
        matches, found = wildcards.matcher(pattern), set[int]()
        for holders in (self._names, self._words):
            for some in slices.sliced(holders):
                found.update(chain.from_iterable(map(holders.__getitem__, filter(matches, some))))
                yield
        return frozenset(found)


def _longest(words: Iterable[str]) -> list[str]:
    """Those that are no beginning of another: what has the other has them, too."""
    ordered = sorted(set(words))
    return [word for word, after in pairwise([*ordered, ""]) if not after.startswith(word)]
