"""Comments and tasks of design data: queries, mutations, and the subscription to comment events (contract graphql.md
§5)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from graphql import GraphQLFieldResolver

from nexar_sandbox.design import inputs, records
from nexar_sandbox.graphql import connections, context, design_loaders, errors
from nexar_sandbox.graphql.resolvers import design_access as access
from nexar_sandbox.graphql.resolvers import design_mutations


class DesMention(NamedTuple):
    """A user mentioned in a comment."""

    user_id: str


class DesCommentNotificationData(NamedTuple):
    """The comment of a notification, with its thread."""

    comment_author: str | None
    comment_date: str
    comment_id: str
    comment_text: str
    comment_thread_id: str
    document_id: str | None
    document_name: str | None
    project_id: str
    thread_data: None
    thread_date: str
    thread_status: str


class DesCommentNotification(NamedTuple):
    """A change of a comment."""

    action: str
    data: DesCommentNotificationData


async def threads(
    _root: None,
    info: context.Info,
    projectId: str,  # noqa: N803 (the schema's argument name)
) -> list[records.CommentThread]:
    """The comment threads of a project."""
    project = await access.require(info, design_loaders.PROJECTS, projectId, "project")
    return await access.session(info).loaders.where(design_loaders.THREADS, "project_id", project.id)


async def thread(
    _root: None,
    info: context.Info,
    projectId: str,  # noqa: N803
    threadId: str,  # noqa: N803
) -> records.CommentThread | None:
    """One comment thread of a project."""
    thread_ = await access.visible(info, design_loaders.THREADS, threadId)
    return thread_ if thread_ is not None and thread_.project_id == projectId else None


async def project_tasks(
    _root: None,
    info: context.Info,
    *,
    projectId: str,  # noqa: N803
    **arguments: Any,
) -> connections.Connection:
    """A page of the tasks of a project."""
    project = await access.require(info, design_loaders.PROJECTS, projectId, "project")
    tasks = await access.session(info).loaders.where(design_loaders.TASKS, "project_id", project.id)
    return connections.page(tasks, arguments, lambda comment: comment.id)


async def workspace_tasks(
    _root: None,
    info: context.Info,
    *,
    workspaceUrl: str,  # noqa: N803
    **arguments: Any,
) -> connections.Connection:
    """A page of all tasks in a workspace."""
    workspace = await access.require_workspace(info, workspaceUrl)
    tasks = await access.session(info).loaders.where(design_loaders.TASKS, "workspace_id", workspace.id)
    return connections.page(tasks, arguments, lambda task: task.id)


def mentions(comment: records.Comment, _info: context.Info) -> list[DesMention]:
    """The mentioned users."""
    return [DesMention(id_) for id_ in comment.mentioned_ids]


def no_screenshot(_thread: records.CommentThread, _info: context.Info) -> None:
    """There are no screenshots."""


async def comment_updates(
    _root: None,
    info: context.Info,
    input: dict[str, str],
) -> AsyncIterator[DesCommentNotification]:
    """Comment events of a workspace from now on. The event stream is open when this returns."""
    workspace = await access.require_workspace(info, input["workspaceUrl"])
    stream = access.session(info).services.events()
    events = await stream.__aenter__()
    return _notifications(info, workspace, events, stream)


async def _notifications(
    info: context.Info, workspace: records.Workspace, events: AsyncIterator[records.CommentEvent], stream: Any
) -> AsyncIterator[DesCommentNotification]:
    try:
        async for event in events:
            if event.workspace_id == workspace.id:
                yield DesCommentNotification(event.action, await _notification_data(event, info))
    finally:
        await asyncio.shield(stream.__aexit__(None, None, None))


async def _notification_data(event: records.CommentEvent, info: context.Info) -> DesCommentNotificationData:
    thread, comment = event.thread, event.comment
    author = await access.session(info).loaders.one(design_loaders.USERS, comment.modified_by_id)
    return DesCommentNotificationData(
        author.user_name if author else None,
        comment.modified_at,
        comment.comment_id,
        comment.text,
        thread.id,
        thread.context.document_id,
        thread.document_name,
        thread.project_id,
        None,
        thread.modified_at,
        str(thread.status),
    )


async def _thread_path(info: context.Info, fields: design_mutations.Input) -> str:
    """The path of a thread of a project. Raises DesignError."""
    project = await access.require(info, design_loaders.PROJECTS, fields["entityId"], "project")
    thread = await access.require(info, design_loaders.THREADS, fields["commentThreadId"], "comment thread")
    if thread.project_id != project.id:
        raise errors.DesignError(f"the project has no comment thread {thread.id}")
    return f"/threads/{thread.id}"


def _comment_path(place: str, fields: design_mutations.Input) -> str:
    """The path of a comment of a thread or task."""
    return f"{place}/comments/{segment(fields['commentId'])}"


def segment(id_: str) -> str:
    """The id, if it is safe as a path segment. Raises DesignError."""
    if not id_.isalnum() or not id_.isascii():
        raise errors.DesignError(f"there is nothing with the id {id_!r}")
    return id_


async def _send_text(info: context.Info, request: str, fields: design_mutations.Input) -> Any:
    return await design_mutations.call_service(
        info, request, records.Comment, inputs.CommentInput(by=design_mutations.author_id(info), text=fields["text"])
    )


async def _delete_comment(info: context.Info, path: str) -> Any:
    return await design_mutations.call_service(
        info, f"DELETE collaboration {path}", records.Comment, inputs.ChangeInput(by=design_mutations.author_id(info))
    )


async def create_comment(info: context.Info, fields: design_mutations.Input) -> Any:
    """Add a comment to a thread."""
    return await _send_text(info, f"POST collaboration {await _thread_path(info, fields)}/comments", fields)


async def update_comment(info: context.Info, fields: design_mutations.Input) -> Any:
    """Replace the text of a comment."""
    path = _comment_path(await _thread_path(info, fields), fields)
    return await _send_text(info, f"PATCH collaboration {path}", fields)


async def delete_comment(info: context.Info, fields: design_mutations.Input) -> Any:
    """Delete it."""
    path = _comment_path(await _thread_path(info, fields), fields)
    return await _delete_comment(info, path)


async def create_thread(info: context.Info, fields: design_mutations.Input) -> Any:
    """Create a comment thread about an object of a document."""
    project = await access.require(info, design_loaders.PROJECTS, fields["entityId"], "project")
    document_names = {document.document_id: document.document_name for document in project.documents}
    if fields["documentId"] not in document_names:
        raise errors.DesignError(f"the project has no document {fields['documentId']}")
    corners = fields.get("area")
    area = records.Rectangle(**{name: records.Position2D(**corners[name]) for name in corners}) if corners else None
    place = records.CommentContext(
        document_id=fields["documentId"],
        object_id=fields.get("itemAsDesignItemId") or fields.get("itemAsInternalObjectId"),
        area=area or records.Rectangle(),
        release_id=fields.get("releaseId"),
    )
    draft = inputs.CommentThreadInput(
        by=design_mutations.author_id(info),
        project_id=project.id,
        workspace_id=project.workspace_id,
        text=fields["text"],
        context=place,
        document_name=document_names[fields["documentId"]],
    )
    return await design_mutations.call_service(info, "POST collaboration /threads", records.CommentThread, draft)


async def delete_thread(info: context.Info, fields: design_mutations.Input) -> Any:
    """Delete a thread with all its comments."""
    return await design_mutations.call_service(
        info, f"DELETE collaboration {await _thread_path(info, fields)}", records.CommentThread
    )


async def _create_task(
    info: context.Info, fields: design_mutations.Input, workspace_id: str, project_id: str | None
) -> Any:
    optional_fields = {name: fields[name] for name in ("priority", "status") if fields.get(name) is not None}
    draft = inputs.TaskInput(
        by=design_mutations.author_id(info),
        workspace_id=workspace_id,
        project_id=project_id,
        name=fields["name"],
        description=fields["description"],
        **optional_fields,
    )
    return await design_mutations.call_service(info, "POST collaboration /tasks", records.Task, draft)


async def create_project_task(info: context.Info, fields: design_mutations.Input) -> Any:
    """Create a task of a project."""
    project = await access.require(info, design_loaders.PROJECTS, fields["projectId"], "project")
    return await _create_task(info, fields["task"], project.workspace_id, project.id)


async def create_workspace_task(info: context.Info, fields: design_mutations.Input) -> Any:
    """Create a task of a workspace."""
    workspace = await access.require_workspace(info, fields["workspaceUrl"])
    return await _create_task(info, fields["task"], workspace.id, None)


async def _task_path(info: context.Info, fields: design_mutations.Input) -> str:
    return f"/tasks/{(await access.require(info, design_loaders.TASKS, fields['taskId'], 'task')).id}"


async def update_task(info: context.Info, fields: design_mutations.Input) -> Any:
    """Update a task; null fields stay as they are."""
    path = await _task_path(info, fields)
    changes = {name: fields.get(name) for name in ("name", "description", "priority", "status")}
    draft = inputs.TaskUpdateInput(by=design_mutations.author_id(info), **changes)
    return await design_mutations.call_service(info, f"PATCH collaboration {path}", records.Task, draft)


async def delete_task(info: context.Info, fields: design_mutations.Input) -> Any:
    """Delete it."""
    return await design_mutations.call_service(
        info, f"DELETE collaboration {await _task_path(info, fields)}", records.Task
    )


async def create_task_comment(info: context.Info, fields: design_mutations.Input) -> Any:
    """Add a comment to a task."""
    return await _send_text(info, f"POST collaboration {await _task_path(info, fields)}/comments", fields)


async def update_task_comment(info: context.Info, fields: design_mutations.Input) -> Any:
    """Replace the text of a comment."""
    path = _comment_path(await _task_path(info, fields), fields)
    return await _send_text(info, f"PATCH collaboration {path}", fields)


async def delete_task_comment(info: context.Info, fields: design_mutations.Input) -> Any:
    """Delete it."""
    path = _comment_path(await _task_path(info, fields), fields)
    return await _delete_comment(info, path)


def first_comment(payload: design_mutations.MutationPayload, _info: context.Info) -> str:
    """The id of the first comment of a new thread."""
    return "" if payload.record is None else str(payload.record.comments[0].comment_id)


def task_made(payload: design_mutations.MutationPayload, _info: context.Info) -> records.Task:
    """The task. Raises DesignError if it was rejected: the payload has no errors in the schema."""
    if payload.record is None:
        raise errors.DesignError(payload.errors[0].message)
    task: records.Task = payload.record
    return task


MUTATIONS: dict[str, design_mutations.Mutation] = {
    "desCreateComment": create_comment,
    "desUpdateComment": update_comment,
    "desDeleteComment": delete_comment,
    "desCreateCommentThread": create_thread,
    "desDeleteCommentThread": delete_thread,
    "desCreateProjectTask": create_project_task,
    "desCreateWorkspaceTask": create_workspace_task,
    "desUpdateTask": update_task,
    "desDeleteTask": delete_task,
    "desCreateTaskComment": create_task_comment,
    "desUpdateTaskComment": update_task_comment,
    "desDeleteTaskComment": delete_task_comment,
}
ATTRIBUTES = {"DesCommentThread.commentThreadId": "id", "DesCreateTaskCommentPayload.comment": "record"}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.desCommentThreads": threads,
    "Query.desCommentThread": thread,
    "Query.desProjectTasks": project_tasks,
    "Query.desWorkspaceTasks": workspace_tasks,
    "DesCommentThread.assignedTo": access.record_resolver(design_loaders.USERS, "assigned_to_id"),
    "DesCommentThread.originalStateScreenshotUrl": no_screenshot,
    "DesTask.assignee": access.record_resolver(design_loaders.USERS, "assignee_id"),
    **{
        f"{kind}.{name}": access.record_resolver(design_loaders.USERS, attribute)
        for kind in ("DesCommentThread", "DesComment", "DesTask")
        for name, attribute in (("createdBy", "created_by_id"), ("modifiedBy", "modified_by_id"))
    },
    "DesComment.mentions": mentions,
    "DesMention.user": access.record_resolver(design_loaders.USERS, "user_id"),
    "Subscription.desOnCommentUpdated": access.same_record,
    **{f"Mutation.{name}": design_mutations.mutation(change) for name, change in MUTATIONS.items()},
    "DesCreateCommentPayload.commentId": design_mutations.created_id("comment_id"),
    "DesCreateCommentThreadPayload.commentThreadId": design_mutations.created_id("id"),
    "DesCreateCommentThreadPayload.commentId": first_comment,
    "DesCreateTaskPayload.task": task_made,
}
SUBSCRIBERS = {"Subscription.desOnCommentUpdated": comment_updates}
