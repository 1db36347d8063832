"""Changes of libraries: components, their part choices, and folders."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from nexar_sandbox.design import components, design_store, records, rest


def create_component(
    store: design_store.DesignStore,
    *,
    by: str,
    workspace_id: str,
    name: str,
    folder_id: str | None,
    folder_path: str | None,
    **fields: Any,
) -> records.Record:
    """Create a component in its first revision, in the folder with this id or path."""
    if not name.strip():
        raise ValueError("a component needs a name")
    existing = store.tables[records.Component]
    if any(component.name == name and component.workspace_id == workspace_id for component in existing):
        raise ValueError(f"there is a component {name} already")
    id_ = store.new_id("component")
    if folder_id is None and folder_path is not None:
        folder_id = _folder(store, by, workspace_id, folder_path)
    return store.create(
        records.Component,
        by,
        id=id_,
        workspace_id=workspace_id,
        folder_id=folder_id,
        item_internal_id=components.stable_id(id_, "item"),
        revision_id=components.stable_id(id_, "revision", 1),
        name=name,
        footprint_name="",
        is_managed=True,
        life_cycle_state=components.life_cycle_state(workspace_id, 0),
        **fields,
    )


def _folder(store: design_store.DesignStore, by: str, workspace_id: str, path: str) -> str:
    """Return the id of the folder with this path, which is created if it is missing."""
    for folder in store.tables[records.Folder]:
        if folder.path == path and folder.workspace_id == workspace_id:
            return str(folder.id)
    created = store.create(
        records.Folder,
        by,
        id=store.new_id("folder"),
        workspace_id=workspace_id,
        name=path.replace("/", "\\").rpartition("\\")[2],
        path=path,
        description="",
        folder_type="COMPONENT_LIBRARY",
    )
    return str(created.id)


def update_part_choices(
    store: design_store.DesignStore,
    *,
    by: str,
    id: str,
    add: Sequence[dict[str, str]] = (),
    remove: Sequence[dict[str, str]] | None = (),
) -> records.Record:
    """Add part choices (company_name, part_number) at the end, or remove some; `remove` None removes all."""
    component = store.tables[records.Component].find(id, "component")
    choices = {(choice.company_name, choice.part_number): choice for choice in component.manufacturer_parts}
    if remove is None:
        choices = {}
    for removed in remove or ():
        choices.pop((removed["company_name"], removed["part_number"]), None)
    for added in add:
        key = added["company_name"], added["part_number"]
        choices.setdefault(key, _choice(store, *key))
    ranked = tuple(replace(choice, priority=place) for place, choice in enumerate(choices.values(), 1))
    return store.update(component, by, manufacturer_parts=ranked)


def _choice(store: design_store.DesignStore, company: str, number: str) -> Any:
    """Return the part of the catalog as part choice; without suppliers if the catalog does not have it."""
    part = components.find_part(store.catalog, company, number)
    if part is not None:
        return components.part_choice(part, store.catalog, 0)
    return records.ManufacturerPart(company_name=company, part_number=number, priority=0)


CHANGES: rest.Changes = {"POST /components": create_component, "PATCH /components/{id}": update_part_choices}
