"""Rows that the store keeps, and a transaction over them: what SQLite and Redis have in common."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from proxy.model import Seen
from proxy.store.protocol import Account, Usage

Row = TypeVar("Row", bound=NamedTuple)
Kind = type[NamedTuple]
Pair = tuple[str, str]  # account and period
Key = tuple[Any, ...]


class Reservation(NamedTuple):
    """Parts that are reserved in accounts and periods, for the list of a query from its element `start` on.

    Expired, they are uncertain usage; taken, others have reserved the query key since. Done, it is known for a while,
    so that it may be sent again. `until` is its deadline while it is open, and later until when it is kept."""

    id: str
    worker: str
    accounts: tuple[Pair, ...]
    parts: int
    start: int
    until: float
    state: Literal["open", "expired", "taken", "done"] = "open"


class ReservationsRow(NamedTuple):
    """Reservations of a query key, in JSON, of which one may be open. Until then nothing is to be done with them."""

    scope: str
    key: str
    until: float
    text: str


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
    key: str
    text: str
    since: float
    until: float


# Tables, and how many of their columns, the fields of a row, name a row.
TABLES: dict[Kind, tuple[str, int]] = {
    Usage: ("usage", 2),
    ReservationsRow: ("reservation", 2),
    ResultRow: ("result", 2),
    PartRow: ("part", 2),
    Value: ("value", 1),
    Seen: ("seen", 7),
}
FETCHED = (ResultRow, PartRow)


def json_text(values: Iterable[Any]) -> str:
    return msgspec.json.encode(values).decode()


class Transaction(ABC):
    """Rows by kind and key as they are read and `changed`: None is a row that is not there. `now` is `ahead` of this
    process's clock. `epoch`: how often data were lost."""

    now = ahead = 0.0
    epoch = 0

    def __init__(self) -> None:
        self._rows: dict[Kind, dict[Key, Any]] = defaultdict(dict)
        self.changed: dict[Kind, dict[Key, Any]] = defaultdict(dict)

    @abstractmethod
    def read(self, kind: type[Row], key: Key) -> Row | None:
        """Read a stored row."""

    @abstractmethod
    def all(self, kind: type[Row]) -> Iterable[Row]:
        """Return the stored rows of a kind."""

    @abstractmethod
    def ended(self, kind: type[Row], until: float, most: int) -> Iterable[Row]:
        """Return stored rows whose `until` is no later, so many at most."""

    @abstractmethod
    def fetched(self, first: float, last: float, most: int = -1) -> list[tuple[Kind, Key]]:
        """Return the stored results and parts that were fetched between two times, about so many at most."""

    @abstractmethod
    def part(self, scope: str, name: str) -> PartRow | None:
        """Return the stored part with a uid or id."""

    def get(self, kind: type[Row], *key: Any) -> Row | None:
        rows = self._rows[kind]
        if key not in rows:
            rows[key] = self.read(kind, key)
        row: Row | None = rows[key]
        return row

    def put(self, row: NamedTuple) -> None:
        kind = type(row)
        key = row[: TABLES[kind][1]]
        self._rows[kind][key] = self.changed[kind][key] = row

    def drop(self, kind: Kind, *key: Any) -> None:
        self._rows[kind][key] = self.changed[kind][key] = None

    def usage(self, pair: Pair) -> Usage:
        return self.get(Usage, *pair) or Usage(*pair)

    def add(self, pair: Pair | Account, used: int, uncertain: int, reserved: int) -> None:
        """Add to usage. With an account nothing is written if others have added so much meanwhile that its limit is
        exceeded."""
        pair = pair[:2]
        old = self.usage(pair)
        self.put(
            Usage(*pair, max(0, old.used + used), max(0, old.uncertain + uncertain), max(0, old.reserved + reserved))
        )

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
