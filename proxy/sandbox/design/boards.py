"""Projects with sheets, bills of materials and releases, made of a blueprint and of the catalog's parts.

Used by seeding.py. Every part that is used becomes a component of the workspace's library.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from proxy.sandbox.catalog import records as catalogued
from proxy.sandbox.catalog import store
from proxy.sandbox.design import blueprints, choices, moments, records

# The best known parts of a category that a board may use.
KNOWN = 200
BASE, LITE = "Base", "Lite"


@dataclass(slots=True)
class Shelf:
    """The components of a workspace, taken from the catalog as boards need them. `folders` and `components` are by
    category path and by part id."""

    catalog: store.Catalog
    workspace: records.Workspace
    rng: random.Random
    past: moments.Past
    keeper_id: str
    folders: dict[str, records.Folder] = field(default_factory=dict)
    components: dict[str, records.Component] = field(default_factory=dict)
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def some(self, category: str, count: int) -> list[records.Component]:
        """Up to `count` different components of the category whose path ends so."""
        if category not in self._known:
            self._known[category] = self._ids(category)
        known = self._known[category]
        drawn = self.rng.sample(known, min(count, len(known)))
        parts = (self.catalog.part(id_) for id_ in drawn)
        return [self._component(part) for part in parts if part is not None]

    def other_than(self, component: records.Component) -> records.Component | None:
        """Another component of the same folder; None where there is none."""
        same = [one for one in self.components.values() if one.folder_id == component.folder_id and one != component]
        return self.rng.choice(same) if same else None

    def _ids(self, category: str) -> tuple[str, ...]:
        found = next((one for one in self.catalog.categories() if one.path.endswith(category)), None)
        if found is None:
            return ()
        conditions = catalogued.SearchConditions(filters=(("category_id", (found.id,)),))
        return self.catalog.search("", conditions).page(0, KNOWN)

    def _component(self, part: catalogued.Part) -> records.Component:
        known = self.components.get(part.id)
        if known is not None:
            return known
        number = len(self.components) + 1
        id_ = choices.ident(self.workspace.id, "component", part.id)
        made = self.components[part.id] = records.Component(
            id=id_,
            workspace_id=self.workspace.id,
            folder_id=self._folder(part.category).id if part.category else None,
            item_internal_id=choices.ident(id_, "item"),
            revision_id=choices.ident(id_, "revision", 1),
            name=f"CMP-{number:05d}-1",
            comment=part.mpn,
            description=part.short_description,
            footprint_name=choices.footprint(part),
            created_at=self.past.ago(self.rng.randrange(200, 800)),
            modified_at=self.past.ago(self.rng.randrange(1, 200)),
            is_managed=True,
            life_cycle_state=state(self.workspace.id, self.rng.choice((0, 1, 1, 1))),
            parameters=choices.parameters(part),
            manufacturer_parts=self._choices(part),
        )
        return made

    def _choices(self, part: catalogued.Part) -> tuple[records.ManufacturerPart, ...]:
        """The part itself, and the same number of other makers."""
        others = (self.catalog.part(id_) for id_ in part.similar_ids)
        parts = [part, *(one for one in others if one is not None and one.mpn == part.mpn)]
        return tuple(choices.choice(one, self.catalog, place) for place, one in enumerate(parts, 1))

    def _folder(self, category: catalogued.Category) -> records.Folder:
        if category.path not in self.folders:
            made = self.past.ago(850)
            self.folders[category.path] = records.Folder(
                id=choices.ident(self.workspace.id, "folder", category.path),
                workspace_id=self.workspace.id,
                name=category.name,
                path=f"Components\\{category.name}",
                description=f"{category.name} in use at {self.workspace.name}",
                folder_type="COMPONENT_LIBRARY",
                created_by_id=self.keeper_id,
                updated_by_id=self.keeper_id,
                created_at=made,
                updated_at=made,
            )
        return self.folders[category.path]


@dataclass(frozen=True, slots=True)
class Built:
    """A project and what belongs to it."""

    project: records.Project
    boms: tuple[records.Bom, ...]
    releases: tuple[records.Release, ...]
    items: tuple[records.DesignItem, ...]


def state(workspace_id: str, index: int) -> records.LifeCycleState:
    """A life cycle state by its place in blueprints.STATES."""
    name, description, allowed = blueprints.STATES[index]
    return records.LifeCycleState(
        life_cycle_state_id=choices.ident(workspace_id, "state", name),
        name=name,
        description=description,
        state_index=index,
        is_allowed_in_design=allowed,
    )


def build(board: blueprints.Board, shelf: Shelf, people: Sequence[records.User]) -> Built:
    """The project of a blueprint: one sheet a block, two variants, two releases."""
    id_ = choices.ident(shelf.workspace.id, "project", board.name)
    sheets = [_sheet(id_, f"{name}.SchDoc") for name in board.sheets]
    lines = _lines(board, sheets, shelf)
    variants = tuple(records.Variant(name=one, bom_id=choices.ident(id_, "bom", one)) for one in (BASE, LITE))
    boms = _boms(id_, variants, lines, shelf)
    releases = tuple(_release(id_, number, variants, shelf) for number in (1, 2))
    published = (
        records.Bom(id=variant.bom_id, project_id=id_, variant_name=bom.variant_name, items=bom.items)
        for release in releases
        for variant, bom in zip(release.variants, boms, strict=True)
    )
    documents = (*sheets, _sheet(id_, f"{board.name}.PcbDoc", is_pcb=True))
    project = _project(board, shelf, people, documents, variants)
    items = tuple(_item(id_, line, designator, shelf) for line in lines for designator in line.designators)
    return Built(project, (*boms, *published), releases, items)


@dataclass(frozen=True, slots=True)
class _Line:
    sheet_id: str
    component: records.Component
    designators: tuple[str, ...]


def _sheet(project_id: str, name: str, *, is_pcb: bool = False) -> records.Document:
    return records.Document(document_id=choices.ident(project_id, "document", name), document_name=name, is_pcb=is_pcb)


def _lines(board: blueprints.Board, sheets: Sequence[records.Document], shelf: Shelf) -> list[_Line]:
    """Each part with its designators, numbered through over all sheets."""
    numbers: Counter[str] = Counter()
    drawn: list[_Line] = []
    for sheet, name in zip(sheets, board.sheets, strict=True):
        for asked in blueprints.SHEETS[name]:
            for component in shelf.some(asked.category, asked.parts):
                names = tuple(_designators(asked.prefix, shelf.rng.randint(1, asked.pieces), numbers))
                drawn.append(_Line(sheet.document_id, component, names))
    return drawn


def _designators(prefix: str, count: int, numbers: Counter[str]) -> Iterator[str]:
    for _ in range(count):
        numbers[prefix] += 1
        yield f"{prefix}{numbers[prefix]}"


def _boms(
    project_id: str, variants: Sequence[records.Variant], lines: Sequence[_Line], shelf: Shelf
) -> tuple[records.Bom, ...]:
    """One a variant: a part on several sheets is one line. LITE leaves some out and replaces some."""
    by_part: dict[str, list[_Line]] = {}
    for line in lines:
        by_part.setdefault(line.component.id, []).append(line)
    return tuple(
        records.Bom(
            id=variant.bom_id,
            project_id=project_id,
            variant_name=variant.name,
            items=tuple(_bom_item(same, shelf, varied=variant.name == LITE) for same in by_part.values()),
        )
        for variant in variants
    )


def _bom_item(same: Sequence[_Line], shelf: Shelf, *, varied: bool) -> records.BomItem:
    component = same[0].component
    change = shelf.rng.random() if varied else 1.0
    other = shelf.other_than(component) if change < 0.05 else None
    instances = tuple(
        records.BomItemInstance(
            designator=name, is_fitted=not 0.05 <= change < 0.15, alternate_component_id=other.id if other else None
        )
        for line in same
        for name in line.designators
    )
    return records.BomItem(component_id=component.id, quantity=len(instances), instances=instances)


def _release(project_id: str, number: int, variants: Sequence[records.Variant], shelf: Shelf) -> records.Release:
    id_ = choices.ident(project_id, "release", number)
    return records.Release(
        id=id_,
        project_id=project_id,
        release_id=f"R{number:03d}",
        description="Prototypes" if number == 1 else "First series",
        created_at=shelf.past.ago(120 - 40 * number),
        variants=tuple(records.Variant(name=one.name, bom_id=choices.ident(id_, "bom", one.name)) for one in variants),
    )


def _project(
    board: blueprints.Board,
    shelf: Shelf,
    people: Sequence[records.User],
    documents: tuple[records.Document, ...],
    variants: tuple[records.Variant, ...],
) -> records.Project:
    workspace, rng = shelf.workspace, shelf.rng
    id_ = choices.ident(workspace.id, "project", board.name)
    return records.Project(
        id=id_,
        project_id=choices.ident(id_, "guid"),
        workspace_id=workspace.id,
        workspace_url=workspace.url,
        url=f"{workspace.url}/designs/{id_}",
        name=board.name,
        description=board.description,
        created_by_id=people[0].id,
        updated_by_id=rng.choice(people).id,
        created_at=shelf.past.ago(400),
        updated_at=shelf.past.ago(rng.randrange(1, 30)),
        parameters=(
            records.Named(name="Client", value=board.client),
            records.Named(name="Engineer", value=f"{people[0].first_name} {people[0].last_name}"),
            records.Named(name="Board revision", value=rng.choice("ABC")),
        ),
        revisions=tuple(_commit(id_, number, people, documents, shelf) for number in range(len(blueprints.COMMITS))),
        documents=documents,
        variants=variants,
    )


def _commit(
    project_id: str, number: int, people: Sequence[records.User], documents: Sequence[records.Document], shelf: Shelf
) -> records.VcsRevision:
    """The latest is the first."""
    return records.VcsRevision(
        revision_id=choices.ident(project_id, "commit", number),
        message=blueprints.COMMITS[number],
        author=shelf.rng.choice(people).user_name,
        created_at=shelf.past.ago(20 + 60 * number),
        files=tuple(records.FileChange(path=one.document_name) for one in documents[: number + 1]),
    )


def _item(project_id: str, line: _Line, designator: str, shelf: Shelf) -> records.DesignItem:
    component = line.component
    return records.DesignItem(
        id=choices.ident(project_id, "item", designator),
        project_id=project_id,
        sheet_id=line.sheet_id,
        designator=designator,
        component_id=component.id,
        comment=component.comment,
        description=component.description,
        footprint_name=component.footprint_name,
        rotation=float(shelf.rng.choice((0, 90, 180, 270))),
        parameters=component.parameters,
    )
