"""Builds the sample workspaces from their templates and parts of the catalog.

The order of the random draws decides about the data: the same seed and catalog give the same.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from nexar_sandbox.catalog import records as catalog_records
from nexar_sandbox.catalog import store
from nexar_sandbox.design import components, records, sample_workspaces, tables

DAY = 86_400
# Projects use the first parts of a category, which have the most offers.
PARTS_PER_CATEGORY = 200
THREADS_PER_PROJECT = 3
BASE, LITE = "Base", "Lite"


class _Placement(NamedTuple):
    sheet_id: str
    component: records.Record
    designators: tuple[str, ...]


class WorkspaceBuilder:
    """Builds one workspace into `data`. Every part that a project uses becomes a component of its library."""

    def __init__(
        self,
        sample: sample_workspaces.WorkspaceTemplate,
        data: tables.DesignTables,
        catalog: store.Catalog,
        seed: int,
        now: float,
    ) -> None:
        self._sample = sample
        self._data = data
        self._catalog = catalog
        self._seed = seed
        # A source for each workspace, so that a change of one leaves the others as they are.
        self._rng = random.Random(f"{seed}:{sample.slug}")  # noqa: S311 (sample data, not cryptography)
        self._now = now
        self._part_ids: dict[str, tuple[str, ...]] = {}
        self._components: dict[str, records.Record] = {}
        self._folders: dict[str, records.Record] = {}

    def build(self, *, is_default: bool) -> Iterator[None]:
        """Build the workspace; yields after each project."""
        self._workspace = self._data.put(self._build_workspace(is_default=is_default))
        self._users = [self._data.put(user) for user in self._build_users()]
        for template in self._sample.projects:
            self._build_project(template)
            yield
        self._data.put(self._build_definition())

    def _ago(self, days: int) -> str:
        return records.rfc3339(self._now - days * DAY - self._rng.randrange(DAY))

    def _build_workspace(self, *, is_default: bool) -> Any:
        id_ = components.stable_id(self._seed, "workspace", self._sample.slug)
        leader = components.stable_id(self._seed, "user", self._sample.slug, 0)
        return records.Workspace(
            id=id_,
            name=self._sample.name,
            url=f"https://{self._sample.slug}.365.example",
            auth_id=components.stable_id(id_, "auth"),
            description=self._sample.description,
            is_default=is_default,
            region=self._sample.region,
            groups=tuple(
                records.UserGroup(id=components.stable_id(id_, "group", name), name=name)
                for name in ("Engineers", "Administrators")
            ),
            library=records.Library(
                workspace_id=id_,
                name=f"{self._sample.name} Library",
                description=f"Components of {self._sample.name}",
                version="1.0",
                created_by_id=leader,
                updated_by_id=leader,
                created_at=self._ago(900),
                updated_at=self._ago(3),
            ),
        )

    def _build_users(self) -> Iterator[Any]:
        engineers, administrators = self._workspace.groups
        for number, (first, last) in enumerate(self._sample.users):
            yield records.User(
                id=components.stable_id(self._seed, "user", self._sample.slug, number),
                user_name=f"{first}.{last}".lower(),
                email=f"{first}.{last}@{self._sample.slug}.example".lower(),
                first_name=first,
                last_name=last,
                workspace_ids=(self._workspace.id,),
                group_ids=(engineers.id,) if number else (engineers.id, administrators.id),
            )

    def _build_definition(self) -> Any:
        return records.WorkflowDefinition(
            workflow_definition_id=components.stable_id(self._workspace.id, "workflow", "Part Request"),
            workspace_id=self._workspace.id,
            name="Part Request",
            workflow_type="PartRequest",
            created_at=self._ago(700),
            created_by=self._users[0].user_name,
            variables=(
                records.Parameter(name="Manufacturer", value=""),
                records.Parameter(name="Part number", value=""),
            ),
        )

    def _build_project(self, template: sample_workspaces.ProjectTemplate) -> None:
        """Build a project: its sheets and a board, two variants, two releases, comment threads and tasks."""
        id_ = components.stable_id(self._workspace.id, "project", template.name)
        sheets = [_document(id_, f"{name}.SchDoc") for name in template.sheets]
        placements = self._placements(template, sheets)
        variants = _variants(id_, id_)
        boms = [self._data.put(self._bom(variant, placements)) for variant in variants]
        for number in (1, 2):
            release = self._data.put(self._release(id_, number))
            # A release keeps its bills of materials, whatever the project becomes.
            for variant, bom in zip(release.variants, boms, strict=True):
                self._data.put(
                    records.Bom(id=variant.bom_id, project_id=id_, variant_name=bom.variant_name, items=bom.items)
                )
        documents = (*sheets, _document(id_, f"{template.name}.PcbDoc", is_pcb=True))
        project = self._data.put(self._project(template, id_, documents, variants))
        items = [
            self._data.put(self._item(id_, placement, designator))
            for placement in placements
            for designator in placement.designators
        ]
        about = self._rng.sample(items, min(THREADS_PER_PROJECT, len(items)))
        for number, item in enumerate(about, 1):
            self._data.put(self._thread(project, number, item))
        for number, (name, description) in enumerate(sample_workspaces.TASKS, 1):
            self._data.put(self._task(project, number, name, description))

    def _placements(
        self, template: sample_workspaces.ProjectTemplate, sheets: Sequence[records.Record]
    ) -> list[_Placement]:
        """Each part with its designators, which are numbered over all sheets."""
        numbers: Counter[str] = Counter()
        placements: list[_Placement] = []
        for sheet, name in zip(sheets, template.sheets, strict=True):
            for entry in sample_workspaces.SHEETS[name]:
                for component in self._draw(entry.category, entry.parts):
                    count = self._rng.randint(1, entry.pieces)
                    first = numbers[entry.prefix] + 1
                    numbers[entry.prefix] += count
                    designators = tuple(f"{entry.prefix}{number}" for number in range(first, first + count))
                    placements.append(_Placement(sheet.document_id, component, designators))
        return placements

    def _draw(self, category: str, count: int) -> list[records.Record]:
        """Up to `count` different components of the category whose path ends with `category`."""
        if category not in self._part_ids:
            self._part_ids[category] = self._category_part_ids(category)
        ids = self._part_ids[category]
        drawn = self._rng.sample(ids, min(count, len(ids)))
        parts = (self._catalog.part(id_) for id_ in drawn)
        return [self._component(part) for part in parts if part is not None]

    def _category_part_ids(self, category: str) -> tuple[str, ...]:
        candidates = (candidate for candidate in self._catalog.categories() if candidate.path.endswith(category))
        matching_category = next(candidates, None)
        if matching_category is None:
            return ()
        conditions = catalog_records.SearchConditions(filters=(("category_id", (matching_category.id,)),))
        return self._catalog.search("", conditions).page(0, PARTS_PER_CATEGORY)

    def _component(self, part: catalog_records.Part) -> records.Record:
        if part.id in self._components:
            return self._components[part.id]
        id_ = components.stable_id(self._workspace.id, "component", part.id)
        component = self._components[part.id] = self._data.put(
            records.Component(
                id=id_,
                workspace_id=self._workspace.id,
                folder_id=self._folder(part.category).id if part.category else None,
                item_internal_id=components.stable_id(id_, "item"),
                revision_id=components.stable_id(id_, "revision", 1),
                name=f"CMP-{len(self._components) + 1:05d}-1",
                comment=part.mpn,
                description=part.short_description,
                footprint_name=components.footprint(part),
                created_at=self._ago(self._rng.randrange(200, 800)),
                modified_at=self._ago(self._rng.randrange(1, 200)),
                is_managed=True,
                # Three in four are approved for production.
                life_cycle_state=components.life_cycle_state(self._workspace.id, self._rng.choice((0, 1, 1, 1))),
                parameters=components.parameters(part),
                manufacturer_parts=components.part_choices(part, self._catalog),
            )
        )
        return component

    def _folder(self, category: catalog_records.Category) -> records.Record:
        if category.path not in self._folders:
            created_at = self._ago(850)
            self._folders[category.path] = self._data.put(
                records.Folder(
                    id=components.stable_id(self._workspace.id, "folder", category.path),
                    workspace_id=self._workspace.id,
                    name=category.name,
                    path=f"Components\\{category.name}",
                    description=f"{category.name} in use at {self._workspace.name}",
                    folder_type="COMPONENT_LIBRARY",
                    created_by_id=self._users[0].id,
                    updated_by_id=self._users[0].id,
                    created_at=created_at,
                    updated_at=created_at,
                )
            )
        return self._folders[category.path]

    def _bom(self, variant: records.Record, placements: Sequence[_Placement]) -> Any:
        """Return the bill of materials of a variant; a part on several sheets is one line."""
        by_part: dict[str, list[_Placement]] = {}
        for placement in placements:
            by_part.setdefault(placement.component.id, []).append(placement)
        return records.Bom(
            id=variant.bom_id,
            project_id=variant.project_id,
            variant_name=variant.name,
            items=tuple(self._bom_item(same, varied=variant.name == LITE) for same in by_part.values()),
        )

    def _bom_item(self, same: Sequence[_Placement], *, varied: bool) -> Any:
        component = same[0].component
        # One draw for both: 5 % of the lines are replaced, another 10 % are not fitted.
        change = self._rng.random() if varied else 1.0
        alternate = self._alternate_for(component) if change < 0.05 else None
        instances = tuple(
            records.BomItemInstance(
                designator=name,
                is_fitted=not 0.05 <= change < 0.15,
                alternate_component_id=alternate.id if alternate else None,
            )
            for placement in same
            for name in placement.designators
        )
        return records.BomItem(component_id=component.id, quantity=len(instances), bom_item_instances=instances)

    def _alternate_for(self, component: records.Record) -> records.Record | None:
        """Another component of the same folder, or None."""
        siblings = [
            sibling
            for sibling in self._components.values()
            if sibling.folder_id == component.folder_id and sibling != component
        ]
        return self._rng.choice(siblings) if siblings else None

    def _release(self, project_id: str, number: int) -> Any:
        id_ = components.stable_id(project_id, "release", number)
        return records.Release(
            id=id_,
            project_id=project_id,
            release_id=f"R{number:03d}",
            description="Prototypes" if number == 1 else "First series",
            created_at=self._ago(120 - 40 * number),
            variants=_variants(project_id, id_),
        )

    def _project(
        self,
        template: sample_workspaces.ProjectTemplate,
        id_: str,
        documents: tuple[records.Record, ...],
        variants: tuple[records.Record, ...],
    ) -> Any:
        leader = self._users[0]
        return records.Project(
            id=id_,
            project_id=components.stable_id(id_, "guid"),
            workspace_id=self._workspace.id,
            workspace_url=self._workspace.url,
            url=f"{self._workspace.url}/designs/{id_}",
            name=template.name,
            description=template.description,
            created_by_id=leader.id,
            updated_by_id=self._rng.choice(self._users).id,
            created_at=self._ago(400),
            updated_at=self._ago(self._rng.randrange(1, 30)),
            parameters=(
                records.Parameter(name="Client", value=template.client),
                records.Parameter(name="Engineer", value=f"{leader.first_name} {leader.last_name}"),
                records.Parameter(name="Board revision", value=self._rng.choice("ABC")),
            ),
            # The latest first.
            revisions=tuple(
                records.VcsRevision(
                    revision_id=components.stable_id(id_, "commit", number),
                    message=message,
                    author=self._rng.choice(self._users).user_name,
                    created_at=self._ago(20 + 60 * number),
                    files=tuple(records.FileChange(path=each.document_name) for each in documents[: number + 1]),
                )
                for number, message in enumerate(sample_workspaces.COMMITS)
            ),
            documents=documents,
            variants=variants,
        )

    def _item(self, project_id: str, placement: _Placement, designator: str) -> Any:
        component = placement.component
        return records.DesignItem(
            id=components.stable_id(project_id, "item", designator),
            project_id=project_id,
            sheet_id=placement.sheet_id,
            designator=designator,
            component_id=component.id,
            comment=component.comment,
            description=component.description,
            footprint_name=component.footprint_name,
            rotation=float(self._rng.choice((0, 90, 180, 270))),
            parameters=component.parameters,
        )

    def _thread(self, project: records.Record, number: int, item: records.Record) -> Any:
        id_ = components.stable_id(project.id, "thread", number)
        comments = tuple(self._comment(id_, index) for index in range(self._rng.randint(1, 3)))
        document = next(each for each in project.documents if each.document_id == item.sheet_id)
        corner = records.Position2D(x=0, y=0)
        return records.CommentThread(
            id=id_,
            project_id=project.id,
            workspace_id=project.workspace_id,
            thread_number=number,
            status=self._rng.choice((0, 0, 1)),
            created_by_id=comments[0].created_by_id,
            modified_by_id=comments[-1].modified_by_id,
            created_at=comments[0].created_at,
            modified_at=comments[-1].modified_at,
            context=records.CommentContext(
                document_id=document.document_id,
                object_id=item.id,
                area=records.Rectangle(pos1=corner, pos2=corner),
            ),
            document_name=document.document_name,
            assigned_to_id=self._rng.choice(self._users).id,
            comments=comments,
        )

    def _comment(self, thread_id: str, index: int) -> Any:
        author = self._rng.choice(self._users).id
        when = self._ago(30 - 8 * index)
        return records.Comment(
            comment_id=components.stable_id(thread_id, "comment", index),
            text=self._rng.choice(sample_workspaces.COMMENTS),
            created_by_id=author,
            modified_by_id=author,
            created_at=when,
            modified_at=when,
        )

    def _task(self, project: records.Record, number: int, name: str, description: str) -> Any:
        author = self._rng.choice(self._users).id
        when = self._ago(25)
        return records.Task(
            id=components.stable_id(project.id, "task", number),
            workspace_id=self._workspace.id,
            ref_id=f"{''.join(word[0] for word in project.name.split())}-{number}",
            name=name,
            description=description,
            priority=self._rng.choice(("LOW", "MEDIUM", "HIGH")),
            status=self._rng.choice(("TO_DO", "TO_DO", "IN_PROGRESS", "RESOLVED")),
            assignee_id=self._rng.choice(self._users).id,
            created_by_id=author,
            modified_by_id=author,
            created_at=when,
            modified_at=when,
            project_id=project.id,
        )


def _document(project_id: str, name: str, *, is_pcb: bool = False) -> Any:
    id_ = components.stable_id(project_id, "document", name)
    return records.Document(project_id=project_id, document_id=id_, document_name=name, is_pcb=is_pcb)


def _variants(project_id: str, owner_id: str) -> tuple[Any, ...]:
    """Return the variants of a project or release, `owner_id`, each with its own bill of materials."""
    return tuple(
        records.Variant(project_id=project_id, name=name, bom_id=components.stable_id(owner_id, "bom", name))
        for name in (BASE, LITE)
    )
