"""Rows that the store keeps, and a transaction over them, which is the same in SQLite and in Redis."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import msgspec

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


class ResultRow(NamedTuple):
    scope: str
    key: str
    fetched: float
    text: bytes  # a Result without parts, in MessagePack


class PartRow(NamedTuple):
    scope: str
    uid: str
    fetched: float
    id: str | None
    features: int
    body: bytes  # an lz4 block


class Value(NamedTuple):
    key: str
    text: str
    since: float
    until: float


# Tables, how many of their columns, the fields of a row, name a row, and its time.
TABLES: dict[Kind, tuple[str, int, str]] = {
    Usage: ("usage", 2, ""),
    ReservationsRow: ("reservation", 2, "until"),
    ResultRow: ("result", 2, "fetched"),
    PartRow: ("part", 2, "fetched"),
    Value: ("value", 1, "until"),
    Seen: ("seen", 7, "last"),
}
FETCHED = (ResultRow, PartRow)


def json_text(values: Any) -> str:
    return msgspec.json.encode(values).decode()


class Transaction:
    """Rows by kind and key as they are read and `changed`: None is a row that is not there. Usage is `added` to. `now`
    is `ahead` of this process's clock. `epoch`: how often data were lost.

    `read` returns the fields of the row with a key; of all whose keys begin so, if it is a part of one; with two times
    and a number, of so many at most between the times, or their keys only; with `is_id`, of the part with that id."""

    def __init__(self, read: Callable[..., Any], now: float, ahead: float = 0.0, epoch: int = 0) -> None:
        self._read, self.now, self.ahead, self.epoch = read, now, ahead, epoch
        self._rows: dict[Kind, dict[Key, Any]] = defaultdict(dict)
        self.changed: dict[Kind, dict[Key, Any]] = defaultdict(dict)
        self.added: dict[Pair, tuple[int, int, int]] = {}
        self.additions: list[tuple[Pair | Account, int, int, int]] = []  # one by one

    def get(self, kind: type[Row], *key: Any) -> Row | None:
        rows = self._rows[kind]
        if key not in rows:
            values = self._read(kind, key)
            rows[key] = values and kind._make(values)
        row: Row | None = rows[key]
        return row

    def all(self, kind: type[Row], *prefix: Any) -> list[Row]:
        """Return the rows whose keys begin so."""
        found = {row[: TABLES[kind][1]]: row for row in map(kind._make, self._read(kind, prefix))}
        changed = {key: row for key, row in self.changed[kind].items() if key[: len(prefix)] == prefix}
        return [row for row in (found | changed).values() if row is not None]

    def timed(self, kind: Kind, first: float, last: float, most: int = -1) -> list[Key]:
        """Return the keys of stored rows whose time is between two, about so many at most."""
        found, length = self._read(kind, (), (first, last, most)), TABLES[kind][1]
        keys = [row[:length] for row in found]
        if found and len(found[0]) > length:
            self._rows[kind].update(zip(keys, map(kind._make, found), strict=True))
        return keys

    def part(self, scope: str, name: str) -> PartRow | None:
        """Return the stored part with a uid or id."""
        if (part := self.get(PartRow, scope, name)) is not None:
            return part
        values = self._read(PartRow, (scope, name), is_id=True)
        return values and PartRow._make(values)

    def put(self, row: NamedTuple) -> None:
        kind = type(row)
        key = row[: TABLES[kind][1]]
        self._rows[kind][key] = self.changed[kind][key] = row

    def drop(self, kind: Kind, *key: Any) -> None:
        self._rows[kind][key] = self.changed[kind][key] = None

    def usage(self, pair: Pair) -> Usage:
        row, added = self.get(Usage, *pair) or Usage(*pair), self.added.get(pair, (0, 0, 0))
        return Usage(*pair, row.used + added[0], row.uncertain + added[1], row.reserved + added[2])

    def add(self, accounts: Iterable[Pair | Account], used: int, uncertain: int, reserved: int) -> None:
        """Add to usage. With an Account nothing is written if others have added so much meanwhile that its limit is
        exceeded."""
        for account in accounts:
            self.additions.append((account, used, uncertain, reserved))
            old = self.added.get(pair := account[:2], (0, 0, 0))
            self.added[pair] = old[0] + used, old[1] + uncertain, old[2] + reserved

    def text(self, key: str, *, ended: bool = False) -> str | None:
        """Return a value; with `ended` also one that has ended but is still stored. One that begins later was written
        before the clock was set back."""
        value = self.get(Value, key)
        return value.text if value and (ended or value.since <= self.now < value.until) else None

    def put_value(self, key: str, text: str, seconds: float) -> None:
        self.put(Value(key, text, self.now, self.now + seconds))
