"""Comments and tasks (contract graphql.md §5), and what is told of comments as it happens."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from graphql import GraphQLFieldResolver

from proxy.sandbox.design import records
from proxy.sandbox.graphql import connections, context
from proxy.sandbox.graphql import lookups as looking
from proxy.sandbox.graphql.resolvers import design_access as access


class Mention(NamedTuple):
    """Somebody is named in a comment."""

    user_id: str


class Notice(NamedTuple):
    """What the schema calls DesCommentNotificationData."""

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


class Notification(NamedTuple):
    """Something happened to a comment."""

    action: str
    data: Notice


async def threads(
    _root: None,
    info: context.Info,
    projectId: str,  # noqa: N803 (the schema's argument name)
) -> list[records.CommentThread]:
    """All of a project."""
    project = await access.needed(info, looking.PROJECTS, projectId, "project")
    return await access.session(info).lookups.having(looking.THREADS, "project_id", project.id)


async def thread(
    _root: None,
    info: context.Info,
    projectId: str,  # noqa: N803
    threadId: str,  # noqa: N803
) -> records.CommentThread | None:
    """One of a project."""
    found = await access.seen(info, looking.THREADS, threadId)
    return found if found is not None and found.project_id == projectId else None


async def project_tasks(
    _root: None,
    info: context.Info,
    *,
    projectId: str,  # noqa: N803
    **asked: Any,
) -> connections.Connection:
    """A page of a project's."""
    project = await access.needed(info, looking.PROJECTS, projectId, "project")
    found = await access.session(info).lookups.having(looking.TASKS, "project_id", project.id)
    return connections.page(found, asked, lambda one: one.id)


async def workspace_tasks(
    _root: None,
    info: context.Info,
    *,
    workspaceUrl: str,  # noqa: N803
    **asked: Any,
) -> connections.Connection:
    """A page of all tasks in a workspace."""
    workspace = await access.needed_workspace(info, workspaceUrl)
    found = await access.session(info).lookups.having(looking.TASKS, "workspace_id", workspace.id)
    return connections.page(found, asked, lambda one: one.id)


def mentions(comment: records.Comment, _info: context.Info) -> list[Mention]:
    """Who is named."""
    return [Mention(id_) for id_ in comment.mentioned_ids]


def no_screenshot(_thread: records.CommentThread, _info: context.Info) -> None:
    """Nobody takes pictures here."""


async def comment_updates(
    _root: None,
    info: context.Info,
    input: dict[str, str],
) -> AsyncIterator[Notification]:
    """What happens to the comments of a workspace from now on. The events are listened to when this is over."""
    workspace = await access.needed_workspace(info, input["workspaceUrl"])
    listening = access.session(info).services.events()
    heard = await listening.__aenter__()
    return _notifications(info, workspace, heard, listening)


async def _notifications(
    info: context.Info, workspace: records.Workspace, heard: AsyncIterator[records.CommentEvent], listening: Any
) -> AsyncIterator[Notification]:
    try:
        async for event in heard:
            if event.workspace_id == workspace.id:
                yield Notification(event.action, await _notice(event, info))
    finally:
        await asyncio.shield(listening.__aexit__(None, None, None))


async def _notice(event: records.CommentEvent, info: context.Info) -> Notice:
    thread, comment = event.thread, event.comment
    author = await access.session(info).lookups.one(looking.USERS, comment.modified_by_id)
    return Notice(
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


ATTRIBUTES = {"DesCommentThread.commentThreadId": "id"}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.desCommentThreads": threads,
    "Query.desCommentThread": thread,
    "Query.desProjectTasks": project_tasks,
    "Query.desWorkspaceTasks": workspace_tasks,
    "DesCommentThread.assignedTo": access.of(looking.USERS, "assigned_to_id"),
    "DesCommentThread.originalStateScreenshotUrl": no_screenshot,
    "DesTask.assignee": access.of(looking.USERS, "assignee_id"),
    **{
        f"{kind}.{name}": access.of(looking.USERS, attribute)
        for kind in ("DesCommentThread", "DesComment", "DesTask")
        for name, attribute in (("createdBy", "created_by_id"), ("modifiedBy", "modified_by_id"))
    },
    "DesComment.mentions": mentions,
    "DesMention.user": access.of(looking.USERS, "user_id"),
    "Subscription.desOnCommentUpdated": access.itself,
}
SUBSCRIBERS = {"Subscription.desOnCommentUpdated": comment_updates}
