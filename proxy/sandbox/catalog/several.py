"""Texts that hold several values, such as "I2C, SPI", counted for each of them, as filters take each of them.

Used by the store only, on what counts.py has counted whole.
"""

from collections import Counter
from dataclasses import replace

from proxy.sandbox.catalog import records


def each(found: records.SpecCounts) -> records.SpecCounts:
    """The same with a bucket for each value; most frequent first, as far as nothing came apart in the order it had."""
    counted: Counter[tuple[str, float | None]] = Counter()
    for shown, number, count in found.buckets:
        values = [shown] if number is not None else dict.fromkeys(map(str.strip, shown.split(",")))
        counted.update(dict.fromkeys(((value, number) for value in values), count))
    return replace(found, buckets=tuple((*value, count) for value, count in counted.most_common()))
