"""Access of resolvers to design data: the session, and the records that its user may see.

Users see the workspaces of which they are members, and their contents; other records are reported as missing.
"""

from nexar_sandbox.design import records
from nexar_sandbox.graphql import context, errors


def session(info: context.Info) -> context.DesignSession:
    """Return the request's session. Operations on design data are executed only with one."""
    design_session = info.context.design
    if design_session is None:
        raise errors.DesignError("design data needs a user's token")
    return design_session


def loaders(info: context.Info) -> context.DesignLoaders:
    return session(info).loaders


async def user(info: context.Info) -> records.Record:
    """Return the caller. Raises DesignError for a user who is in no workspace."""
    user_id = session(info).user_id
    design_user = await loaders(info).one("DesUser", user_id)
    if design_user is None:
        raise errors.DesignError(f"the user {user_id} is in no workspace")
    return design_user


async def visible(info: context.Info, of: str, id_: str) -> records.Record | None:
    """Return the record of this GraphQL type with this id if the user may see it, or None."""
    record = await loaders(info).one(of, id_)
    return record if record is not None and await _may_see(info, record) else None


async def require(info: context.Info, of: str, id_: str, noun: str) -> records.Record:
    """Return the record with this id. Raises DesignError if the user cannot see it; `noun` is the kind of record."""
    record = await visible(info, of, id_)
    if record is None:
        raise errors.DesignError(f"there is no {noun} {id_}")
    return record


async def workspaces(info: context.Info) -> list[records.Record]:
    workspace_ids = (await user(info)).workspace_ids
    return [workspace for workspace in await loaders(info).all("DesWorkspace") if workspace.id in workspace_ids]


async def workspace_at(info: context.Info, url: str) -> records.Record | None:
    """Return the workspace with this URL if the user is in it, or None."""
    workspace_ids = (await user(info)).workspace_ids
    matching = await loaders(info).where("DesWorkspace", "url", url.rstrip("/"))
    return next((workspace for workspace in matching if workspace.id in workspace_ids), None)


async def require_workspace(info: context.Info, url: str) -> records.Record:
    """Return the workspace with this URL. Raises DesignError if the user is not in it."""
    workspace = await workspace_at(info, url)
    if workspace is None:
        raise errors.DesignError(f"there is no workspace {url}")
    return workspace


async def _may_see(info: context.Info, record: records.Record) -> bool:
    if isinstance(record, records.Workspace):
        place: str | None = record.id
    elif hasattr(record, "workspace_id"):
        place = record.workspace_id
    else:
        project = await loaders(info).one("DesProject", record.project_id)
        place = project.workspace_id if project else None
    return place in (await user(info)).workspace_ids
