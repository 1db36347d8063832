"""Rows that the store keeps, and a transaction over them: what SQLite and Redis have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import msgspec

from proxy.model import Seen
from proxy.store.protocol import Usage

Row = TypeVar("Row", bound=NamedTuple)
Kind = type[NamedTuple]
Pair = tuple[str, str]  # account and period
Key = tuple[Any, ...]


class Reservation(NamedTuple):
    """Parts that are reserved in accounts and periods (in JSON); expired, they are uncertain usage. A reservation that
    was finished is gone, and the value `done ID` says so. They are for the list of a query from its element `start` on;
    `before` is the reservation that took the query key before, and expired."""

    id: str
    worker: str
    accounts: str
    parts: int
    deadline: float
    is_expired: bool = False
    start: int = 0
    before: str = ""


class ResultRow(NamedTuple):
    scope: str
    key: str
    fetched: float
    asked: int
    hits: int
    items: str  # in JSON
    details: bytes | None


class PartRow(NamedTuple):
    scope: str
    uid: str
    fetched: float
    id: str | None
    features: int
    body: bytes


class Value(NamedTuple):
    """Small value: of a caller, or `done ID` → the `before` of a reservation that brought nothing of a whole list, or
    `busy SCOPE KEY` → the reservation that took the query key last: it is busy while that is open."""

    key: str
    text: str
    since: float
    until: float


# Tables, and how many of their columns, the fields of a row, name a row.
TABLES: dict[Kind, tuple[str, int]] = {
    Usage: ("usage", 2),
    Reservation: ("reservation", 1),
    ResultRow: ("result", 2),
    PartRow: ("part", 2),
    Value: ("value", 1),
    Seen: ("seen", 7),
}


def json_text(values: Iterable[Any]) -> str:
    return msgspec.json.encode(list(values)).decode()


class Transaction(ABC):
    """Rows by kind and key, as they were `read` and as they are `changed`: None is a row that is not there. `now` is
    `ahead` of this process's clock. `epoch`: how often data were lost."""

    now = ahead = 0.0
    epoch = 0

    def __init__(self) -> None:
        self.read: dict[Kind, dict[Key, Any]] = {kind: {} for kind in TABLES}
        self.changed: dict[Kind, dict[Key, Any]] = {kind: {} for kind in TABLES}

    @abstractmethod
    def load(self, kind: Kind, keys: Iterable[Key]) -> None:
        """Read rows together that `get` will be asked for."""

    @abstractmethod
    def stored(self, kind: type[Row]) -> Iterable[Row]:
        """Return all rows of a kind but for what is changed."""

    def all(self, kind: type[Row]) -> list[Row]:
        found = {row[: TABLES[kind][1]]: row for row in self.stored(kind)} | self.changed[kind]
        return [row for row in found.values() if row is not None]

    def get(self, kind: type[Row], *key: Any) -> Row | None:
        rows = self.changed[kind]
        if key not in rows:
            rows = self.read[kind]
            if key not in rows:
                self.load(kind, (key,))
        row: Row | None = rows.get(key)
        return row

    def put(self, row: NamedTuple) -> None:
        kind = type(row)
        self.changed[kind][row[: TABLES[kind][1]]] = row

    def drop(self, kind: Kind, *key: Any) -> None:
        self.changed[kind][key] = None

    @abstractmethod
    def part(self, scope: str, name: str) -> PartRow | None:
        """Return the stored part with a uid or id."""

    @abstractmethod
    def add(self, pair: Pair, used: int, uncertain: int, reserved: int, limit: int | None = None) -> None:
        """Add to usage; with a limit nothing is written if others have added so much meanwhile that it is exceeded."""

    @abstractmethod
    def drop_fetched(self, oldest: float, latest: float, scopes: str = "") -> int:
        """Drop results and parts that were fetched before or after these times, in scopes that begin so; return how
        many parts."""

    @abstractmethod
    def count_parts(self, scopes: str) -> int:
        """Return how many parts are stored in scopes that begin so."""

    @abstractmethod
    def drop_ended(self, first_day: str) -> None:
        """Drop values that have ended, and usage of days before the first one."""

    def text(self, key: str) -> str | None:
        """Return a value, also one that has ended but is still stored."""
        value = self.get(Value, key)
        return value.text if value else None

    def valid_text(self, key: str) -> str | None:
        """Return a value that has not ended. One that begins later was written before the clock was set back."""
        value = self.get(Value, key)
        return value.text if value and value.since <= self.now < value.until else None

    def put_value(self, key: str, text: str, seconds: float) -> None:
        self.put(Value(key, text, self.now, self.now + seconds))
