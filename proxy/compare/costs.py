"""What a month of the source's calls will cost in parts, from what its compared calls have cost. Pure."""

import math
from collections.abc import Iterable, Mapping

import msgspec

from proxy.compare.counting import RowCount

MONTH = 30 * 86_400.0

Place = tuple[str, str]  # client and endpoint


class Asked(msgspec.Struct, frozen=True):
    """What the source holds of a client at an endpoint: `calls` that differ from each other, and `times` in all."""

    calls: int
    times: int


def a_month(rows: Iterable[RowCount], asked: Mapping[Place, Asked] | None, seconds: float | None) -> int | None:
    """Parts in 30 days, each call as dear as when it was compared, however often it is repeated.

    `asked` is the whole source where it is known, else the rows are all there is; `seconds` is the time over which it
    was asked. None where that is unknown, or where no call of an endpoint has a price.
    """
    counted = list(rows)
    if not seconds or seconds < 0:
        return None
    prices = {(row.client, row.endpoint): row for row in counted}
    times = {at: found.times for at, found in asked.items()} if asked else {at: row.asked for at, row in prices.items()}
    parts = [_parts(prices.get(at), at[1], counted, number) for at, number in times.items() if number]
    known = [each for each in parts if each is not None]
    if len(known) < len(parts) or not parts:
        return None
    return math.ceil(sum(known) * MONTH / seconds)


def _parts(row: RowCount | None, endpoint: str, rows: list[RowCount], times: int) -> float | None:
    """Of so many requests; of a client of which no price is known, as of the others at the endpoint."""
    like = [row] if row and row.priced else [each for each in rows if each.endpoint == endpoint and each.priced]
    priced = sum(each.priced for each in like)
    return times * sum(each.paid for each in like) / priced if priced else None
