"""Tables of the design services: records found by id or by any other field, replaced as a whole. Not thread-safe.

There is one for each record class that has a table; it is found by that class.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

from nexar_sandbox import state
from nexar_sandbox.design import records


class Table:
    """Records by their key, in insertion order."""

    def __init__(self, kind: records.RecordKind, rows: MutableMapping[str, records.Record]) -> None:
        self.kind = kind
        self._rows = rows

    def __iter__(self) -> Iterator[records.Record]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: str) -> records.Record | None:
        return self._rows.get(key)

    def find(self, key: str, noun: str) -> records.Record:
        """Return the record with this key. Raises LookupError; `noun` is the kind of record in its message."""
        row = self.get(key)
        if row is None:
            raise LookupError(f"there is no {noun} {key}")
        return row

    def put(self, row: records.Record) -> records.Record:
        self._rows[str(getattr(row, self.kind.key))] = row
        return row

    def remove(self, key: str, noun: str) -> records.Record:
        removed = self.find(key, noun)
        del self._rows[key]
        return removed

    def where(self, field: str, values: Sequence[str]) -> list[list[records.Record]]:
        """For each value, the records that have it in this field, or contain it if the field is a list."""
        matches: dict[str, list[records.Record]] = {value: [] for value in values}
        # One pass for all values.
        for row in self._rows.values():
            field_value = getattr(row, field)
            for value in field_value if isinstance(field_value, tuple) else (field_value,):
                if value in matches:
                    matches[value].append(row)
        return [matches[value] for value in values]


class DesignTables:
    """All tables, in memory unless there is a state store. Only the services change them."""

    def __init__(self, state_store: state.StateStore | None = None) -> None:
        rows = (state_store or state.StateStore()).rows
        self._tables = {
            kind.record: Table(kind, rows(f"design_{kind.table}", kind.record))
            for kind in dict.fromkeys(records.KINDS.values())
            if kind.table
        }

    # Any: the record classes are made at run time.
    def __getitem__(self, record: Any) -> Table:
        return self._tables[record]

    def of_service(self, service: str) -> dict[str, Table]:
        return {table.kind.table: table for table in self._tables.values() if table.kind.service == service}

    def put(self, row: records.Record) -> records.Record:
        return self[type(row)].put(row)

    def copy_into(self, other: "DesignTables") -> None:
        for table in self._tables.values():
            for row in table:
                other.put(row)
