"""Queries and fields of design data that do not follow from the schema (contract graphql.md §5)."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from graphql import GraphQLFieldResolver

from nexar_sandbox.design import files, records
from nexar_sandbox.graphql import context, design_filters
from nexar_sandbox.graphql.resolvers import design_access as access

API_PATH = "/graphql"
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


def payload_type(value: object, _info: context.Info, _kind: object) -> str:
    return "DesComponent" if isinstance(value, records.Component) else "DesErrorPayload"


async def workspaces(_root: None, info: context.Info, where: dict[str, Any] | None = None) -> list[records.Record]:
    return design_filters.matching_records(await access.workspaces(info), where)


def location(workspace: records.Record, info: context.Info) -> Any:
    origin = access.session(info).origin
    return records.WorkspaceLocation(name=workspace.region, api_service_url=origin + API_PATH, files_service_url=origin)


async def locations(_root: None, info: context.Info) -> list[records.Record]:
    return list(dict.fromkeys(location(workspace, info) for workspace in await access.workspaces(info)))


async def users(_root: None, info: context.Info, ids: list[str], **given: Any) -> list[records.Record | None]:
    """Users of a workspace by id; null for a user who is not a member."""
    workspace = await access.require_workspace(info, given["workspaceUrl"])
    members = await access.loaders(info).where("DesUser", "workspace_ids", workspace.id)
    members_by_id = {member.id: member for member in members}
    return [members_by_id.get(id_) for id_ in ids]


async def user_by_global_id(_root: None, info: context.Info, id: str) -> records.Record | None:
    """Return a user who shares a workspace with the caller."""
    user = await access.loaders(info).one("DesUser", id)
    workspace_ids = set((await access.user(info)).workspace_ids)
    return user if user is not None and workspace_ids & set(user.workspace_ids) else None


async def user_groups(member: records.Record, info: context.Info) -> list[records.Record]:
    """Return the user's groups in all workspaces that both are in."""
    return [
        group
        for workspace in await access.workspaces(info)
        for group in workspace.groups
        if group.id in member.group_ids
    ]


async def library(_root: None, info: context.Info, **given: Any) -> Any:
    return (await access.require_workspace(info, given["workspaceUrl"])).library


async def components_by_ids(_root: None, info: context.Info, ids: list[str]) -> list[records.Record]:
    """For each id, the component or an error."""
    visible = await asyncio.gather(*(access.visible(info, "DesComponent", id_) for id_ in ids))
    return [
        component or records.ErrorPayload(message=f"there is no component {id_}")
        for id_, component in zip(ids, visible, strict=True)
    ]


async def revision(_root: None, info: context.Info, id: str) -> records.Record | None:
    matching = await access.loaders(info).where("DesComponent", "revision_id", id)
    return await access.visible(info, "DesComponent", matching[0].id) if matching else None


def parameter_type(parameter: records.Record, _info: context.Info) -> str:
    """Return the quantity of the parameter, by the unit at the end of its value: "4.7 kΩ" is a resistance."""
    number, _, unit = parameter.value.rpartition(" ")
    if not number or not re.fullmatch(r"[-+]?[\d.]+", number):
        return "TEXT"
    return _MEASURES.get(unit) or _MEASURES.get(unit[1:], "TEXT")


async def _documents(variant: records.Record, info: context.Info, *, pcb: bool) -> list[records.Record]:
    project = await access.loaders(info).one("DesProject", variant.project_id)
    return [document for document in (project.documents if project else ()) if document.is_pcb == pcb]


async def board(variant: records.Record, info: context.Info) -> records.Record | None:
    return next(iter(await _documents(variant, info, pcb=True)), None)


async def schematics(
    variant: records.Record, info: context.Info, where: dict[str, Any] | None = None
) -> list[records.Record]:
    return design_filters.matching_records(await _documents(variant, info, pcb=False), where)


async def thread(_root: None, info: context.Info, **given: Any) -> records.Record | None:
    thread_ = await access.visible(info, "DesCommentThread", given["threadId"])
    return thread_ if thread_ is not None and thread_.project_id == given["projectId"] else None


async def packages(_root: None, info: context.Info) -> list[records.Record]:
    jobs = await access.loaders(info).all("DesManufacturePackage")
    return [job for job in jobs if job.is_package and await access.visible(info, "DesManufacturePackage", job.id)]


async def package(_root: None, info: context.Info, id: str) -> records.Record | None:
    job = await access.visible(info, "DesManufacturePackage", id)
    return job if job is not None and job.is_package else None


async def export_job(_root: None, info: context.Info, **given: Any) -> records.Record:
    return await access.require(info, "DesProjectExportJob", given["projectExportJobId"], "export job")


def download_url(job: records.Record, info: context.Info) -> str:
    return f"{access.session(info).origin}{files.DOWNLOAD_PATH}?id={job.file_id}"


async def comment_updates(
    _root: None,
    info: context.Info,
    input: dict[str, str],
) -> AsyncIterator[records.Record]:
    """Comment events of a workspace from now on. The event stream is open when this returns."""
    workspace = await access.require_workspace(info, input["workspaceUrl"])
    stream = access.session(info).services.events()
    events = await stream.__aenter__()
    return _notifications(info, workspace, events, stream)


async def _notifications(
    info: context.Info, workspace: records.Record, events: AsyncIterator[records.Record], stream: Any
) -> AsyncIterator[records.Record]:
    try:
        async for event in events:
            if event.workspace_id == workspace.id:
                yield records.CommentNotification(action=event.action, data=await _notification_data(event, info))
    finally:
        await asyncio.shield(stream.__aexit__(None, None, None))


async def _notification_data(event: records.Record, info: context.Info) -> Any:
    thread, comment = event.thread, event.comment
    author = await access.loaders(info).one("DesUser", comment.modified_by_id)
    return records.CommentNotificationData(
        comment_author=author.user_name if author else None,
        comment_date=comment.modified_at,
        comment_id=comment.comment_id,
        comment_text=comment.text,
        comment_thread_id=thread.id,
        document_id=thread.context.document_id,
        document_name=thread.document_name,
        project_id=thread.project_id,
        thread_date=thread.modified_at,
        thread_status=str(thread.status),
    )


ATTRIBUTES = records.ALIASES
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.desWorkspaceInfos": workspaces,
    "Query.desWorkspaces": workspaces,
    "Query.desWorkspaceByUrl": lambda _, info, **given: access.workspace_at(info, given["workspaceUrl"]),
    "Query.desWorkspaceLocations": locations,
    "Query.desTeam": lambda _, info, **given: access.require_workspace(info, given["workspaceUrl"]),
    "Query.desUsers": users,
    "Query.desUserByAuth": lambda _, info: access.user(info),
    "Query.desUserByGlobalId": user_by_global_id,
    "Query.desLibrary": library,
    "Query.desComponentsByIds": components_by_ids,
    "Query.desRevisionDetailsById": revision,
    "Query.desCommentThread": thread,
    "Query.desManufacturePackages": packages,
    "Query.desManufacturePackageById": package,
    "Query.desManufacturePackageCreationJob": package,
    "Query.desProjectExportJob": export_job,
    "DesWorkspaceInfo.location": location,
    "DesWorkspace.location": location,
    "DesUser.groups": user_groups,
    # Users have no pictures, threads no screenshots, and no job fails: each is complete when it is created.
    "DesUser.pictureUrl": lambda *_, **_arguments: None,
    "DesComponentParameter.type": parameter_type,
    "DesProject.previewUrl": lambda project, info: f"{access.session(info).origin}{files.PREVIEW_PATH}?id={project.id}",
    "DesProject.latestRevision": lambda project, _: project.revisions[0],
    "DesWipVariant.pcb": board,
    "DesWipVariant.schematics": schematics,
    "DesReleaseVariant.pcb": board,
    "DesReleaseVariant.schematics": schematics,
    "DesCommentThread.originalStateScreenshotUrl": lambda *_, **_arguments: None,
    "DesManufacturePackage.downloadUrl": download_url,
    "DesManufacturePackageCreationJob.payload": lambda job, _: records.PackageCreationPayload(package_id=job.id),
    "DesManufacturePackageCreationJob.status": lambda _job, _info: "DONE",
    "DesProjectExportJob.downloadUrl": download_url,
    "DesProjectExportJob.status": lambda _job, _info: "DONE",
    "DesProjectExportJob.reason": lambda *_, **_arguments: None,
    "Subscription.desOnCommentUpdated": lambda event, _info, **_arguments: event,
}
SUBSCRIBERS = {"Subscription.desOnCommentUpdated": comment_updates}
