"""Long computations as generators that yield after each slice, so that the event loop can run other tasks between.

The result is the generator's return value.
"""

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import TypeVar

SIZE = 1_000  # items of a slice; about a millisecond of work
SLICE_BYTES = 500_000  # of JSON that a slice decodes or translates; some milliseconds of work

T = TypeVar("T")
Slices = Generator[None, None, T]


def sliced(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the items in lists of SIZE."""
    left = iter(items)
    while some := list(islice(left, SIZE)):
        yield some


def run_to_end(work: Slices[T]) -> T:
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
