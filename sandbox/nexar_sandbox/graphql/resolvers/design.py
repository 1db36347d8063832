"""Resolvers of design data, made from the schema (contract graphql.md §5): one reader for all types.

A field is read from the record by its name. A field whose type has a table is loaded by `<name>Id`; a list that the
record has not is loaded by the id in RELATIONS, and SELECTED has what else decides about an item. Then the arguments
`where`, `names` and those of a page apply. Users see the workspaces of which they are members, and their contents;
other records are reported as missing.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, cast

import graphql
from graphql import GraphQLFieldResolver

from nexar_sandbox.design import files
from nexar_sandbox.design.resources import RESOURCES, Record
from nexar_sandbox.graphql import context, errors, pages

# Types that are another view of the record that has them.
VIEWS = frozenset(
    {"DesTeam", "DesDesign", "DesWorkInProgress", "DesComponentDetails", "DesRevision", "DesRevisionDetails"}
)
# Fields that are read by another name.
ALIASES = {
    "DesWorkspaceInfo.workspaceId": "id",
    "DesUser.userId": "id",
    "DesUser.globalUserId": "id",
    "DesRevision.id": "revisionId",
    "DesRevisionDetails.id": "revisionId",
    "DesBom.bomItems": "items",
    "DesCommentThread.commentThreadId": "id",
}
# By type: the field of other tables that has the id of a record of this type, and where the record has that id.
RELATIONS = {
    "DesWorkspace": ("workspaceId", "id"),
    "DesTeam": ("workspaceIds", "id"),
    "DesLibrary": ("workspaceId", "workspaceId"),
    "DesProject": ("projectId", "id"),
    "DesDesign": ("projectId", "id"),
    "DesRelease": ("projectId", "projectId"),
    "DesPcb": ("projectId", "projectId"),
    "DesSchematic": ("projectId", "projectId"),
    "DesDesignItem": ("projectId", "projectId"),
}
# Whether an item is in the list of a record; the third argument are the field's arguments.
SELECTED: dict[str, Callable[[Record, Record, Mapping[str, Any]], bool]] = {
    "DesRelease.manufacturePackages": lambda _release, job, _given: job["isPackage"],
    # A board has the items of all sheets.
    "DesPcb.designItems": lambda _, item, given: (
        item["designator"] in (given.get("designators") or [item["designator"]])
    ),
    "DesPcb.commentThreads": lambda board, thread, _: thread["context"]["documentId"] == board["documentId"],
    "DesSchematic.designItems": lambda sheet, item, _: item["sheetId"] == sheet["documentId"],
    "DesSchematic.commentThreads": lambda sheet, thread, _: thread["context"]["documentId"] == sheet["documentId"],
    "DesDesignItem.commentThreads": lambda item, thread, _: thread["context"]["objectId"] == item["id"],
}


def resolvers(schema: graphql.GraphQLSchema) -> dict[str, GraphQLFieldResolver]:
    """Return the resolvers of all fields of design types, and of the queries that follow from the schema."""
    kinds = [kind for name, kind in schema.type_map.items() if name.startswith("Des") or name == "PageInfo"]
    found = {
        f"{kind.name}.{name}": _field_resolver(kind.name, name, field)
        for kind in kinds
        if isinstance(kind, graphql.GraphQLObjectType)
        for name, field in kind.fields.items()
    }
    for name, field in cast(graphql.GraphQLObjectType, schema.query_type).fields.items():
        if name.startswith("des") and (resolver := _query_resolver(field)) is not None:
            found[f"Query.{name}"] = resolver
    return found


def _field_resolver(kind: str, name: str, field: graphql.GraphQLField) -> GraphQLFieldResolver:
    target, is_list = _target(field)
    place = f"{kind}.{name}"
    if target in VIEWS:
        return lambda record, _: record
    if is_list and target in RESOURCES and kind in RELATIONS:
        return _related_list(place, field, target)
    if is_list and field.args:
        return lambda record, _, **given: _page([*record[ALIASES.get(place, name)]], field, given)
    if target in RESOURCES and not is_list and name != "node":
        return _reference(target, name)
    key = ALIASES.get(place, name)
    return lambda record, _, **_given: record.get(key)


def _query_resolver(field: graphql.GraphQLField) -> GraphQLFieldResolver | None:
    target, is_list = _target(field)
    if set(field.args) == {"id"} and target in RESOURCES:
        return lambda _, info, id: visible(info, target, id)
    if is_list and target in RESOURCES and ("workspaceUrl" in field.args or "projectId" in field.args):
        return _list_of(field, target)
    return None


def _target(field: graphql.GraphQLField) -> tuple[str, bool]:
    """Return the type of a field, or of the items of its list or page; and whether it is one of those."""
    name = graphql.get_named_type(field.type).name
    is_list = name.endswith("Connection") or graphql.is_list_type(graphql.get_nullable_type(field.type))
    return name.removesuffix("Connection"), is_list


def _reference(target: str, name: str) -> GraphQLFieldResolver:
    async def resolve(record: Record, info: context.Info) -> Record | None:
        # A payload has the record itself.
        id_ = record.get(f"{name}Id")
        return record.get(name) if id_ is None else await loaders(info).one(target, id_)

    return resolve


def _related_list(place: str, field: graphql.GraphQLField, target: str) -> GraphQLFieldResolver:
    foreign, own = RELATIONS[place.partition(".")[0]]
    is_selected = SELECTED.get(place)

    async def resolve(record: Record, info: context.Info, **given: Any) -> Any:
        items = await loaders(info).where(target, foreign, record[own])
        if is_selected is not None:
            items = [item for item in items if is_selected(record, item, given)]
        return _page(items, field, given)

    return resolve


def _list_of(field: graphql.GraphQLField, target: str) -> GraphQLFieldResolver:
    """Return the resolver of a list of a workspace or project."""

    async def resolve(_root: None, info: context.Info, **given: Any) -> Any:
        if "workspaceUrl" in given:
            foreign, owner = "workspaceId", await require_workspace(info, given["workspaceUrl"])
        else:
            foreign, owner = "projectId", await require(info, "DesProject", given["projectId"])
        return _page(await loaders(info).where(target, foreign, owner["id"]), field, given)

    return resolve


def _page(items: Sequence[Record], field: graphql.GraphQLField, given: Mapping[str, Any]) -> Any:
    """Return the page that the arguments select of the items that match; all of these if the field has no pages."""
    names = given.get("names")
    found = pages.matching([item for item in items if names is None or item["name"] in names], given.get("where"))
    if "first" not in field.args:
        return found
    return pages.page(found, given)


def session(info: context.Info) -> context.DesignSession:
    """Return the request's session. Operations on design data are executed only with one."""
    design_session = info.context.design
    if design_session is None:
        raise errors.DesignError("design data needs a user's token")
    return design_session


def loaders(info: context.Info) -> context.DesignLoaders:
    return session(info).loaders


async def user(info: context.Info) -> Record:
    """Return the caller. Raises DesignError for a user who is in no workspace."""
    user_id = session(info).user_id
    design_user = await loaders(info).one("DesUser", user_id)
    if design_user is None:
        raise errors.DesignError(f"the user {user_id} is in no workspace")
    return design_user


async def visible(info: context.Info, of: str, id_: str) -> Record | None:
    """Return the record of this GraphQL type with this id if the user may see it, or None."""
    record = await loaders(info).one(of, id_)
    if record is None or record.get("workspaceId", record["id"]) not in (await user(info))["workspaceIds"]:
        return None
    return record


async def require(info: context.Info, of: str, id_: str) -> Record:
    """Return the record with this id. Raises DesignError if the user cannot see it."""
    record = await visible(info, of, id_)
    if record is None:
        raise errors.DesignError(f"there is no {RESOURCES[of].noun} {id_}")
    return record


async def workspaces(_root: None, info: context.Info, where: dict[str, Any] | None = None) -> list[Record]:
    own = (await user(info))["workspaceIds"]
    found = [workspace for workspace in await loaders(info).all("DesWorkspace") if workspace["id"] in own]
    return pages.matching(found, where)


async def workspace_at(info: context.Info, url: str) -> Record | None:
    """Return the workspace with this URL if the user is in it, or None."""
    return next((each for each in await workspaces(None, info) if each["url"] == url.rstrip("/")), None)


async def require_workspace(info: context.Info, url: str) -> Record:
    """Return the workspace with this URL. Raises DesignError if the user is not in it."""
    workspace = await workspace_at(info, url)
    if workspace is None:
        raise errors.DesignError(f"there is no workspace {url}")
    return workspace


def payload_type(value: Record, _info: context.Info, _kind: object) -> str:
    return "DesComponent" if "id" in value else "DesErrorPayload"


def location(workspace: Record, info: context.Info) -> Record:
    origin = session(info).origin
    return {"name": workspace["region"], "apiServiceUrl": f"{origin}/graphql", "filesServiceUrl": origin}


async def locations(_root: None, info: context.Info) -> list[Record]:
    found = {each["region"]: location(each, info) for each in await workspaces(None, info)}
    return list(found.values())


async def users(_root: None, info: context.Info, ids: list[str], **given: Any) -> list[Record | None]:
    """Users of a workspace by id; null for a user who is not a member."""
    workspace = await require_workspace(info, given["workspaceUrl"])
    members = await loaders(info).where("DesUser", "workspaceIds", workspace["id"])
    members_by_id = {member["id"]: member for member in members}
    return [members_by_id.get(id_) for id_ in ids]


async def user_by_global_id(_root: None, info: context.Info, id: str) -> Record | None:
    """Return a user who shares a workspace with the caller."""
    other = await loaders(info).one("DesUser", id)
    own = set((await user(info))["workspaceIds"])
    return other if other is not None and own & set(other["workspaceIds"]) else None


async def user_groups(member: Record, info: context.Info) -> list[Record]:
    """Return the user's groups in all workspaces that both are in."""
    found = await workspaces(None, info)
    return [group for workspace in found for group in workspace["groups"] if group["id"] in member["groupIds"]]


async def library(_root: None, info: context.Info, **given: Any) -> Any:
    return (await require_workspace(info, given["workspaceUrl"]))["library"]


async def components_by_ids(_root: None, info: context.Info, ids: list[str]) -> list[Record]:
    """For each id, the component or an error."""
    found = await asyncio.gather(*(visible(info, "DesComponent", id_) for id_ in ids))
    missing = [{"message": f"there is no component {id_}"} for id_ in ids]
    return [component or error for component, error in zip(found, missing, strict=True)]


async def revision(_root: None, info: context.Info, id: str) -> Record | None:
    found = await loaders(info).where("DesComponent", "revisionId", id)
    return await visible(info, "DesComponent", found[0]["id"]) if found else None


async def thread(_root: None, info: context.Info, **given: Any) -> Record | None:
    found = await visible(info, "DesCommentThread", given["threadId"])
    return found if found is not None and found["projectId"] == given["projectId"] else None


async def packages(_root: None, info: context.Info) -> list[Record]:
    own = (await user(info))["workspaceIds"]
    jobs = await loaders(info).all("DesManufacturePackage")
    return [job for job in jobs if job["isPackage"] and job["workspaceId"] in own]


async def package(_root: None, info: context.Info, id: str) -> Record | None:
    job = await visible(info, "DesManufacturePackage", id)
    return job if job is not None and job["isPackage"] else None


def download_url(job: Record, info: context.Info) -> str:
    return f"{session(info).origin}{files.DOWNLOAD_PATH}?id={job['fileId']}"


async def comment_updates(_root: None, info: context.Info, input: dict[str, str]) -> AsyncIterator[Record]:
    """Comment events of a workspace from now on. The event stream is open when this returns."""
    workspace = await require_workspace(info, input["workspaceUrl"])
    stream = session(info).services.events()
    events = await stream.__aenter__()
    return _notifications(info, workspace["id"], events, stream)


async def _notifications(
    info: context.Info, workspace_id: str, events: AsyncIterator[Record], stream: Any
) -> AsyncIterator[Record]:
    try:
        async for event in events:
            if event["thread"]["workspaceId"] == workspace_id:
                yield await _notification(event, info)
    finally:
        await asyncio.shield(stream.__aexit__(None, None, None))


async def _notification(event: Record, info: context.Info) -> Record:
    about, comment = event["thread"], event["comment"]
    author = await loaders(info).one("DesUser", comment["modifiedById"])
    data = {
        "commentAuthor": author["userName"] if author else None,
        "commentDate": comment["modifiedAt"],
        "commentId": comment["commentId"],
        "commentText": comment["text"],
        "commentThreadId": about["id"],
        "documentId": about["context"]["documentId"],
        "documentName": about["documentName"],
        "projectId": about["projectId"],
        "threadDate": about["modifiedAt"],
        "threadStatus": str(about["status"]),
    }
    return {"action": event["action"], "data": data}


RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.desWorkspaceInfos": workspaces,
    "Query.desWorkspaces": workspaces,
    "Query.desWorkspaceByUrl": lambda _, info, **given: workspace_at(info, given["workspaceUrl"]),
    "Query.desWorkspaceLocations": locations,
    "Query.desTeam": lambda _, info, **given: require_workspace(info, given["workspaceUrl"]),
    "Query.desUsers": users,
    "Query.desUserByAuth": lambda _, info: user(info),
    "Query.desUserByGlobalId": user_by_global_id,
    "Query.desLibrary": library,
    "Query.desComponentsByIds": components_by_ids,
    "Query.desRevisionDetailsById": revision,
    "Query.desCommentThread": thread,
    "Query.desManufacturePackages": packages,
    "Query.desManufacturePackageById": package,
    "Query.desManufacturePackageCreationJob": package,
    "Query.desProjectExportJob": lambda _, info, **given: require(
        info, "DesProjectExportJob", given["projectExportJobId"]
    ),
    "DesWorkspaceInfo.location": location,
    "DesWorkspace.location": location,
    "DesUser.groups": user_groups,
    # Units of values are not read, and nothing draws boards: the picture does not exist.
    "DesComponentParameter.type": lambda _parameter, _: "TEXT",
    "DesProject.previewUrl": lambda project, _: f"{project['url']}/preview.png",
    "DesProject.latestRevision": lambda project, _: project["revisions"][0],
    "DesManufacturePackage.downloadUrl": download_url,
    "DesManufacturePackageCreationJob.payload": lambda job, _: {"errors": [], "packageId": job["id"]},
    "DesProjectExportJob.downloadUrl": download_url,
    "Subscription.desOnCommentUpdated": lambda event, _info, **_arguments: event,
}
SUBSCRIBERS = {"Subscription.desOnCommentUpdated": comment_updates}
