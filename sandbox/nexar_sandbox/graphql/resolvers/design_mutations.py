"""Mutations of design data: who may make them, and the request to a design service (contract graphql.md §5.2).

Errors of a service are in the payload's `errors`, beside an empty id; only a task that was not created, for which the
schema has no null, is an error of the field.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from graphql import GraphQLFieldResolver

from nexar_sandbox.design import services
from nexar_sandbox.design.resources import Record
from nexar_sandbox.graphql import context, errors
from nexar_sandbox.graphql.resolvers import design

Input: TypeAlias = dict[str, Any]
Mutation: TypeAlias = Callable[[context.Info, Input], Awaitable[Record]]
# Method, service and path of a request, and the fields of its body.
Request: TypeAlias = tuple[str, Input]
TASK_FIELDS = ("name", "description", "priority", "status")


def _mutation(request: Callable[[context.Info, Input], Awaitable[Request]], result: Input) -> GraphQLFieldResolver:
    """Return the resolver of a mutation. `result` has what a payload without a record has, and by the same names what a
    record gives: a function of it."""

    async def resolve(_root: None, info: context.Info, input: Input) -> Record:
        session = design.session(info)
        try:
            route, fields = await request(info, input)
            method, service, path = route.split()
            record = await session.services.change(method, service, path, {"by": session.user_id, **fields})
        except (services.DesignServiceError, errors.DesignError) as refused:
            if "task" in result:
                raise errors.DesignError(str(refused)) from refused
            return {"errors": [{"message": str(refused)}], **{name: missing for name, (missing, _) in result.items()}}
        finally:
            # Fields of the payload must not see records of before the change.
            session.loaders.clear()
        return {"errors": [], **{name: read(record) for name, (_, read) in result.items()}}

    return resolve


def _key(name: str) -> Callable[[Record], Any]:
    return lambda record: record[name]


def _given(fields: Input, *names: str) -> Input:
    """Return the fields with these names that are not null."""
    return {name: fields[name] for name in names if fields.get(name) is not None}


async def _thread(info: context.Info, fields: Input) -> str:
    project = await design.require(info, "DesProject", fields["entityId"])
    thread = await design.require(info, "DesCommentThread", fields["commentThreadId"])
    if thread["projectId"] != project["id"]:
        raise errors.DesignError(f"the project has no comment thread {thread['id']}")
    return f"/threads/{thread['id']}"


async def _task(info: context.Info, fields: Input) -> str:
    return f"/tasks/{(await design.require(info, 'DesTask', fields['taskId']))['id']}"


def _change(
    method: str, parent: Callable[[context.Info, Input], Awaitable[str]], below: str = "", names: tuple[str, ...] = ()
) -> Callable[[context.Info, Input], Awaitable[Request]]:
    """Return the mutation that sends the fields with these names to a thread or task, or to what is `below` it."""

    async def request(info: context.Info, fields: Input) -> Request:
        path, comment_id = await parent(info, fields) + below, fields.get("commentId")
        if comment_id is not None:
            if not (comment_id.isalnum() and comment_id.isascii()):  # it would be another path
                raise errors.DesignError(f"there is no comment {comment_id}")
            path += f"/{comment_id}"
        return f"{method} collaboration {path}", _given(fields, *names)

    return request


async def create_thread(info: context.Info, fields: Input) -> Request:
    """Create a comment thread about an object of a document."""
    project = await design.require(info, "DesProject", fields["entityId"])
    documents = [each for variant in project["variants"] for each in (variant["pcb"], *variant["schematics"]) if each]
    names = {document["documentId"]: document["documentName"] for document in documents}
    if fields["documentId"] not in names:
        raise errors.DesignError(f"the project has no document {fields['documentId']}")
    corner = {"x": 0, "y": 0}
    return "POST collaboration /threads", {
        "projectId": project["id"],
        "workspaceId": project["workspaceId"],
        "text": fields["text"],
        "documentName": names[fields["documentId"]],
        "context": {
            "documentId": fields["documentId"],
            "objectId": fields.get("itemAsDesignItemId") or fields.get("itemAsInternalObjectId"),
            "area": fields.get("area") or {"pos1": corner, "pos2": corner},
            "releaseId": fields.get("releaseId"),
        },
    }


async def create_project_task(info: context.Info, fields: Input) -> Request:
    project = await design.require(info, "DesProject", fields["projectId"])
    place = {"workspaceId": project["workspaceId"], "projectId": project["id"]}
    return "POST collaboration /tasks", place | _given(fields["task"], *TASK_FIELDS)


async def create_workspace_task(info: context.Info, fields: Input) -> Request:
    workspace = await design.require_workspace(info, fields["workspaceUrl"])
    return "POST collaboration /tasks", {"workspaceId": workspace["id"], **_given(fields["task"], *TASK_FIELDS)}


async def update_parameters(info: context.Info, fields: Input) -> Request:
    project = await design.require(info, "DesProject", fields["projectId"])
    parameters = {"parameters": fields["parameters"], "replaceExisting": bool(fields.get("replaceExisting"))}
    return f"PATCH projects /projects/{project['id']}", parameters


async def upload_project(info: context.Info, fields: Input) -> Request:
    folder = await design.require(info, "DesFolder", fields["parentFolderId"])
    workspace = await design.require_workspace(info, fields["workspaceUrl"])
    # The user may see both, and still they may belong to different workspaces.
    if folder["workspaceId"] != workspace["id"]:
        raise errors.DesignError(f"the workspace has no folder {folder['id']}")
    place = {"workspaceId": workspace["id"], "workspaceUrl": workspace["url"]}
    own = {"name": fields["name"], "description": fields.get("description") or "", "fileId": fields["fileId"]}
    return "POST projects /projects", place | own


async def release_component(info: context.Info, fields: Input) -> Request:
    workspace = await design.require_workspace(info, fields["workspaceUrl"])
    folder_id = fields.get("componentParentFolderId")
    if folder_id is not None:
        await design.require(info, "DesFolder", folder_id)
    return "POST library /components", {
        "workspaceId": workspace["id"],
        "name": fields["componentItemName"],
        "comment": fields.get("componentComment") or "",
        "description": fields.get("componentDescription") or "",
        "folderId": folder_id,
        "folderPath": fields.get("componentReleaseFolder"),
        "parameters": fields["parameters"],
    }


async def add_choices(info: context.Info, fields: Input) -> Request:
    component = await design.require(info, "DesComponent", fields["componentId"])
    return f"PATCH library /components/{component['id']}", {"add": fields["manufacturerParts"]}


async def remove_choices(info: context.Info, fields: Input) -> Request:
    component = await design.require(info, "DesComponent", fields["componentId"])
    return f"PATCH library /components/{component['id']}", {"remove": fields.get("manufacturerParts")}


# What can be exported, with the name that a file has if the caller gives none.
EXPORTS = {"exportAny": "Export.zip", "exportGerber": "Gerber.zip", "exportIdf": "IDF.zip"}


async def create_export(info: context.Info, fields: Input) -> Request:
    """Create an export of a project, of exactly one kind."""
    # GraphQL has no union of inputs, so the schema cannot say this.
    kinds = [kind for kind in EXPORTS if fields.get(kind) is not None]
    if len(kinds) != 1:
        raise errors.DesignError(f"exactly one of {', '.join(EXPORTS)} must be given")
    return await _create_job(info, fields, fields[kinds[0]].get("fileName") or EXPORTS[kinds[0]], is_package=False)


async def create_package(info: context.Info, fields: Input) -> Request:
    """Create a manufacture package. No e-mail is sent."""
    return await _create_job(info, fields, fields["name"], is_package=True)


async def _create_job(info: context.Info, fields: Input, name: str, *, is_package: bool) -> Request:
    project = await design.require(info, "DesProject", fields["projectId"])
    revision_ids = [revision["revisionId"] for revision in project["revisions"]]
    if fields.get("vcsRevisionId") not in (None, *revision_ids):
        raise errors.DesignError(f"the project has no revision {fields['vcsRevisionId']}")
    place = {"projectId": project["id"], "workspaceId": project["workspaceId"]}
    own = {"name": name, "isPackage": is_package, "variantName": fields.get("variantName")}
    return "POST projects /jobs", place | own


_ID = ("", _key("id"))
_COMMENT_ID = ("", _key("commentId"))
_TASK = {"task": (None, lambda task: task)}
_MUTATIONS: dict[str, tuple[Callable[[context.Info, Input], Awaitable[Request]], Input]] = {
    "desCreateComment": (_change("POST", _thread, "/comments", ("text",)), {"commentId": _COMMENT_ID}),
    "desUpdateComment": (_change("PATCH", _thread, "/comments", ("text",)), {}),
    "desDeleteComment": (_change("DELETE", _thread, "/comments"), {}),
    "desCreateCommentThread": (
        create_thread,
        {"commentThreadId": _ID, "commentId": ("", lambda thread: thread["comments"][0]["commentId"])},
    ),
    "desDeleteCommentThread": (_change("DELETE", _thread), {}),
    "desCreateProjectTask": (create_project_task, _TASK),
    "desCreateWorkspaceTask": (create_workspace_task, _TASK),
    # Null fields stay as they are.
    "desUpdateTask": (_change("PATCH", _task, "", TASK_FIELDS), {}),
    "desDeleteTask": (_change("DELETE", _task), {}),
    "desCreateTaskComment": (
        _change("POST", _task, "/comments", ("text",)),
        {"comment": (None, lambda comment: comment)},
    ),
    "desUpdateTaskComment": (_change("PATCH", _task, "/comments", ("text",)), {}),
    "desDeleteTaskComment": (_change("DELETE", _task, "/comments"), {}),
    "desUpdateProjectParameters": (update_parameters, {}),
    "desUploadProject": (upload_project, {"projectId": _ID}),
    "desReleaseComponent": (release_component, {}),
    "desAddComponentPartChoices": (add_choices, {}),
    "desRemoveComponentPartChoices": (remove_choices, {}),
    "desCreateProjectExportJob": (create_export, {"projectExportJobId": (None, _key("id"))}),
    "desCreateManufacturePackage": (create_package, {"jobId": _ID}),
}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    f"Mutation.{name}": _mutation(request, result) for name, (request, result) in _MUTATIONS.items()
}
