"""Work in slices, so that a long list keeps nobody waiting: a generator yields where others may run, and returns its
result. Who drives it decides who runs in between.
"""

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import TypeVar

SIZE = 1_000  # items that are looked at one by one in a slice; about a millisecond

T = TypeVar("T")
Slices = Generator[None, None, T]


def sliced(items: Iterable[T]) -> Iterator[list[T]]:
    """The items, so many at a time."""
    left = iter(items)
    while some := list(islice(left, SIZE)):
        yield some


def finished(work: Slices[T]) -> T:
    """The result of work that is done at once."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
