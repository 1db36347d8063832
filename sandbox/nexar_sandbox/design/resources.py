"""Resources of the design services, and the GraphQL types that have them (contract graphql.md §5).

A record is a dict with the names of its GraphQL type. Beside its fields it has `id` and `workspaceId`; of a record of
another resource it has `<name>Id`, and a list of such records is read by the id that they have. Times are RFC 3339
texts in UTC; ids are opaque.
"""

import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import graphql

Record: TypeAlias = dict[str, Any]
SCHEMA = graphql.parse(Path(__file__).with_name("design.graphql").read_text(encoding="utf-8"))


class Resource(NamedTuple):
    """The service that has a table, and what a record is called in messages."""

    service: str
    table: str
    noun: str


_JOBS = Resource("projects", "jobs", "job")
# By GraphQL type. A job is a package or an export, complete at once.
RESOURCES = {
    "DesUser": Resource("workspaces", "users", "user"),
    "DesWorkspace": Resource("workspaces", "workspaces", "workspace"),
    "DesFolder": Resource("library", "folders", "folder"),
    "DesComponent": Resource("library", "components", "component"),
    "DesProject": Resource("projects", "projects", "project"),
    "DesBom": Resource("projects", "boms", "BOM"),
    "DesRelease": Resource("projects", "releases", "release"),
    "DesDesignItem": Resource("projects", "items", "design item"),
    "DesManufacturePackage": _JOBS,
    "DesManufacturePackageCreationJob": _JOBS,
    "DesProjectExportJob": _JOBS,
    "DesCommentThread": Resource("collaboration", "threads", "comment thread"),
    "DesTask": Resource("collaboration", "tasks", "task"),
}
TABLES = {resource.table: resource for resource in RESOURCES.values()}
# In the order of their ports.
SERVICES = ("workspaces", "library", "projects", "collaboration")


def rfc3339(seconds: float) -> str:
    """Return seconds since 1970 as RFC 3339 text in UTC, to the millisecond."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
