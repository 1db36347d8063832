"""The service of libraries: folders, components and their part choices."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from proxy.sandbox.design import boards, choices, drafts, records, rest
from proxy.sandbox.design.tables import Table


class Library(rest.Service):
    """Components are released new, and their part choices change."""

    name = "library"

    def tables(self) -> Mapping[str, Table[Any]]:
        """Folders and components."""
        data = self.held.data
        return {"folders": data.folders, "components": data.components}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """POST a component, PATCH its choices."""
        router.add_post("/components", self.release)
        router.add_patch("/components/{id}", self.choose)

    async def release(self, request: web.Request) -> web.Response:
        """A component in its first revision."""
        draft = await rest.body(request, drafts.Component)
        if not draft.name.strip():
            raise ValueError("a component needs a name")
        known = self.held.data.components
        if any(one.name == draft.name and one.workspace_id == draft.workspace_id for one in known):
            raise ValueError(f"there is a component {draft.name} already")
        id_, now = self.held.new_id("component"), self.held.now()
        made = records.Component(
            id=id_,
            workspace_id=draft.workspace_id,
            folder_id=self._folder(draft),
            item_internal_id=choices.ident(id_, "item"),
            revision_id=choices.ident(id_, "revision", 1),
            name=draft.name,
            comment=draft.comment,
            description=draft.description,
            footprint_name="",
            created_at=now,
            modified_at=now,
            is_managed=True,
            life_cycle_state=boards.state(draft.workspace_id, 0),
            parameters=draft.parameters,
        )
        return rest.reply(known.put(made), 201)

    async def choose(self, request: web.Request) -> web.Response:
        """Add part choices at the end, or remove some."""
        draft = await rest.body(request, drafts.Choices)
        known = self.held.data.components
        component: records.Component = rest.found(known, request.match_info["id"], "component")
        gone = None if draft.remove is None else {(one.company_name, one.part_number) for one in draft.remove}
        held = component.manufacturer_parts
        left = [one for one in held if gone is not None and (one.company_name, one.part_number) not in gone]
        for one in draft.add:
            if not any((here.company_name, here.part_number) == (one.company_name, one.part_number) for here in left):
                left.append(self._choice(one))
        ranked = tuple(replace(one, priority=place) for place, one in enumerate(left, 1))
        return rest.reply(known.put(replace(component, manufacturer_parts=ranked, modified_at=self.held.now())))

    def _choice(self, asked: drafts.PartChoice) -> records.ManufacturerPart:
        """The catalog's part; one that it does not have is listed without suppliers."""
        part = choices.find(self.held.catalog, asked.company_name, asked.part_number)
        if part is None:
            return records.ManufacturerPart(company_name=asked.company_name, part_number=asked.part_number, priority=0)
        return choices.choice(part, self.held.catalog, 0)

    def _folder(self, draft: drafts.Component) -> str | None:
        """The folder that is named, made if only its path is and there is none."""
        folders = self.held.data.folders
        if draft.folder_id is not None:
            return str(rest.found(folders, draft.folder_id, "folder").id)
        if draft.folder_path is None:
            return None
        for one in folders:
            if one.path == draft.folder_path and one.workspace_id == draft.workspace_id:
                return one.id
        now = self.held.now()
        made = records.Folder(
            id=self.held.new_id("folder"),
            workspace_id=draft.workspace_id,
            name=draft.folder_path.replace("/", "\\").rpartition("\\")[2],
            path=draft.folder_path,
            description="",
            folder_type="COMPONENT_LIBRARY",
            created_by_id=draft.by,
            updated_by_id=draft.by,
            created_at=now,
            updated_at=now,
        )
        return folders.put(made).id
