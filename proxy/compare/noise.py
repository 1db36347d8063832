"""How far a share is to be trusted, and how much of a difference is the old side's own unrest.

The old side costs nothing, so a sample of calls is asked of it twice. A path at which it disagrees with itself is noise
to that degree, and differences there count only where they are certainly more frequent.
"""

import math

from proxy.compare.result import Interval

Z = 1.959963984540054  # 95 %, both sides
_IDS = 1 << 64


def wilson(hits: int, of: int) -> Interval:
    """95 % of the share that `hits` of `of` is an estimate of (Wilson 1927). Nothing is known of none."""
    if of == 0:
        return Interval(0.0, 1.0)
    share, spread = hits / of, Z * Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if hits == of else min(1.0, middle + half))


def exceeds(calls: int, of: int, wavers: int, twice: int, least: int) -> bool:
    """Whether `calls` of `of` that differ at a path are more than its noise: `wavers` of `twice` that disagreed.

    Where fewer than `least` were asked twice, or none disagreed, there is no noise to speak of.
    """
    if wavers == 0 or twice < least:
        return True
    return wilson(calls, of).low > wilson(wavers, twice).high


def sampled(call_id: str, share: float) -> bool:
    """Whether a call is of the sample that is asked twice: the same calls in every run, whatever they answer."""
    return int(call_id, 16) < share * _IDS
