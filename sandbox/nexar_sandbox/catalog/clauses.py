"""Pieces of SQL with their parameters. Whatever a user writes is a parameter."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

# Of parts `p`: hits that nothing else distinguishes are in this order.
BEST = "p.offers DESC, p.id"


class Clause(NamedTuple):
    """A condition, or terms of an order."""

    sql: str
    parameters: tuple[str | int, ...] = ()


def among(column: str, values: Iterable[str | int]) -> Clause:
    """The condition that a column has one of some values."""
    return Clause(f"{column} IN (SELECT value FROM json_each(?))", (msgspec.json.encode(list(values)).decode(),))  # noqa: S608
