"""Access of resolvers to design data: the session, and the records that its user may see.

Users see the workspaces of which they are members, and their contents; other records are reported as missing.
"""

from collections.abc import Awaitable, Callable
from operator import attrgetter
from typing import Any, TypeVar

from nexar_sandbox.design import records
from nexar_sandbox.graphql import context, design_loaders, errors

R = TypeVar("R", bound=records.Record)


def session(info: context.Info) -> design_loaders.DesignSession:
    """The request's session. Operations on design data are executed only with one."""
    design_session = info.context.design
    if design_session is None:
        raise errors.DesignError("design data needs a user's token")
    return design_session


async def user(info: context.Info) -> records.DesignUser:
    """The caller. Raises DesignError for a user who is in no workspace."""
    caller_session = session(info)
    design_user = await caller_session.loaders.one(design_loaders.USERS, caller_session.user_id)
    if design_user is None:
        raise errors.DesignError(f"the user {caller_session.user_id} is in no workspace")
    return design_user


async def visible(info: context.Info, source: design_loaders.RecordSource[R], id_: str) -> R | None:
    """The record with this id if the user may see it, or None."""
    record = await session(info).loaders.one(source, id_)
    return record if record is not None and await _may_see(info, record) else None


async def require(info: context.Info, source: design_loaders.RecordSource[R], id_: str, noun: str) -> R:
    """The record with this id. Raises DesignError if the user cannot see it; `noun` is the kind of record."""
    record = await visible(info, source, id_)
    if record is None:
        raise errors.DesignError(f"there is no {noun} {id_}")
    return record


async def workspaces(info: context.Info) -> list[records.Workspace]:
    """The workspaces of the user."""
    workspace_ids = (await user(info)).workspace_ids
    return [
        workspace
        for workspace in await session(info).loaders.all(design_loaders.WORKSPACES)
        if workspace.id in workspace_ids
    ]


async def workspace_at(info: context.Info, url: str) -> records.Workspace | None:
    """The workspace with this URL if the user is in it, or None."""
    workspace_ids = (await user(info)).workspace_ids
    matching = await session(info).loaders.where(design_loaders.WORKSPACES, "url", url.rstrip("/"))
    return next((workspace for workspace in matching if workspace.id in workspace_ids), None)


async def require_workspace(info: context.Info, url: str) -> records.Workspace:
    """The workspace with this URL. Raises DesignError if the user is not in it."""
    workspace = await workspace_at(info, url)
    if workspace is None:
        raise errors.DesignError(f"there is no workspace {url}")
    return workspace


def record_resolver(
    source: design_loaders.RecordSource[Any], attribute: str
) -> Callable[[Any, context.Info], Awaitable[Any]]:
    """A resolver of a field that is another record: `attribute` has its id, or None."""
    read = attrgetter(attribute)

    async def resolve(record: Any, info: context.Info) -> Any:
        id_ = read(record)
        return None if id_ is None else await session(info).loaders.one(source, id_)

    return resolve


def same_record(record: Any, _info: context.Info, **_arguments: object) -> Any:
    """Resolver of a field whose type is another view of the same record."""
    return record


async def _may_see(info: context.Info, record: Any) -> bool:
    if isinstance(record, records.Workspace):
        place: str | None = record.id
    elif hasattr(record, "workspace_id"):
        place = record.workspace_id
    else:
        project = await session(info).loaders.one(design_loaders.PROJECTS, record.project_id)
        place = project.workspace_id if project else None
    return place in (await user(info)).workspace_ids
