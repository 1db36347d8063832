"""Workspaces, their teams and users (contract graphql.md §5)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from graphql import GraphQLFieldResolver

from nexar_sandbox.design import records
from nexar_sandbox.graphql import context, design_filters, design_loaders
from nexar_sandbox.graphql.resolvers import design_access as access

API_PATH = "/graphql"


class DesWorkspaceLocation(NamedTuple):
    """Region and service URLs of a workspace; the URLs are the same for all."""

    name: str
    api_service_url: str
    files_service_url: str


def _location(region: str, info: context.Info) -> DesWorkspaceLocation:
    origin = access.session(info).origin
    return DesWorkspaceLocation(region, origin + API_PATH, origin)


async def workspaces(_root: None, info: context.Info) -> list[records.Workspace]:
    """The workspaces of the caller."""
    return await access.workspaces(info)


async def all_workspaces(
    _root: None, info: context.Info, where: dict[str, Any] | None = None
) -> list[records.Workspace]:
    """The workspaces of the caller that match the filter."""
    return design_filters.matching_records(await access.workspaces(info), where)


async def workspace_by_id(_root: None, info: context.Info, id: str) -> records.Workspace | None:
    """The workspace with this id."""
    return await access.visible(info, design_loaders.WORKSPACES, id)


async def workspace_by_url(
    _root: None,
    info: context.Info,
    workspaceUrl: str,  # noqa: N803 (the schema's argument name)
) -> records.Workspace | None:
    """The workspace with this URL."""
    return await access.workspace_at(info, workspaceUrl)


async def locations(_root: None, info: context.Info) -> list[DesWorkspaceLocation]:
    """The distinct locations of the caller's workspaces."""
    regions = dict.fromkeys(workspace.region for workspace in await access.workspaces(info))
    return [_location(region, info) for region in regions]


async def team(
    _root: None,
    info: context.Info,
    workspaceUrl: str,  # noqa: N803
) -> records.Workspace:
    """The team of a workspace."""
    return await access.require_workspace(info, workspaceUrl)


async def users(
    _root: None,
    info: context.Info,
    workspaceUrl: str,  # noqa: N803
    ids: list[str],
) -> list[records.DesignUser | None]:
    """Users of a workspace by id; null for a user who is not a member."""
    workspace = await access.require_workspace(info, workspaceUrl)
    members_by_id = {member.id: member for member in await members(workspace, info)}
    return [members_by_id.get(id_) for id_ in ids]


async def user_by_auth(_root: None, info: context.Info) -> records.DesignUser:
    """The caller."""
    return await access.user(info)


async def user_by_global_id(_root: None, info: context.Info, id: str) -> records.DesignUser | None:
    """A user who shares a workspace with the caller."""
    user = await access.session(info).loaders.one(design_loaders.USERS, id)
    workspace_ids = set((await access.user(info)).workspace_ids)
    return user if user is not None and workspace_ids & set(user.workspace_ids) else None


def location(workspace: records.Workspace, info: context.Info) -> DesWorkspaceLocation:
    """The location of a workspace."""
    return _location(workspace.region, info)


async def members(workspace: records.Workspace, info: context.Info) -> list[records.DesignUser]:
    """The members of a workspace."""
    return await access.session(info).loaders.where(design_loaders.USERS, "workspace_ids", workspace.id)


async def groups(member: records.DesignUser, info: context.Info) -> list[records.UserGroup]:
    """The user's groups in all workspaces that both are in."""
    return [
        group
        for workspace in await access.workspaces(info)
        for group in workspace.groups
        if group.id in member.group_ids
    ]


async def projects(
    workspace: records.Workspace, info: context.Info, where: dict[str, Any] | None = None
) -> list[records.Project]:
    """The projects that pass the filter."""
    projects_ = await access.session(info).loaders.where(design_loaders.PROJECTS, "workspace_id", workspace.id)
    return design_filters.matching_records(projects_, where)


async def tasks(workspace: records.Workspace, info: context.Info) -> list[records.Task]:
    """All tasks of a workspace."""
    return await access.session(info).loaders.where(design_loaders.TASKS, "workspace_id", workspace.id)


async def definitions(
    workspace: records.Workspace, info: context.Info, where: dict[str, Any] | None = None
) -> list[records.WorkflowDefinition]:
    """The workflow definitions that match the filter."""
    definitions_ = await access.session(info).loaders.where(design_loaders.DEFINITIONS, "workspace_id", workspace.id)
    return design_filters.matching_records(definitions_, where)


async def workflows(
    workspace: records.Workspace, info: context.Info, where: dict[str, Any] | None = None, **arguments: Any
) -> list[records.Workflow]:
    """The started workflows that match the filters."""
    workflows_ = await access.session(info).loaders.where(design_loaders.WORKFLOWS, "workspace_id", workspace.id)
    return [
        workflow
        for workflow in design_filters.matching_records(workflows_, where)
        if has_variable(workflow, arguments.get("withVariable"))
    ]


def has_variable(workflow: records.Workflow, variable_filter: Mapping[str, Any] | None) -> bool:
    """Return true if a variable, of this name if one is given, begins with one of the texts; True for no condition."""
    if variable_filter is None:
        return True
    beginnings = tuple(variable_filter["valueMatchesOneOf"])
    named = (variable for variable in workflow.variables if variable_filter.get("name") in (None, variable.name))
    return any(variable.value.startswith(beginnings) for variable in named)


def variables(
    workflow: records.Workflow, _info: context.Info, names: list[str] | None = None
) -> list[records.DesignParameter]:
    """All variables, or those with the given names."""
    return [variable for variable in workflow.variables if names is None or variable.name in names]


def no_picture(_member: records.DesignUser, _info: context.Info, size: str | None = None) -> None:
    """Users have no pictures."""


ATTRIBUTES = {
    "DesWorkspaceInfo.workspaceId": "id",
    "DesUser.userId": "id",
    "DesUser.globalUserId": "id",
}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.desWorkspaceInfos": workspaces,
    "Query.desWorkspaces": all_workspaces,
    "Query.desWorkspaceById": workspace_by_id,
    "Query.desWorkspaceByUrl": workspace_by_url,
    "Query.desWorkspaceLocations": locations,
    "Query.desTeam": team,
    "Query.desUsers": users,
    "Query.desUserByAuth": user_by_auth,
    "Query.desUserByGlobalId": user_by_global_id,
    "DesWorkspaceInfo.location": location,
    "DesWorkspace.location": location,
    "DesWorkspace.library": access.same_record,
    "DesWorkspace.team": access.same_record,
    "DesWorkspace.projects": projects,
    "DesWorkspace.tasks": tasks,
    "DesWorkspace.workflowDefinitions": definitions,
    "DesWorkspace.workflows": workflows,
    "DesWorkflow.variables": variables,
    "DesTeam.users": members,
    "DesUser.groups": groups,
    "DesUser.pictureUrl": no_picture,
}
