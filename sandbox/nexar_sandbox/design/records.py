"""Records of the design services: frozen values made from the types of design.graphql, sent as JSON to the query
service.

A record has the fields of its GraphQL types in snake case: scalars and enums, and records without a table. A record
with a table is stored as its id, `<name>_id`; a list of such records is not stored, because theirs has the id of this
one. A field is also left out if its type is no record, or one that is declared further below. Times are RFC 3339 texts
in UTC; ids are opaque.
"""

import datetime
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import graphql
import msgspec


def snake_case(name: str) -> str:
    """Return a field name in snake case: `has3dModel` is has3d_model."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)


SCHEMA = graphql.parse(Path(__file__).with_name("design.graphql").read_text(encoding="utf-8"))

# Fields that are stored under another name.
ALIASES = {
    "DesWorkspaceInfo.workspaceId": "id",
    "DesUser.userId": "id",
    "DesUser.globalUserId": "id",
    "DesRevision.id": "revision_id",
    "DesRevisionDetails.id": "revision_id",
    "DesBom.bomItems": "items",
    "DesCommentThread.commentThreadId": "id",
}
# Fields of which nothing is stored: the query service computes them.
COMPUTED = frozenset(
    {
        "DesComponentParameter.type",
        "DesProject.previewUrl",
        "DesProject.latestRevision",
        "DesManufacturePackage.downloadUrl",
        "DesManufacturePackageCreationJob.status",
        "DesProjectExportJob.downloadUrl",
        "DesProjectExportJob.reason",
        "DesProjectExportJob.status",
        "DesCommentThread.originalStateScreenshotUrl",
    }
)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of all records."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class RecordKind(NamedTuple):
    """A kind of record: its class, the service and table that have it (empty: it is part of other records), and the
    field that tells one from another."""

    record: type[Record]
    service: str
    table: str
    key: str


_OBJECTS = {node.name.value: node for node in SCHEMA.definitions if isinstance(node, graphql.ObjectTypeDefinitionNode)}
_SCALARS: dict[str, type] = {"ID": str, "String": str, "DateTime": str, "Int": int, "Decimal": float, "Boolean": bool}
_SCALARS |= {node.name.value: str for node in SCHEMA.definitions if isinstance(node, graphql.EnumTypeDefinitionNode)}
_IDS: Any = (tuple[str, ...], ())
_OPTIONAL_TEXT: Any = (str | None, None)


class _RecordMaker:
    """Make record classes; `kinds` has the kinds that are made, by GraphQL type."""

    def __init__(self) -> None:
        self.kinds: dict[str, RecordKind] = {}

    def kind(self, types: str, table: str = "", key: str = "id", **more: Any) -> Any:
        """Make the record class of these GraphQL types, with `more` fields: types, or types with defaults. `table` is
        service/table."""
        names = types.split()
        fields: dict[str, Any] = {}
        for type_name in names:
            for node in _OBJECTS[type_name].fields or ():
                name, stored = self._stored(node, type_name, names)
                if stored is not None:
                    fields.setdefault(name, stored)
        definitions: list[Any] = [
            (name, *stored) if isinstance(stored, tuple) else (name, stored)
            for name, stored in {**fields, **more}.items()
        ]
        class_name = names[0].removeprefix("Des")
        record: Any = msgspec.defstruct(class_name, definitions, bases=(Record,), frozen=True, kw_only=True)
        service, _, table_name = table.partition("/")
        self.kinds |= dict.fromkeys(names, RecordKind(record, service, table_name, key))
        return record

    def _stored(self, node: graphql.FieldDefinitionNode, type_name: str, views: list[str]) -> tuple[str, Any]:
        """Name and type of the stored field, the type with its default if there is one; None if nothing is stored."""
        name, place = snake_case(node.name.value), f"{type_name}.{node.name.value}"
        named, is_list, is_nullable = _unwrapped(node.type)
        target = self.kinds.get(named)
        stored: Any = None
        if place in ALIASES or place in COMPUTED:
            return name, None
        if named in _SCALARS:
            stored = None if node.arguments else _SCALARS[named]
        elif named == type_name or (target is not None and target.table):
            name, stored = f"{name}_id", None if is_list else str
        elif named not in views and target is not None:
            stored = (tuple[target.record, ...], ()) if is_list else target.record  # type: ignore[name-defined]
        return name, (stored | None, None) if is_nullable and isinstance(stored, type) else stored


def _unwrapped(type_: graphql.TypeNode) -> tuple[str, bool, bool]:
    """Return the name of the type (of a connection that of its nodes), whether it is a list, whether it is nullable."""
    is_nullable = not isinstance(type_, graphql.NonNullTypeNode)
    inner: Any = type_
    is_list = False
    while not isinstance(inner, graphql.NamedTypeNode):
        is_list = is_list or isinstance(inner, graphql.ListTypeNode)
        inner = inner.type
    name = inner.name.value
    return name.removesuffix("Connection"), is_list or name.endswith("Connection"), is_nullable


_make = _RecordMaker()
# Users: `id` is the subject of the person's tokens.
User = _make.kind("DesUser", "workspaces/users", id=str, workspace_ids=_IDS, group_ids=_IDS)
UserGroup = _make.kind("DesUserGroup")
Library = _make.kind("DesLibrary", workspace_id=str)
Workspace = _make.kind("DesWorkspace DesWorkspaceInfo DesTeam", "workspaces/workspaces", region=str)

Parameter = _make.kind("DesProjectParameter DesComponentParameter DesDesignItemParameter DesWorkflowVariable")
Folder = _make.kind("DesFolder", "library/folders", workspace_id=str)
SupplierPrice = _make.kind("DesSupplierPrice")
SupplierStock = _make.kind("DesSupplierStock")
SupplierPart = _make.kind("DesSupplierPart")
# Part choices: `priority` 1 is the first.
ManufacturerPart = _make.kind("DesManufacturerPart")
LifeCycleState = _make.kind("DesLifeCycleState")
# A component has one revision.
Component = _make.kind(
    "DesComponent DesComponentDetails DesRevision DesRevisionDetails",
    "library/components",
    workspace_id=str,
    revision_id=str,
    footprint_name=str,
)

FileChange = _make.kind("DesVcsRevisionFileChange")
VcsRevision = _make.kind("DesVcsRevision", key="revision_id")
BomItemInstance = _make.kind("DesBomItemInstance")
BomItem = _make.kind("DesBomItem", key="component_id")
Bom = _make.kind("DesBom", "projects/boms", project_id=str, variant_name=str)
Variant = _make.kind("DesWipVariant DesReleaseVariant", project_id=str)
Document: Any = _make.kind("DesPcb DesSchematic", project_id=str, is_pcb=bool)
# A package or an export, complete at once. `file_id` is the file to download.
ProjectJob = _make.kind(
    "DesManufacturePackage DesManufacturePackageCreationJob DesProjectExportJob",
    "projects/jobs",
    project_id=str,
    kind=str,
    file_id=str,
    is_package=bool,
)
Release = _make.kind("DesRelease", "projects/releases", project_id=str)
Project = _make.kind(
    "DesProject DesDesign DesWorkInProgress",
    "projects/projects",
    workspace_id=str,
    documents=(tuple[Document, ...], ()),
)
DesignItem = _make.kind("DesDesignItem", "projects/items", project_id=str, sheet_id=str)
WorkflowDefinition = _make.kind(
    "DesWorkflowDefinition", "projects/definitions", "workflow_definition_id", workspace_id=str
)
Workflow = _make.kind("DesWorkflow", "projects/workflows", "workflow_id", workspace_id=str, project_id=_OPTIONAL_TEXT)

Position2D = _make.kind("DesPosition2D")
Rectangle = _make.kind("DesRectangle")
CommentContext = _make.kind("DesCommentContext")
Mention = _make.kind("DesMention")
Comment = _make.kind("DesComment")
# `status` 0 is open, 1 resolved.
CommentThread = _make.kind(
    "DesCommentThread",
    "collaboration/threads",
    id=str,
    project_id=str,
    workspace_id=str,
    document_name=_OPTIONAL_TEXT,
)
Task = _make.kind("DesTask", "collaboration/tasks", workspace_id=str, project_id=_OPTIONAL_TEXT)
# What the query service makes of other records; nothing of it is stored.
WorkspaceLocation = _make.kind("DesWorkspaceLocation")
ErrorPayload = _make.kind("DesErrorPayload")
PayloadError = _make.kind("DesPayloadError")
PackageCreationPayload = _make.kind("DesManufacturePackageCreationJobPayload")
CommentNotificationData = _make.kind("DesCommentNotificationData")
CommentNotification = _make.kind("DesCommentNotification")
# A change of a comment. The values of `action` are our choice: the contract has none.
CommentEvent: Any = msgspec.defstruct(
    "CommentEvent", [("action", str), ("workspace_id", str), ("thread", CommentThread), ("comment", Comment)]
)

KINDS: Mapping[str, RecordKind] = MappingProxyType(_make.kinds)
"""The kind of record of a GraphQL type."""


def rfc3339(seconds: float) -> str:
    """Return seconds since 1970 as RFC 3339 text in UTC, to the millisecond."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
