"""Changes of libraries: components, their part choices, and folders."""

from msgspec.structs import replace

from nexar_sandbox.design import components, design_store, records, rest


def create_component(
    store: design_store.DesignStore,
    *,
    by: str,
    workspace_id: str,
    name: str,
    comment: str = "",
    description: str = "",
    folder_id: str | None = None,
    folder_path: str | None = None,
    parameters: tuple[dict[str, str], ...] = (),
) -> records.Record:
    """Create a component in its first revision, in the folder with this id or path."""
    if not name.strip():
        raise ValueError("a component needs a name")
    existing = store.tables[records.Component]
    if any(component.name == name and component.workspace_id == workspace_id for component in existing):
        raise ValueError(f"there is a component {name} already")
    id_, now = store.new_id("component"), store.now()
    if folder_id is None and folder_path is not None:
        folder_id = _folder(store, by, workspace_id, folder_path)
    return existing.put(
        records.Component(
            id=id_,
            workspace_id=workspace_id,
            folder_id=folder_id,
            item_internal_id=components.stable_id(id_, "item"),
            revision_id=components.stable_id(id_, "revision", 1),
            name=name,
            comment=comment,
            description=description,
            footprint_name="",
            created_at=now,
            modified_at=now,
            is_managed=True,
            life_cycle_state=components.life_cycle_state(workspace_id, 0),
            parameters=tuple(records.Parameter(**parameter) for parameter in parameters),
        )
    )


def _folder(store: design_store.DesignStore, by: str, workspace_id: str, path: str) -> str:
    """The id of the folder with this path, which is created if it is missing."""
    folders = store.tables[records.Folder]
    for folder in folders:
        if folder.path == path and folder.workspace_id == workspace_id:
            return str(folder.id)
    now = store.now()
    created = folders.put(
        records.Folder(
            id=store.new_id("folder"),
            workspace_id=workspace_id,
            name=path.replace("/", "\\").rpartition("\\")[2],
            path=path,
            description="",
            folder_type="COMPONENT_LIBRARY",
            created_by_id=by,
            updated_by_id=by,
            created_at=now,
            updated_at=now,
        )
    )
    return str(created.id)


def update_part_choices(
    store: design_store.DesignStore,
    *,
    id: str,
    add: tuple[dict[str, str], ...] = (),
    remove: tuple[dict[str, str], ...] | None = (),
) -> records.Record:
    """Add part choices (company_name, part_number) at the end, or remove some; `remove` None removes all."""
    existing = store.tables[records.Component]
    component = existing.find(id, "component")
    choices = {(choice.company_name, choice.part_number): choice for choice in component.manufacturer_parts}
    if remove is None:
        choices = {}
    for removed in remove or ():
        choices.pop((removed["company_name"], removed["part_number"]), None)
    for added in add:
        key = added["company_name"], added["part_number"]
        choices.setdefault(key, _choice(store, *key))
    ranked = tuple(replace(choice, priority=place) for place, choice in enumerate(choices.values(), 1))
    return existing.put(replace(component, manufacturer_parts=ranked, modified_at=store.now()))


def _choice(store: design_store.DesignStore, company: str, number: str) -> records.Record:
    """The part of the catalog as part choice; without suppliers if the catalog does not have it."""
    part = components.find_part(store.catalog, company, number)
    if part is not None:
        return components.part_choice(part, store.catalog, 0)
    choice: records.Record = records.ManufacturerPart(company_name=company, part_number=number, priority=0)
    return choice


CHANGES: rest.Changes = {"POST /components": create_component, "PATCH /components/{id}": update_part_choices}
