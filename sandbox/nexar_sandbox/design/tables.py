"""Tables of the design services: records found by id or by any other field, replaced as a whole. Not thread-safe."""

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Generic, TypeVar

from nexar_sandbox.design import records
from nexar_sandbox.state import store as state

R = TypeVar("R", bound=records.Record)


class Table(Generic[R]):
    """Records by their `key` field, in insertion order. `rows` None: an empty table in memory."""

    def __init__(self, kind: type[R], rows: MutableMapping[str, R] | None = None, key: str = "id") -> None:
        self.kind, self.key = kind, key
        self._rows: MutableMapping[str, R] = {} if rows is None else rows

    def with_rows(self, rows: MutableMapping[str, R]) -> "Table[R]":
        """A table of the same kind with other rows."""
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
        """Remove the record with this key; return whether there was one."""
        return self._rows.pop(key, None) is not None

    def where(self, field: str, values: Sequence[str]) -> list[list[R]]:
        """For each value, the records that have it in this field, or contain it if the field is a list."""
        matches: dict[str, list[R]] = {value: [] for value in values}
        # One pass for all values.
        for row in self._rows.values():
            field_value = getattr(row, field)
            for value in field_value if isinstance(field_value, tuple) else (field_value,):
                if value in matches:
                    matches[value].append(row)
        return [matches[value] for value in values]


@dataclass(slots=True)
class DesignTables:
    """All tables. Only the services change them. Field names are also names in the state file."""

    workspaces: Table[records.Workspace] = field(default_factory=lambda: Table(records.Workspace))
    users: Table[records.DesignUser] = field(default_factory=lambda: Table(records.DesignUser))
    folders: Table[records.Folder] = field(default_factory=lambda: Table(records.Folder))
    components: Table[records.Component] = field(default_factory=lambda: Table(records.Component))
    projects: Table[records.Project] = field(default_factory=lambda: Table(records.Project))
    boms: Table[records.Bom] = field(default_factory=lambda: Table(records.Bom))
    releases: Table[records.Release] = field(default_factory=lambda: Table(records.Release))
    items: Table[records.DesignItem] = field(default_factory=lambda: Table(records.DesignItem))
    jobs: Table[records.ProjectJob] = field(default_factory=lambda: Table(records.ProjectJob))
    definitions: Table[records.WorkflowDefinition] = field(
        default_factory=lambda: Table(records.WorkflowDefinition, key="workflow_definition_id")
    )
    workflows: Table[records.Workflow] = field(
        default_factory=lambda: Table(records.Workflow, key="workflow_id"),
    )
    threads: Table[records.CommentThread] = field(default_factory=lambda: Table(records.CommentThread))
    tasks: Table[records.Task] = field(default_factory=lambda: Table(records.Task))


def open_tables(state_store: state.StateStore) -> DesignTables:
    """The tables of the state file; empty if they were never filled."""
    empty = DesignTables()
    tables = {each.name: getattr(empty, each.name) for each in fields(empty)}
    return DesignTables(
        **{name: table.with_rows(state_store.rows(f"design_{name}", table.kind)) for name, table in tables.items()}
    )


def copy_tables(data: DesignTables, into: DesignTables) -> None:
    """Copy all records of `data` into `into`."""
    for each in fields(data):
        for row in getattr(data, each.name):
            getattr(into, each.name).put(row)
