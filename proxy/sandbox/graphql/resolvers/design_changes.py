"""The mutations of design data: each is one call of a design service (contract graphql.md §5.2).

What a service refuses is in the payload's `errors`, beside an empty id; only a task that was not made, for which the
schema has no empty value, is an error of the field.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphql import GraphQLFieldResolver

from proxy.sandbox.design import client, inputs, records
from proxy.sandbox.graphql import context, problems
from proxy.sandbox.graphql import lookups as looking
from proxy.sandbox.graphql.resolvers import design_access as access

Input: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why nothing was changed."""

    message: str


@dataclass(frozen=True, slots=True)
class Payload:
    """What a mutation gives back: what was made, or why not."""

    made: Any = None
    errors: tuple[Fault, ...] = ()


Change: TypeAlias = Callable[[context.Info, Input], Awaitable[Any]]


def mutation(change: Change) -> GraphQLFieldResolver:
    """The resolver around a change."""

    async def resolve(_root: None, info: context.Info, input: Input) -> Payload:
        try:
            return Payload(await change(info, input))
        except (client.DesignServiceError, problems.DesignError) as refused:
            return Payload(errors=(Fault(str(refused)),))
        finally:
            access.session(info).lookups.forget()

    return resolve


async def send(info: context.Info, asked: str, kind: type[Any], draft: Any = None) -> Any:
    """Ask a service for a change: `asked` is a method, a service and a path. Raises RefusedError."""
    method, service, path = asked.split()
    return await access.session(info).services.change(method, service, path, kind, draft)


def by(info: context.Info) -> str:
    """Whose change it is."""
    return access.session(info).user_id


def named(asked: list[Input] | None) -> tuple[records.DesignParameter, ...]:
    """Parameters as records."""
    return tuple(records.DesignParameter(name=one["name"], value=one["value"]) for one in asked or ())


async def _thread_path(info: context.Info, asked: Input) -> str:
    """The path of a thread of a project. Raises DesignError."""
    project = await access.needed(info, looking.PROJECTS, asked["entityId"], "project")
    thread = await access.needed(info, looking.THREADS, asked["commentThreadId"], "comment thread")
    if thread.project_id != project.id:
        raise problems.DesignError(f"the project has no comment thread {thread.id}")
    return f"/threads/{thread.id}"


def _comment_path(place: str, asked: Input) -> str:
    """Below a thread or task; an id goes into a path only as one segment."""
    return f"{place}/comments/{segment(asked['commentId'])}"


def segment(id_: str) -> str:
    """The id, if it can be one. Raises DesignError."""
    if not id_.isalnum() or not id_.isascii():
        raise problems.DesignError(f"there is nothing with the id {id_!r}")
    return id_


async def _say(info: context.Info, request: str, asked: Input) -> Any:
    return await send(info, request, records.Comment, inputs.CommentInput(by=by(info), text=asked["text"]))


async def _take_back(info: context.Info, path: str) -> Any:
    return await send(info, f"DELETE collaboration {path}", records.Comment, inputs.ChangeInput(by=by(info)))


async def create_comment(info: context.Info, asked: Input) -> Any:
    """A comment in a thread."""
    return await _say(info, f"POST collaboration {await _thread_path(info, asked)}/comments", asked)


async def update_comment(info: context.Info, asked: Input) -> Any:
    """Other words."""
    path = _comment_path(await _thread_path(info, asked), asked)
    return await _say(info, f"PATCH collaboration {path}", asked)


async def delete_comment(info: context.Info, asked: Input) -> Any:
    """Gone."""
    path = _comment_path(await _thread_path(info, asked), asked)
    return await _take_back(info, path)


async def create_thread(info: context.Info, asked: Input) -> Any:
    """A thread about a place of a document."""
    project = await access.needed(info, looking.PROJECTS, asked["entityId"], "project")
    known = {one.document_id: one.document_name for one in project.documents}
    if asked["documentId"] not in known:
        raise problems.DesignError(f"the project has no document {asked['documentId']}")
    corners = asked.get("area")
    area = records.Rectangle(**{name: records.Position2D(**corners[name]) for name in corners}) if corners else None
    place = records.CommentContext(
        document_id=asked["documentId"],
        object_id=asked.get("itemAsDesignItemId") or asked.get("itemAsInternalObjectId"),
        area=area or records.Rectangle(),
        release_id=asked.get("releaseId"),
    )
    draft = inputs.CommentThreadInput(
        by=by(info),
        project_id=project.id,
        workspace_id=project.workspace_id,
        text=asked["text"],
        context=place,
        document_name=known[asked["documentId"]],
    )
    return await send(info, "POST collaboration /threads", records.CommentThread, draft)


async def delete_thread(info: context.Info, asked: Input) -> Any:
    """Gone with all its comments."""
    return await send(info, f"DELETE collaboration {await _thread_path(info, asked)}", records.CommentThread)


async def _create_task(info: context.Info, asked: Input, workspace_id: str, project_id: str | None) -> Any:
    given = {name: asked[name] for name in ("priority", "status") if asked.get(name) is not None}
    draft = inputs.TaskInput(
        by=by(info),
        workspace_id=workspace_id,
        project_id=project_id,
        name=asked["name"],
        description=asked["description"],
        **given,
    )
    return await send(info, "POST collaboration /tasks", records.Task, draft)


async def create_project_task(info: context.Info, asked: Input) -> Any:
    """A task of a project."""
    project = await access.needed(info, looking.PROJECTS, asked["projectId"], "project")
    return await _create_task(info, asked["task"], project.workspace_id, project.id)


async def create_workspace_task(info: context.Info, asked: Input) -> Any:
    """A task of no project."""
    workspace = await access.needed_workspace(info, asked["workspaceUrl"])
    return await _create_task(info, asked["task"], workspace.id, None)


async def _task_path(info: context.Info, asked: Input) -> str:
    return f"/tasks/{(await access.needed(info, looking.TASKS, asked['taskId'], 'task')).id}"


async def update_task(info: context.Info, asked: Input) -> Any:
    """What is null stays."""
    path = await _task_path(info, asked)
    given = {name: asked.get(name) for name in ("name", "description", "priority", "status")}
    draft = inputs.TaskUpdateInput(by=by(info), **given)
    return await send(info, f"PATCH collaboration {path}", records.Task, draft)


async def delete_task(info: context.Info, asked: Input) -> Any:
    """Gone."""
    return await send(info, f"DELETE collaboration {await _task_path(info, asked)}", records.Task)


async def create_task_comment(info: context.Info, asked: Input) -> Any:
    """A comment on a task."""
    return await _say(info, f"POST collaboration {await _task_path(info, asked)}/comments", asked)


async def update_task_comment(info: context.Info, asked: Input) -> Any:
    """Other words."""
    path = _comment_path(await _task_path(info, asked), asked)
    return await _say(info, f"PATCH collaboration {path}", asked)


async def delete_task_comment(info: context.Info, asked: Input) -> Any:
    """Gone."""
    path = _comment_path(await _task_path(info, asked), asked)
    return await _take_back(info, path)


def made(attribute: str) -> GraphQLFieldResolver:
    """The resolver of an id that a payload must have: empty where nothing was made."""

    def resolve(payload: Payload, _info: context.Info) -> str:
        return "" if payload.made is None else str(getattr(payload.made, attribute))

    return resolve


def first_comment(payload: Payload, _info: context.Info) -> str:
    """The id of the comment that a new thread begins with."""
    return "" if payload.made is None else str(payload.made.comments[0].comment_id)


def task_made(payload: Payload, _info: context.Info) -> records.Task:
    """The task. Raises DesignError where there is none, for the schema has no other place to say so."""
    if payload.made is None:
        raise problems.DesignError(payload.errors[0].message)
    task: records.Task = payload.made
    return task


CHANGES: dict[str, Change] = {
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
ATTRIBUTES = {"DesCreateTaskCommentPayload.comment": "made"}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    **{f"Mutation.{name}": mutation(change) for name, change in CHANGES.items()},
    "DesCreateCommentPayload.commentId": made("comment_id"),
    "DesCreateCommentThreadPayload.commentThreadId": made("id"),
    "DesCreateCommentThreadPayload.commentId": first_comment,
    "DesCreateTaskPayload.task": task_made,
}
