"""Mutations of design data: who may make them, and the request to a design service (contract graphql.md §5.2).

Errors of a service are in the payload's `errors`, beside an empty id; only a task or workflow that was not created, for
which the schema has no errors, is an error of the field.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias

from graphql import GraphQLFieldResolver

from nexar_sandbox.design import records, services
from nexar_sandbox.graphql import context, errors
from nexar_sandbox.graphql.resolvers import design_access as access

Input: TypeAlias = dict[str, Any]
TASK_FIELDS = ("name", "description", "priority", "status")


@dataclass(frozen=True, slots=True)
class MutationPayload:
    """The result of a mutation: the created or changed record, or errors."""

    record: Any = None
    errors: tuple[records.Record, ...] = ()


Mutation: TypeAlias = Callable[[context.Info, Input], Awaitable[records.Record]]


def _mutation(change: Mutation) -> GraphQLFieldResolver:
    """Return the resolver of a mutation, which returns errors of the service in its payload."""

    async def resolve(_root: None, info: context.Info, input: Input) -> MutationPayload:
        try:
            return MutationPayload(await change(info, input))
        except (services.DesignServiceError, errors.DesignError) as refused:
            return MutationPayload(errors=(records.PayloadError(message=str(refused)),))
        finally:
            # Fields of the payload must not see records of before the change.
            access.loaders(info).clear()

    return resolve


async def _send(info: context.Info, request: str, of: Any, **fields: Any) -> records.Record:
    """Send a change to a service, in the name of the user: `request` is method, service and path, `of` the record class
    of the result. Raises DesignServiceError."""
    method, service, path = request.split()
    session = access.session(info)
    return await session.services.change(method, service, path, of, {"by": session.user_id, **fields})


def _given(fields: Input, *names: str) -> Input:
    """Return the fields with these names that are not null."""
    return {name: fields[name] for name in names if fields.get(name) is not None}


async def _thread_path(info: context.Info, fields: Input) -> str:
    project = await access.require(info, "DesProject", fields["entityId"], "project")
    thread = await access.require(info, "DesCommentThread", fields["commentThreadId"], "comment thread")
    if thread.project_id != project.id:
        raise errors.DesignError(f"the project has no comment thread {thread.id}")
    return f"/threads/{thread.id}"


async def _task_path(info: context.Info, fields: Input) -> str:
    return f"/tasks/{(await access.require(info, 'DesTask', fields['taskId'], 'task')).id}"


def _segment(id_: str) -> str:
    """Return the id, if it is safe as a path segment. Raises DesignError."""
    if not id_.isalnum() or not id_.isascii():
        raise errors.DesignError(f"there is nothing with the id {id_!r}")
    return id_


def _change(
    method: str, path: Callable[[context.Info, Input], Awaitable[str]], of: Any, names: tuple[str, ...] = ()
) -> Mutation:
    """Return the mutation that sends the fields with these names to a thread or task, or to a comment of it."""

    async def change(info: context.Info, fields: Input) -> records.Record:
        request = f"{method} collaboration {await path(info, fields)}"
        if of is records.Comment:
            request += "/comments"
        if "commentId" in fields:
            request += f"/{_segment(fields['commentId'])}"
        return await _send(info, request, of, **_given(fields, *names))

    return change


async def create_thread(info: context.Info, fields: Input) -> records.Record:
    """Create a comment thread about an object of a document."""
    project = await access.require(info, "DesProject", fields["entityId"], "project")
    document_names = {document.document_id: document.document_name for document in project.documents}
    if fields["documentId"] not in document_names:
        raise errors.DesignError(f"the project has no document {fields['documentId']}")
    corner = {"x": 0, "y": 0}
    return await _send(
        info,
        "POST collaboration /threads",
        records.CommentThread,
        project_id=project.id,
        workspace_id=project.workspace_id,
        text=fields["text"],
        context={
            "document_id": fields["documentId"],
            "object_id": fields.get("itemAsDesignItemId") or fields.get("itemAsInternalObjectId"),
            "area": fields.get("area") or {"pos1": corner, "pos2": corner},
            "release_id": fields.get("releaseId"),
        },
        document_name=document_names[fields["documentId"]],
    )


async def create_project_task(info: context.Info, fields: Input) -> records.Record:
    project = await access.require(info, "DesProject", fields["projectId"], "project")
    return await _create_task(info, fields["task"], workspace_id=project.workspace_id, project_id=project.id)


async def create_workspace_task(info: context.Info, fields: Input) -> records.Record:
    workspace = await access.require_workspace(info, fields["workspaceUrl"])
    return await _create_task(info, fields["task"], workspace_id=workspace.id)


async def _create_task(info: context.Info, fields: Input, **place: str) -> records.Record:
    return await _send(info, "POST collaboration /tasks", records.Task, **place, **_given(fields, *TASK_FIELDS))


async def update_parameters(info: context.Info, fields: Input) -> records.Record:
    project = await access.require(info, "DesProject", fields["projectId"], "project")
    return await _send(
        info,
        f"PATCH projects /projects/{project.id}",
        records.Project,
        parameters=fields["parameters"],
        replace_existing=bool(fields.get("replaceExisting")),
    )


async def upload_project(info: context.Info, fields: Input) -> records.Record:
    folder = await access.require(info, "DesFolder", fields["parentFolderId"], "folder")
    workspace = await access.require_workspace(info, fields["workspaceUrl"])
    # The user may see both, and still they may belong to different workspaces.
    if folder.workspace_id != workspace.id:
        raise errors.DesignError(f"the workspace has no folder {folder.id}")
    return await _send(
        info,
        "POST projects /projects",
        records.Project,
        workspace_id=workspace.id,
        workspace_url=workspace.url,
        name=fields["name"],
        description=fields.get("description") or "",
        file_id=fields["fileId"],
    )


async def release_component(info: context.Info, fields: Input) -> records.Record:
    workspace = await access.require_workspace(info, fields["workspaceUrl"])
    folder_id = fields.get("componentParentFolderId")
    if folder_id is not None:
        await access.require(info, "DesFolder", folder_id, "folder")
    return await _send(
        info,
        "POST library /components",
        records.Component,
        workspace_id=workspace.id,
        name=fields["componentItemName"],
        comment=fields.get("componentComment") or "",
        description=fields.get("componentDescription") or "",
        folder_id=folder_id,
        folder_path=fields.get("componentReleaseFolder"),
        parameters=fields["parameters"],
    )


async def add_choices(info: context.Info, fields: Input) -> records.Record:
    return await _choose(info, fields, add=_choices(fields["manufacturerParts"]))


async def remove_choices(info: context.Info, fields: Input) -> records.Record:
    parts = fields.get("manufacturerParts")
    return await _choose(info, fields, remove=None if parts is None else _choices(parts))


async def _choose(info: context.Info, fields: Input, **choices: list[Input] | None) -> records.Record:
    component = await access.require(info, "DesComponent", fields["componentId"], "component")
    return await _send(info, f"PATCH library /components/{component.id}", records.Component, **choices)


def _choices(fields: list[Input]) -> list[Input]:
    return [{"company_name": choice["companyName"], "part_number": choice["partNumber"]} for choice in fields]


async def launch_workflow(info: context.Info, fields: Input) -> records.Record:
    workspace = await access.require_workspace(info, fields["workspaceUrl"])
    return await _send(
        info,
        "POST projects /workflows",
        records.Workflow,
        workspace_id=workspace.id,
        definition_id=fields["workflowDefinitionId"],
        name=fields.get("name"),
        variables=fields["variables"],
    )


# What can be exported, with the name that a file has if the caller gives none.
EXPORTS = {"exportAny": "Export.zip", "exportGerber": "Gerber.zip", "exportIdf": "IDF.zip"}


async def create_export(info: context.Info, fields: Input) -> records.Record:
    """Create an export of a project, of exactly one kind."""
    # GraphQL has no union of inputs, so the schema cannot say this.
    kinds = [kind for kind in EXPORTS if fields.get(kind) is not None]
    if len(kinds) != 1:
        raise errors.DesignError(f"exactly one of {', '.join(EXPORTS)} must be given")
    name = fields[kinds[0]].get("fileName") or EXPORTS[kinds[0]]
    return await _create_job(info, fields, name, kinds[0], is_package=False)


async def create_package(info: context.Info, fields: Input) -> records.Record:
    """Create a manufacture package. No e-mail is sent."""
    return await _create_job(info, fields, fields["name"], "package", is_package=True)


async def _create_job(info: context.Info, fields: Input, name: str, kind: str, *, is_package: bool) -> records.Record:
    project = await access.require(info, "DesProject", fields["projectId"], "project")
    revision_ids = [revision.revision_id for revision in project.revisions]
    if fields.get("vcsRevisionId") not in (None, *revision_ids):
        raise errors.DesignError(f"the project has no revision {fields['vcsRevisionId']}")
    return await _send(
        info,
        "POST projects /jobs",
        records.ProjectJob,
        project_id=project.id,
        name=name,
        kind=kind,
        is_package=is_package,
        variant_name=fields.get("variantName"),
    )


def _created(read: Callable[[Any], str], missing: str | None = "") -> GraphQLFieldResolver:
    """Return the resolver of an id of a payload: `missing` if nothing was created."""
    return lambda payload, _: missing if payload.record is None else read(payload.record)


def _record(payload: MutationPayload) -> Any:
    """Return the record. Raises DesignError if the mutation was rejected: the payload shows no errors."""
    if payload.record is None:
        raise errors.DesignError(payload.errors[0].message)
    return payload.record


MUTATIONS: dict[str, Mutation] = {
    "desCreateComment": _change("POST", _thread_path, records.Comment, ("text",)),
    "desUpdateComment": _change("PATCH", _thread_path, records.Comment, ("text",)),
    "desDeleteComment": _change("DELETE", _thread_path, records.Comment),
    "desCreateCommentThread": create_thread,
    "desDeleteCommentThread": _change("DELETE", _thread_path, records.CommentThread),
    "desCreateProjectTask": create_project_task,
    "desCreateWorkspaceTask": create_workspace_task,
    # Null fields stay as they are.
    "desUpdateTask": _change("PATCH", _task_path, records.Task, TASK_FIELDS),
    "desDeleteTask": _change("DELETE", _task_path, records.Task),
    "desCreateTaskComment": _change("POST", _task_path, records.Comment, ("text",)),
    "desUpdateTaskComment": _change("PATCH", _task_path, records.Comment, ("text",)),
    "desDeleteTaskComment": _change("DELETE", _task_path, records.Comment),
    "desUpdateProjectParameters": update_parameters,
    "desUploadProject": upload_project,
    "desReleaseComponent": release_component,
    "desAddComponentPartChoices": add_choices,
    "desRemoveComponentPartChoices": remove_choices,
    "desLaunchWorkflow": launch_workflow,
    "desCreateProjectExportJob": create_export,
    "desCreateManufacturePackage": create_package,
}
ATTRIBUTES = {"DesCreateTaskCommentPayload.comment": "record"}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    **{f"Mutation.{name}": _mutation(change) for name, change in MUTATIONS.items()},
    "DesCreateCommentPayload.commentId": _created(attrgetter("comment_id")),
    "DesCreateCommentThreadPayload.commentThreadId": _created(attrgetter("id")),
    "DesCreateCommentThreadPayload.commentId": _created(lambda thread: str(thread.comments[0].comment_id)),
    "DesCreateTaskPayload.task": lambda payload, _: _record(payload),
    "DesUploadProjectPayload.projectId": _created(attrgetter("id")),
    "DesLaunchWorkflowPayload.id": lambda payload, _: _record(payload).workflow_id,
    # 0 if the workflow was started, else 1. The contract has no values.
    "DesLaunchWorkflowPayload.status": lambda payload, _: 1 if payload.errors else 0,
    "DesCreateProjectExportJobPayload.projectExportJobId": _created(attrgetter("id"), None),
    "DesCreateManufacturePackagePayload.jobId": _created(attrgetter("id")),
}
