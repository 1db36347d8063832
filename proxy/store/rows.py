"""Rows that the store keeps, and what an operation does with them, which is the same in SQLite and in Redis."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

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


@dataclass(kw_only=True)
class Rows(ABC):
    """Rows within one transaction, as SQLite or Redis has them, and as they will be.

    `now` is `ahead` of this process's clock. `epoch`: how often data were lost. At the end of the transaction `writes`
    are put, or deleted where they are None, and rows `added` to usage, if it had no more parts than `most` says."""

    now: float
    ahead: float = 0.0
    epoch: int = 0
    writes: dict[tuple[Kind, Key], Any] = field(default_factory=dict)
    added: dict[Pair, list[Any]] = field(default_factory=dict)
    most: dict[Pair, int] = field(default_factory=dict)

    @abstractmethod
    def find(self, kind: type[Row], key: Key) -> Iterator[Row]:
        """Return the rows whose keys begin so, as they were before the transaction."""

    @abstractmethod
    def timed(self, kind: Kind, first: float, last: float, most: int = -1) -> list[Key]:
        """Return the keys of the rows whose time was between two before the transaction, so many at most."""

    @abstractmethod
    def uids(self, scope: str, id: str) -> list[str]:
        """Return the uids of the parts that had an id before the transaction."""

    def get(self, kind: type[Row], *key: Any) -> Row | None:
        if (kind, key) in self.writes:
            row: Row | None = self.writes[kind, key]
            return row
        return next(self.find(kind, key), None)

    def all(self, kind: type[Row], *prefix: Any) -> list[Row]:
        """Return the rows whose keys begin so."""
        found: dict[Key, Any] = {row[: TABLES[kind][1]]: row for row in self.find(kind, prefix)}
        found |= {key: row for (of, key), row in self.writes.items() if of is kind and key[: len(prefix)] == prefix}
        return [row for row in found.values() if row is not None]

    def put(self, row: NamedTuple) -> None:
        self.writes[type(row), row[: TABLES[type(row)][1]]] = row

    def drop(self, kind: Kind, *key: Any) -> None:
        self.writes[kind, key] = None

    def text(self, key: str, *, ended: bool = False) -> str | None:
        """Return a value; with `ended` also one that has ended but is still stored. One that begins later was written
        before the clock was set back."""
        value = self.get(Value, key)
        return value.text if value and (ended or value.since <= self.now < value.until) else None

    def put_value(self, key: str, text: str, seconds: float) -> None:
        self.put(Value(key, text, self.now, self.now + seconds))

    def usage(self, pair: Pair) -> Usage:
        row = self.get(Usage, *pair) or Usage(*pair)
        if added := self.added.get(pair):
            row = Usage(*pair, row.used + added[2], row.uncertain + added[3], row.reserved + added[4])
        return row

    def add(self, accounts: Iterable[Pair | Account], used: int, uncertain: int, reserved: int) -> None:
        """Add to usage. With an Account nothing is written if others have added so much meanwhile that its limit is
        exceeded."""
        for account in accounts:
            pair = account[:2]
            added = self.added.setdefault(pair, [*pair, 0, 0, 0])
            added[2] += used
            added[3] += uncertain
            added[4] += reserved
            if isinstance(account, Account) and account.limit is not None:
                most = account.limit - sum(added[2:])
                self.most[pair] = min(most, self.most.get(pair, most))
