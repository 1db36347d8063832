"""The service of libraries: folders, components and their part choices."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from proxy.sandbox.design import components, inputs, records, rest, tables


class LibraryService(rest.DesignService):
    """Folders and components; components can be created and their part choices changed."""

    name = "library"

    def served_tables(self) -> Mapping[str, tables.Table[Any]]:
        """Folders and components."""
        data = self.store.tables
        return {"folders": data.folders, "components": data.components}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes: POST a component, PATCH its part choices."""
        router.add_post("/components", self.create_component)
        router.add_patch("/components/{id}", self.update_part_choices)

    async def create_component(self, request: web.Request) -> web.Response:
        """Create a component in its first revision."""
        input_ = await rest.read_input(request, inputs.ComponentInput)
        if not input_.name.strip():
            raise ValueError("a component needs a name")
        existing = self.store.tables.components
        if any(one.name == input_.name and one.workspace_id == input_.workspace_id for one in existing):
            raise ValueError(f"there is a component {input_.name} already")
        id_, now = self.store.new_id("component"), self.store.now()
        component = records.Component(
            id=id_,
            workspace_id=input_.workspace_id,
            folder_id=self._folder(input_),
            item_internal_id=components.stable_id(id_, "item"),
            revision_id=components.stable_id(id_, "revision", 1),
            name=input_.name,
            comment=input_.comment,
            description=input_.description,
            footprint_name="",
            created_at=now,
            modified_at=now,
            is_managed=True,
            life_cycle_state=components.life_cycle_state(input_.workspace_id, 0),
            parameters=input_.parameters,
        )
        return rest.json_response(existing.put(component), 201)

    async def update_part_choices(self, request: web.Request) -> web.Response:
        """Add part choices at the end, or remove some."""
        input_ = await rest.read_input(request, inputs.PartChoicesInput)
        existing = self.store.tables.components
        component: records.Component = rest.find_record(existing, request.match_info["id"], "component")
        removed = None if input_.remove is None else {(one.company_name, one.part_number) for one in input_.remove}
        present = component.manufacturer_parts
        remaining = [
            one for one in present if removed is not None and (one.company_name, one.part_number) not in removed
        ]
        for one in input_.add:
            if not any(
                (other.company_name, other.part_number) == (one.company_name, one.part_number) for other in remaining
            ):
                remaining.append(self._choice(one))
        ranked = tuple(replace(one, priority=place) for place, one in enumerate(remaining, 1))
        return rest.json_response(
            existing.put(replace(component, manufacturer_parts=ranked, modified_at=self.store.now()))
        )

    def _choice(self, choice: inputs.PartChoiceInput) -> records.ManufacturerPart:
        """The part of the catalog as part choice; without suppliers if the catalog does not have it."""
        part = components.find_part(self.store.catalog, choice.company_name, choice.part_number)
        if part is None:
            return records.ManufacturerPart(
                company_name=choice.company_name, part_number=choice.part_number, priority=0
            )
        return components.part_choice(part, self.store.catalog, 0)

    def _folder(self, input_: inputs.ComponentInput) -> str | None:
        """The id of the given folder; a missing path is created."""
        folders = self.store.tables.folders
        if input_.folder_id is not None:
            return str(rest.find_record(folders, input_.folder_id, "folder").id)
        if input_.folder_path is None:
            return None
        for one in folders:
            if one.path == input_.folder_path and one.workspace_id == input_.workspace_id:
                return one.id
        now = self.store.now()
        folder = records.Folder(
            id=self.store.new_id("folder"),
            workspace_id=input_.workspace_id,
            name=input_.folder_path.replace("/", "\\").rpartition("\\")[2],
            path=input_.folder_path,
            description="",
            folder_type="COMPONENT_LIBRARY",
            created_by_id=input_.by,
            updated_by_id=input_.by,
            created_at=now,
            updated_at=now,
        )
        return folders.put(folder).id
