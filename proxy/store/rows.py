"""Rows that the store keeps, and a transaction over them: what SQLite and Redis have in common."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from proxy.store.protocol import Account, Seen, Usage

Row = TypeVar("Row", bound=NamedTuple)
Kind = type[NamedTuple]
Key = tuple[Any, ...]
Pair = tuple[str, str]  # account and period


class Reservation(NamedTuple):
    """Reservation that is open `until` its deadline, or expired and counted as uncertain usage, or done; then its row
    stays until later. `accounts` in JSON, with their periods."""

    id: str
    worker: str
    accounts: str
    parts: int
    until: float
    state: Literal["open", "expired", "done"] = "open"


class ResultRow(NamedTuple):
    scope: str
    key: str
    fetched: float
    asked: int
    hits: int
    items: str
    details: bytes | None


class PartRow(NamedTuple):
    scope: str
    uid: str
    fetched: float
    id: str | None
    features: int
    body: bytes


class Value(NamedTuple):
    """Small value: of a caller, or `part SCOPE ID` → the part's uid, or `busy SCOPE KEY` → the reservation that took
    the query key last: it is busy while that is open."""

    key: str
    value: str
    since: float
    until: float


# Tables, and how many of their columns, the fields of a row, are the key.
TABLES: dict[Kind, tuple[str, int]] = {
    Usage: ("usage", 2),
    Reservation: ("reservation", 1),
    ResultRow: ("result", 2),
    PartRow: ("part", 2),
    Value: ("value", 1),
    Seen: ("seen", 7),
}


def busy(scope: str, key: str) -> str:
    return f"busy {scope} {key}"


def json_text(values: Iterable[Any]) -> str:
    return msgspec.json.encode(list(values)).decode()


class Transaction(ABC):
    """Rows by kind and key, as they were read and are changed; what is changed is written at the end.

    `now` is known after the first `read`; it is `ahead` of this process's clock. `epoch`: how often data were lost.
    """

    def __init__(self, now: float, epoch: int) -> None:
        self.now, self.ahead, self.epoch = now, 0.0, epoch
        self._rows: dict[tuple[Kind, Key], Any] = {}
        self._changed: set[tuple[Kind, Key]] = set()
        self._additions: dict[Pair, list[int]] = {}  # to used, uncertain and reserved parts
        self._limits: dict[Pair, int] = {}

    @abstractmethod
    async def read(self, *wanted: tuple[Kind, Iterable[Key]]) -> None:
        """Read rows by their keys, for `get`."""

    @abstractmethod
    async def all(self, kind: type[Row], first: str | None = None) -> list[Row]:
        """Return all rows of a kind that are stored, or those whose key begins with this value."""

    @abstractmethod
    async def drop_old(self, oldest: float, latest: float) -> int:
        """Drop results and parts that were fetched before or after these times, and values that ended before; return
        how many parts."""

    def get(self, kind: type[Row], *key: Any) -> Row | None:
        row: Row | None = self._rows.get((kind, key))
        return row

    def put(self, row: NamedTuple) -> None:
        name = type(row), row[: TABLES[type(row)][1]]
        self._rows[name] = row
        self._changed.add(name)

    def drop(self, kind: Kind, *key: Any) -> None:
        self._rows[kind, key] = None
        self._changed.add((kind, key))

    def add(self, pair: Pair, used: int = 0, uncertain: int = 0, reserved: int = 0) -> None:
        added = self._additions.setdefault(pair, [0, 0, 0])
        added[0] += used
        added[1] += uncertain
        added[2] += reserved

    def reserve(self, account: Account, parts: int) -> None:
        """Add to reserved parts. Where others have reserved meanwhile so that the limit is exceeded, nothing is
        written."""
        self.add(account[:2], reserved=parts)
        if parts and account.limit is not None:
            self._limits[account[:2]] = account.limit

    def usage(self, pair: Pair) -> Usage:
        """Return usage with what is added to it."""
        stored = self.get(Usage, *pair) or Usage(*pair, 0, 0, 0)
        return Usage(*pair, *map(operator.add, stored[2:], self._additions.get(pair, (0, 0, 0))))

    def text(self, key: str) -> str | None:
        """Return a value, also one that has ended but is still stored."""
        value = self.get(Value, key)
        return value.value if value else None

    def put_value(self, key: str, value: str, seconds: float) -> None:
        self.put(Value(key, value, self.now, self.now + seconds))
