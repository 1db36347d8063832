"""Libraries: folders, components and their revisions (contract graphql.md §5)."""

import asyncio
import re
from typing import Any, NamedTuple

from graphql import GraphQLFieldResolver

from nexar_sandbox.design import records
from nexar_sandbox.graphql import connections, context, design_filters, design_loaders
from nexar_sandbox.graphql.resolvers import design_access as access

# By the unit of a value, with or without a prefix.
_MEASURES = {
    "F": "CAPACITANCE",
    "C": "CHARGE",
    "S": "CONDUCTANCE",
    "A": "CURRENT",
    "dB": "DECIBELS",
    "Hz": "FREQUENCY",
    "H": "INDUCTANCE",
    "m": "LENGTH",
    "g": "MASS",
    "%": "PERCENT",
    "W": "POWER",
    "Ω": "RESISTANCE",
    "°C": "TEMPERATURE",
    "s": "TIME",
    "V": "VOLTAGE",
}


class DesErrorPayload(NamedTuple):
    """An error as a value of a union."""

    message: str


async def library(
    _root: None,
    info: context.Info,
    workspaceUrl: str,  # noqa: N803 (the schema's argument name)
) -> records.Workspace:
    """The library of a workspace."""
    return await access.require_workspace(info, workspaceUrl)


async def component(_root: None, info: context.Info, id: str) -> records.Component | None:
    """The record with this id, or None."""
    return await access.visible(info, design_loaders.COMPONENTS, id)


async def components_by_ids(
    _root: None, info: context.Info, ids: list[str]
) -> list[records.Component | DesErrorPayload]:
    """For each id, the component or an error."""
    visible = await asyncio.gather(*(access.visible(info, design_loaders.COMPONENTS, id_) for id_ in ids))
    return [
        component or DesErrorPayload(f"there is no component {id_}")
        for id_, component in zip(ids, visible, strict=True)
    ]


async def revision(_root: None, info: context.Info, id: str) -> records.Component | None:
    """A component by the id of its revision."""
    matching = await access.session(info).loaders.where(design_loaders.COMPONENTS, "revision_id", id)
    return await access.visible(info, design_loaders.COMPONENTS, matching[0].id) if matching else None


async def folder(_root: None, info: context.Info, id: str) -> records.Folder | None:
    """The record with this id, or None."""
    return await access.visible(info, design_loaders.FOLDERS, id)


async def folders(workspace: records.Workspace, info: context.Info) -> list[records.Folder]:
    """All folders of a library."""
    return await access.session(info).loaders.where(design_loaders.FOLDERS, "workspace_id", workspace.id)


async def components(
    workspace: records.Workspace, info: context.Info, where: dict[str, Any] | None = None, **arguments: Any
) -> connections.Connection:
    """A page of those that pass the filter."""
    records_ = await access.session(info).loaders.where(design_loaders.COMPONENTS, "workspace_id", workspace.id)
    return connections.page(design_filters.matching_records(records_, where), arguments, lambda component: component.id)


def parameter_type(parameter: records.DesignParameter, _info: context.Info) -> str:
    """The quantity of the parameter, by the unit at the end of its value: "4.7 kΩ" is a resistance."""
    number, _, unit = parameter.value.rpartition(" ")
    if not number or not re.fullmatch(r"[-+]?[\d.]+", number):
        return "TEXT"
    return _MEASURES.get(unit) or _MEASURES.get(unit[1:], "TEXT")


def payload_type(value: object, _info: context.Info, _kind: object) -> str:
    """The member type of the union for a value."""
    return "DesComponent" if isinstance(value, records.Component) else "DesErrorPayload"


ATTRIBUTES = {
    "DesRevision.id": "revision_id",
    "DesRevisionDetails.id": "revision_id",
    **{
        f"DesLibrary.{name}": f"library.{attribute}"
        for name, attribute in (
            ("name", "name"),
            ("description", "description"),
            ("version", "version"),
            ("createdAt", "created_at"),
            ("updatedAt", "updated_at"),
        )
    },
}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.desLibrary": library,
    "Query.desComponentById": component,
    "Query.desComponentsByIds": components_by_ids,
    "Query.desRevisionDetailsById": revision,
    "Query.desFolderById": folder,
    "DesLibrary.createdBy": access.record_resolver(design_loaders.USERS, "library.created_by_id"),
    "DesLibrary.updatedBy": access.record_resolver(design_loaders.USERS, "library.updated_by_id"),
    "DesLibrary.folders": folders,
    "DesLibrary.components": components,
    "DesFolder.parent": access.record_resolver(design_loaders.FOLDERS, "parent_id"),
    "DesFolder.createdBy": access.record_resolver(design_loaders.USERS, "created_by_id"),
    "DesFolder.updatedBy": access.record_resolver(design_loaders.USERS, "updated_by_id"),
    "DesComponent.folder": access.record_resolver(design_loaders.FOLDERS, "folder_id"),
    "DesComponent.details": access.same_record,
    "DesComponentParameter.type": parameter_type,
    "DesComponent.revision": access.same_record,
    "DesRevision.details": access.same_record,
}
