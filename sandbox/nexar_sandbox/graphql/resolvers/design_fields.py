"""Resolvers of design data that follow from the schema (contract graphql.md §5): fields whose type is a record with a
table, lists and pages, and queries by id, workspace or project.

A list is read from the record itself, or from the table of its type by the id in RELATIONS. SELECTED has what else
decides about an item; then the arguments `where`, `names` and those of a page apply. What does not follow from the
schema is in design_queries.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import graphql

from nexar_sandbox.design import records
from nexar_sandbox.graphql import context, design_filters, errors
from nexar_sandbox.graphql.resolvers import design_access as access

# By type: the field of other tables that has the id of a record of this type, and where the record has that id.
RELATIONS = {
    "DesWorkspace": ("workspace_id", "id"),
    "DesTeam": ("workspace_ids", "id"),
    "DesLibrary": ("workspace_id", "workspace_id"),
    "DesProject": ("project_id", "id"),
    "DesDesign": ("project_id", "id"),
    "DesRelease": ("project_id", "project_id"),
    "DesPcb": ("project_id", "project_id"),
    "DesSchematic": ("project_id", "project_id"),
    "DesDesignItem": ("project_id", "project_id"),
}


def _has_variable(workflow: records.Record, variable_filter: Mapping[str, Any] | None) -> bool:
    """Return true if a variable, of this name if one is given, begins with one of the texts; True for no condition."""
    if variable_filter is None:
        return True
    beginnings = tuple(variable_filter["valueMatchesOneOf"])
    named = (variable for variable in workflow.variables if variable_filter.get("name") in (None, variable.name))
    return any(variable.value.startswith(beginnings) for variable in named)


def _is_selected_workflow(_project: records.Record, workflow: records.Record, arguments: Mapping[str, Any]) -> bool:
    """Select running workflows, or closed ones."""
    after = arguments.get("modifiedAfter")
    return (
        (workflow.ended_at is not None) == arguments["isClosed"]
        and (after is None or design_filters.is_later(workflow.modified_at, after))
        and _has_variable(workflow, arguments.get("withVariable"))
    )


def _is_about_document(document: records.Record, thread: records.Record, _arguments: Mapping[str, Any]) -> bool:
    return bool(thread.context.document_id == document.document_id)


Selection = Callable[[records.Record, records.Record, Mapping[str, Any]], bool]
# Whether an item is in the list of a record; the third argument are the field's arguments.
SELECTED: dict[str, Selection] = {
    "DesWorkspace.workflows": lambda _, workflow, given: _has_variable(workflow, given.get("withVariable")),
    "DesProject.workflows": _is_selected_workflow,
    "DesRelease.manufacturePackages": lambda _release, job, _given: bool(job.is_package),
    # A board has the items of all sheets.
    "DesPcb.designItems": lambda _, item, given: (
        given.get("designators") is None or item.designator in given["designators"]
    ),
    "DesPcb.commentThreads": _is_about_document,
    "DesSchematic.designItems": lambda document, item, _: bool(item.sheet_id == document.document_id),
    "DesSchematic.commentThreads": _is_about_document,
    "DesDesignItem.commentThreads": lambda item, thread, _: bool(thread.context.object_id == item.id),
}


def resolvers(schema: graphql.GraphQLSchema) -> dict[tuple[str, str], graphql.GraphQLFieldResolver]:
    """Return the resolvers by type and field. A field that has none is read from the record."""
    found: dict[tuple[str, str], graphql.GraphQLFieldResolver] = {}
    for type_name in records.KINDS:
        kind = schema.type_map[type_name]
        for name, field in kind.fields.items() if isinstance(kind, graphql.GraphQLObjectType) else ():
            resolver = _field_resolver(type_name, name, field)
            if resolver is not None:
                found[type_name, name] = resolver
    for name, field in schema.query_type.fields.items() if schema.query_type else ():
        if name.startswith("des") and (resolver := _query_resolver(field)) is not None:
            found["Query", name] = resolver
    return found


def _field_resolver(type_name: str, name: str, field: graphql.GraphQLField) -> graphql.GraphQLFieldResolver | None:
    target, is_list = _target(field)
    kind = records.KINDS.get(target)
    place = f"{type_name}.{name}"
    if kind is None:
        return None
    if is_list:
        attribute = records.ALIASES.get(place) or records.snake_case(name)
        if attribute in records.KINDS[type_name].record.__struct_fields__:
            return _stored_list(attribute, field, target) if field.args else None
        return _related_list(place, field, target) if type_name in RELATIONS else None
    if kind is records.KINDS[type_name] and target != type_name:
        return lambda record, _: record  # another view of the same record
    return _reference(target, f"{records.snake_case(name)}_id") if kind.table else None


def _query_resolver(field: graphql.GraphQLField) -> graphql.GraphQLFieldResolver | None:
    target, is_list = _target(field)
    if set(field.args) == {"id"} and target in records.KINDS:
        return _by_id(target)
    if is_list and "workspaceUrl" in field.args:
        return _list_in("workspace", field, target)
    if is_list and "projectId" in field.args:
        return _list_in("project", field, target)
    return None


def _target(field: graphql.GraphQLField) -> tuple[str, bool]:
    """Return the type of a field, or of the items of its list or page; and whether it is one of those."""
    name = graphql.get_named_type(field.type).name
    return name.removesuffix("Connection"), name.endswith("Connection") or graphql.is_list_type(
        graphql.get_nullable_type(field.type)
    )


def _reference(target: str, attribute: str) -> graphql.GraphQLFieldResolver:
    read = attrgetter(attribute)

    async def resolve(record: records.Record, info: context.Info) -> records.Record | None:
        id_ = read(record)
        return None if id_ is None else await access.loaders(info).one(target, id_)

    return resolve


def _stored_list(attribute: str, field: graphql.GraphQLField, target: str) -> graphql.GraphQLFieldResolver:
    read = attrgetter(attribute)

    def resolve(record: records.Record, _info: context.Info, **arguments: Any) -> Any:
        names = arguments.get("names")
        items = [item for item in read(record) if names is None or item.name in names]
        return _page(items, field, target, arguments)

    return resolve


def _related_list(place: str, field: graphql.GraphQLField, target: str) -> graphql.GraphQLFieldResolver:
    foreign, own = RELATIONS[place.partition(".")[0]]
    is_selected = SELECTED.get(place)

    async def resolve(record: records.Record, info: context.Info, **arguments: Any) -> Any:
        items = await access.loaders(info).where(target, foreign, getattr(record, own))
        if is_selected is not None:
            items = [item for item in items if is_selected(record, item, arguments)]
        return _page(items, field, target, arguments)

    return resolve


def _by_id(target: str) -> graphql.GraphQLFieldResolver:
    async def resolve(_root: None, info: context.Info, id: str) -> records.Record | None:
        return await access.visible(info, target, id)

    return resolve


def _list_in(place: str, field: graphql.GraphQLField, target: str) -> graphql.GraphQLFieldResolver:
    """Return the resolver of a list of a workspace or project, as `place` says."""

    async def resolve(_root: None, info: context.Info, **arguments: Any) -> Any:
        if place == "workspace":
            owner = await access.require_workspace(info, arguments["workspaceUrl"])
        else:
            owner = await access.require(info, "DesProject", arguments["projectId"], "project")
        items = await access.loaders(info).where(target, f"{place}_id", owner.id)
        return _page(items, field, target, arguments)

    return resolve


def _page(
    items: Sequence[records.Record], field: graphql.GraphQLField, target: str, arguments: Mapping[str, Any]
) -> Any:
    """Return the page that the arguments select of the items that match; all of these if the field has no pages."""
    matching = design_filters.matching_records(items, arguments.get("where"))
    if "first" not in field.args:
        return matching
    return page(matching, arguments, attrgetter(records.KINDS[target].key))


# Items of a page (contract graphql.md §5.3). The contract has no sizes: the default is that of Hot Chocolate, the
# maximum our choice, because clients ask for 200.
DEFAULT_SIZE = 10
MAX_SIZE = 1000


class PageInfo(NamedTuple):
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


class Edge(NamedTuple):
    cursor: str
    node: Any


class Connection(NamedTuple):
    page_info: PageInfo
    edges: list[Edge]
    nodes: list[Any]
    total_count: int


def page(items: Sequence[Any], arguments: Mapping[str, Any], key: Callable[[Any], str]) -> Connection:
    """Return the page selected by `first`, `after`, `last` and `before` in `arguments`. A cursor has the `key` and
    index of an item, so that it stays valid when items are added or removed, even its own. Raises DesignError."""
    start, end = _bounds(items, arguments, key)
    first, last = (_size(name, arguments.get(name)) for name in ("first", "last"))
    if first is None and last is None:
        first = DEFAULT_SIZE
    if first is not None:
        end = min(end, start + first)
    if last is not None:
        start = max(start, end - last)
    edges = [Edge(_cursor(index, key(items[index])), items[index]) for index in range(start, end)]
    info = PageInfo(
        end < len(items), start > 0, edges[0].cursor if edges else None, edges[-1].cursor if edges else None
    )
    return Connection(info, edges, [edge.node for edge in edges], len(items))


def _bounds(items: Sequence[Any], arguments: Mapping[str, Any], key: Callable[[Any], str]) -> tuple[int, int]:
    start, end = 0, len(items)
    if arguments.get("after") is not None:
        index, present = _position(items, arguments["after"], key)
        start = min(index + present, len(items))
    if arguments.get("before") is not None:
        end = max(start, _position(items, arguments["before"], key)[0])
    return start, end


def _size(name: str, value: int | None) -> int | None:
    if value is not None and value < 0:
        raise errors.DesignError(f"{name} must not be negative, it is {value}")
    if value is not None and value > MAX_SIZE:
        raise errors.DesignError("The maximum allowed items per page were exceeded.")
    return value


def _cursor(index: int, key: str) -> str:
    return base64.urlsafe_b64encode(f"{index}:{key}".encode()).decode().rstrip("=")


def _position(items: Sequence[Any], cursor: str, key: Callable[[Any], str]) -> tuple[int, bool]:
    """Return the index of the cursor's item and True; its former index and False if it was removed."""
    try:
        index, _, item_key = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(":")
        former = int(index)
    except (binascii.Error, ValueError):
        raise errors.DesignError(f"the cursor {cursor!r} is not valid") from None
    position = next((index for index, item in enumerate(items) if key(item) == item_key), None)
    return (min(max(former, 0), len(items)), False) if position is None else (position, True)
