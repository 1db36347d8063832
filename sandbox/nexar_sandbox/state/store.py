"""State store: mappings of frozen values by kind, in memory and written through to the state file if there is one.

A component gets its rows at the start and uses them as a dict. Assigning a key writes it; changing a value in place
does not.
"""

from collections.abc import Iterator, MutableMapping, ValuesView
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.state import file

T = TypeVar("T")


class StateStore:
    """The state of one sandbox; without a path in memory only. Raises as `StateFile` does."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._file = None if path is None else file.StateFile(path)

    @property
    def is_new(self) -> bool:
        """True if the store is empty, so that initial values have to be added."""
        return self._file is None or self._file.is_new

    @property
    def is_persistent(self) -> bool:
        return self._file is not None

    def rows(self, kind: str, of: type[T]) -> MutableMapping[str, T]:
        """Return the rows of a kind by key, oldest first. Raises ValueError for an unreadable row."""
        if self._file is None:
            return {}
        return PersistentRows(
            self._file, kind, {key: self._read(kind, key, value, of) for key, value in self._file.rows(kind)}
        )

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext() if self._file is None else self._file.transaction()

    def complete_creation(self) -> None:
        if self._file is not None:
            self._file.complete_creation()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self, kind: str, key: str, value: bytes, of: type[T]) -> T:
        try:
            return msgspec.json.decode(value, type=of)
        except msgspec.DecodeError as error:
            raise ValueError(f"{self._path}: {kind} {key} cannot be read: {error}") from None


class PersistentRows(MutableMapping[str, T]):
    """Rows that are written to the file before memory, so that both agree after a failure."""

    def __init__(self, into: file.StateFile, kind: str, values: dict[str, T]) -> None:
        self._file, self._kind, self._values = into, kind, values

    def __getitem__(self, key: str) -> T:
        return self._values[key]

    def __setitem__(self, key: str, value: T) -> None:
        # Sorted, so that equal sets are equal bytes.
        self._file.put(self._kind, key, msgspec.json.encode(value, order="sorted"))
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self._values:
            raise KeyError(key)
        self._file.remove(self._kind, key)
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def values(self) -> ValuesView[T]:
        return self._values.values()


class ExpiringRow(msgspec.Struct, Generic[T], frozen=True):
    """A value that expires at `until`, in seconds since 1970."""

    value: T
    until: float


class ExpiringRows(Generic[T]):
    """Rows that expire `lifetime` seconds after insertion; at most `most` of them, the oldest are dropped first."""

    def __init__(
        self, rows: MutableMapping[str, ExpiringRow[T]], clock: clocks.Clock, lifetime: float, most: int = 10_000
    ) -> None:
        self._rows, self._clock, self._lifetime, self._most = rows, clock, lifetime, most
        self._drop_old()

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def get(self, key: str) -> T | None:
        row = self._rows.get(key)
        return None if row is None or row.until <= self._clock.now() else row.value

    def put(self, key: str, value: T) -> None:
        """Insert or replace a value; replacing keeps its expiry."""
        existing = self._rows.get(key)
        self._rows[key] = ExpiringRow(value, existing.until if existing else self._clock.now() + self._lifetime)
        self._drop_old()

    def drop(self, key: str) -> None:
        self._rows.pop(key, None)

    def items(self) -> Iterator[tuple[str, T]]:
        """Unexpired rows, oldest first; rows may be dropped while iterating."""
        now = self._clock.now()
        yield from [(key, row.value) for key, row in self._rows.items() if row.until > now]

    def _drop_old(self) -> None:
        now = self._clock.now()
        # Rows are in the order of insertion and live equally long: the first one expires first.
        while self._rows and (len(self._rows) > self._most or next(iter(self._rows.values())).until <= now):
            del self._rows[next(iter(self._rows))]
