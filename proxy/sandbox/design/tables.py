"""The records of one kind: found by id or by any other field, replaced whole.

Used by the design services. Not for several threads.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Generic, TypeVar

from proxy.sandbox.design import records

R = TypeVar("R", bound=records.Record)


class Table(Generic[R]):
    """Records by their `key` field, in the order in which they came. `rows` None: a new one, in memory."""

    def __init__(self, kind: type[R], rows: MutableMapping[str, R] | None = None, key: str = "id") -> None:
        self.kind, self.key = kind, key
        self._rows: MutableMapping[str, R] = {} if rows is None else rows

    def on(self, rows: MutableMapping[str, R]) -> "Table[R]":
        """One like this of other rows."""
        return Table(self.kind, rows, self.key)

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: str) -> R | None:
        """The record with this key, or None."""
        return self._rows.get(key)

    def put(self, row: R) -> R:
        """Add the record, or replace the one with its key."""
        self._rows[str(getattr(row, self.key))] = row
        return row

    def remove(self, key: str) -> bool:
        """Whether there was one."""
        return self._rows.pop(key, None) is not None

    def where(self, field: str, values: Sequence[str]) -> list[list[R]]:
        """For each value the records that have it in this field; where the field is a list, among others."""
        found: dict[str, list[R]] = {value: [] for value in values}
        for row in self._rows.values():
            held = getattr(row, field)
            for value in held if isinstance(held, tuple) else (held,):
                if value in found:
                    found[value].append(row)
        return [found[value] for value in values]
