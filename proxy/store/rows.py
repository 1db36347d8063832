"""Rows that the store keeps, and what an operation does with them, which is the same in SQLite and in Redis."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

from proxy.model import Seen
from proxy.store.protocol import Account, Usage

Row = TypeVar("Row", bound=NamedTuple)
Kind = type[NamedTuple]
Pair = tuple[str, str]  # account and period
Key = tuple[Any, ...]


class ReservationsRow(NamedTuple):
    """Reservations of a query key by id, in JSON, of which one may be open. Until then nothing is to be done."""

    scope: str
    key: str
    until: float
    text: str


class PartRow(NamedTuple):
    """Part, by its uid, as an lz4 block; or result without its parts, by = and its key, in MessagePack."""

    scope: str
    name: str
    fetched: float
    id: str | None
    features: int
    body: bytes


class Value(NamedTuple):
    key: str
    text: str
    since: float
    until: float


# Tables, how many of their columns, the fields of a row, name a row, and its time.
TABLES: dict[Kind, tuple[str, int, str]] = {
    Usage: ("usage", 2, ""),
    ReservationsRow: ("reservation", 2, "until"),
    PartRow: ("part", 2, "fetched"),
    Value: ("value", 1, "until"),
    Seen: ("seen", 7, ""),
}


class Rows(Protocol):
    """Rows by kind and key, within a transaction. `now` is `ahead` of this process's clock. `epoch`: how often data
    were lost.

    `all` returns the rows whose keys begin so, `timed` the keys of those whose time is between two, so many at most,
    `uids` those of the parts with an id. `added` to usage, at the end of the transaction, are parts that are used,
    uncertain and reserved, and how many may be counted before, at most."""

    now: float
    ahead: float
    epoch: int
    added: dict[Pair, list[Any]]

    def get(self, kind: type[Row], *key: Any) -> Row | None: ...
    def all(self, kind: type[Row], *prefix: Any) -> list[Row]: ...
    def timed(self, kind: Kind, first: float, last: float, most: int = -1) -> list[Key]: ...
    def uids(self, scope: str, id: str) -> list[str]: ...
    def put(self, row: NamedTuple) -> None: ...
    def drop(self, kind: Kind, *key: Any) -> None: ...

    def text(self, key: str, *, ended: bool = False) -> str | None:
        """Return a value; with `ended` also one that has ended but is still stored. One that begins later was written
        before the clock was set back."""
        value = self.get(Value, key)
        return value.text if value and (ended or value.since <= self.now < value.until) else None

    def put_value(self, key: str, text: str, seconds: float) -> None:
        self.put(Value(key, text, self.now, self.now + seconds))

    def usage(self, pair: Pair) -> Usage:
        row, added = self.get(Usage, *pair) or Usage(*pair), self.added.get(pair, (0, 0, 0))
        return Usage(*pair, row.used + added[0], row.uncertain + added[1], row.reserved + added[2])

    def add(self, accounts: Iterable[Pair | Account], used: int, uncertain: int, reserved: int) -> None:
        """Add to usage. With an Account nothing is written if others have added so much meanwhile that its limit is
        exceeded."""
        for account in accounts:
            added = self.added.setdefault(account[:2], [0, 0, 0, math.inf])
            added[0] += used
            added[1] += uncertain
            added[2] += reserved
            if (limit := account[2:3]) and limit[0] is not None:
                added[3] = min(added[3], limit[0] - sum(added[:3]))
