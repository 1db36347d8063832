"""Long computations as generators, which return the result, and yield between slices for other tasks to run."""

from collections.abc import Generator
from typing import TypeVar

SLICE_BYTES = 500_000  # of JSON that a slice decodes or translates; some milliseconds of work

T = TypeVar("T")
Slices = Generator[None, None, T]


def run_to_end(work: Slices[T]) -> T:
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
