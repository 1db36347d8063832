"""Builds sample projects: sheets, bills of materials, releases, comment threads and tasks, from a template and catalog
parts.

Every part that is used becomes a component of the workspace's library.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nexar_sandbox.design import components, records, sample_workspaces, timestamps

BASE, LITE = "Base", "Lite"


@dataclass(frozen=True, slots=True)
class BuiltProject:
    """A project with its bills of materials, releases and design items."""

    project: records.Project
    boms: tuple[records.Bom, ...]
    releases: tuple[records.Release, ...]
    items: tuple[records.DesignItem, ...]


def build_project(
    template: sample_workspaces.ProjectTemplate,
    builder: components.ComponentBuilder,
    users: Sequence[records.DesignUser],
) -> BuiltProject:
    """The project of a template: its sheets and a board, two variants, two releases."""
    id_ = components.stable_id(builder.workspace.id, "project", template.name)
    sheets = [_sheet(id_, f"{name}.SchDoc") for name in template.sheets]
    placements = _placements(template, sheets, builder)
    variants = tuple(records.Variant(name=name, bom_id=components.stable_id(id_, "bom", name)) for name in (BASE, LITE))
    boms = _boms(id_, variants, placements, builder)
    releases = tuple(_release(id_, number, variants, builder) for number in (1, 2))
    # A release keeps its bills of materials, whatever the project becomes.
    published = (
        records.Bom(id=variant.bom_id, project_id=id_, variant_name=bom.variant_name, items=bom.items)
        for release in releases
        for variant, bom in zip(release.variants, boms, strict=True)
    )
    documents = (*sheets, _sheet(id_, f"{template.name}.PcbDoc", is_pcb=True))
    project = _project(template, builder, users, documents, variants)
    items = tuple(
        _item(id_, placement, designator, builder) for placement in placements for designator in placement.designators
    )
    return BuiltProject(project, (*boms, *published), releases, items)


@dataclass(frozen=True, slots=True)
class _Placement:
    sheet_id: str
    component: records.Component
    designators: tuple[str, ...]


def _sheet(project_id: str, name: str, *, is_pcb: bool = False) -> records.DesignDocument:
    return records.DesignDocument(
        document_id=components.stable_id(project_id, "document", name), document_name=name, is_pcb=is_pcb
    )


def _placements(
    template: sample_workspaces.ProjectTemplate,
    sheets: Sequence[records.DesignDocument],
    builder: components.ComponentBuilder,
) -> list[_Placement]:
    """Each part with its designators, which are numbered over all sheets."""
    numbers: Counter[str] = Counter()
    placements: list[_Placement] = []
    for sheet, name in zip(sheets, template.sheets, strict=True):
        for entry in sample_workspaces.SHEETS[name]:
            for component in builder.draw(entry.category, entry.parts):
                names = tuple(_designators(entry.prefix, builder.rng.randint(1, entry.pieces), numbers))
                placements.append(_Placement(sheet.document_id, component, names))
    return placements


def _designators(prefix: str, count: int, numbers: Counter[str]) -> Iterator[str]:
    for _ in range(count):
        numbers[prefix] += 1
        yield f"{prefix}{numbers[prefix]}"


def _boms(
    project_id: str,
    variants: Sequence[records.Variant],
    placements: Sequence[_Placement],
    builder: components.ComponentBuilder,
) -> tuple[records.Bom, ...]:
    """One bill of materials for each variant; a part on several sheets is one line. LITE omits and replaces some
    parts."""
    by_part: dict[str, list[_Placement]] = {}
    for placement in placements:
        by_part.setdefault(placement.component.id, []).append(placement)
    return tuple(
        records.Bom(
            id=variant.bom_id,
            project_id=project_id,
            variant_name=variant.name,
            items=tuple(_bom_item(same, builder, varied=variant.name == LITE) for same in by_part.values()),
        )
        for variant in variants
    )


def _bom_item(same: Sequence[_Placement], builder: components.ComponentBuilder, *, varied: bool) -> records.BomItem:
    component = same[0].component
    # One draw for both: 5 % of the lines are replaced, another 10 % are not fitted.
    change = builder.rng.random() if varied else 1.0
    alternate = builder.alternate_for(component) if change < 0.05 else None
    instances = tuple(
        records.BomItemInstance(
            designator=name,
            is_fitted=not 0.05 <= change < 0.15,
            alternate_component_id=alternate.id if alternate else None,
        )
        for placement in same
        for name in placement.designators
    )
    return records.BomItem(component_id=component.id, quantity=len(instances), instances=instances)


def _release(
    project_id: str, number: int, variants: Sequence[records.Variant], builder: components.ComponentBuilder
) -> records.Release:
    id_ = components.stable_id(project_id, "release", number)
    return records.Release(
        id=id_,
        project_id=project_id,
        release_id=f"R{number:03d}",
        description="Prototypes" if number == 1 else "First series",
        created_at=builder.past.ago(120 - 40 * number),
        variants=tuple(
            records.Variant(name=variant.name, bom_id=components.stable_id(id_, "bom", variant.name))
            for variant in variants
        ),
    )


def _project(
    template: sample_workspaces.ProjectTemplate,
    builder: components.ComponentBuilder,
    users: Sequence[records.DesignUser],
    documents: tuple[records.DesignDocument, ...],
    variants: tuple[records.Variant, ...],
) -> records.Project:
    workspace, rng = builder.workspace, builder.rng
    id_ = components.stable_id(workspace.id, "project", template.name)
    return records.Project(
        id=id_,
        project_id=components.stable_id(id_, "guid"),
        workspace_id=workspace.id,
        workspace_url=workspace.url,
        url=f"{workspace.url}/designs/{id_}",
        name=template.name,
        description=template.description,
        created_by_id=users[0].id,
        updated_by_id=rng.choice(users).id,
        created_at=builder.past.ago(400),
        updated_at=builder.past.ago(rng.randrange(1, 30)),
        parameters=(
            records.DesignParameter(name="Client", value=template.client),
            records.DesignParameter(name="Engineer", value=f"{users[0].first_name} {users[0].last_name}"),
            records.DesignParameter(name="Board revision", value=rng.choice("ABC")),
        ),
        revisions=tuple(
            _commit(id_, number, users, documents, builder) for number in range(len(sample_workspaces.COMMITS))
        ),
        documents=documents,
        variants=variants,
    )


def _commit(
    project_id: str,
    number: int,
    users: Sequence[records.DesignUser],
    documents: Sequence[records.DesignDocument],
    builder: components.ComponentBuilder,
) -> records.VcsRevision:
    """Commit `number`, counted from the latest."""
    return records.VcsRevision(
        revision_id=components.stable_id(project_id, "commit", number),
        message=sample_workspaces.COMMITS[number],
        author=builder.rng.choice(users).user_name,
        created_at=builder.past.ago(20 + 60 * number),
        files=tuple(records.FileChange(path=document.document_name) for document in documents[: number + 1]),
    )


def _item(
    project_id: str, placement: _Placement, designator: str, builder: components.ComponentBuilder
) -> records.DesignItem:
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
        rotation=float(builder.rng.choice((0, 90, 180, 270))),
        parameters=component.parameters,
    )


THREADS_PER_PROJECT = 3


def comment_threads(
    built_project: BuiltProject, users: Sequence[records.DesignUser], rng: random.Random, past: timestamps.PastTimes
) -> Iterator[records.CommentThread]:
    """A few comment threads, each about one design item."""
    project = built_project.project
    for number, item in enumerate(
        rng.sample(built_project.items, min(THREADS_PER_PROJECT, len(built_project.items))), 1
    ):
        id_ = components.stable_id(project.id, "thread", number)
        comments = tuple(_comment(id_, index, users, rng, past) for index in range(rng.randint(1, 3)))
        document = next(document for document in project.documents if document.document_id == item.sheet_id)
        yield records.CommentThread(
            id=id_,
            project_id=project.id,
            workspace_id=project.workspace_id,
            thread_number=number,
            status=rng.choice((0, 0, 1)),
            created_by_id=comments[0].created_by_id,
            modified_by_id=comments[-1].modified_by_id,
            created_at=comments[0].created_at,
            modified_at=comments[-1].modified_at,
            context=records.CommentContext(document_id=document.document_id, object_id=item.id),
            document_name=document.document_name,
            assigned_to_id=rng.choice(users).id,
            comments=comments,
        )


def _comment(
    thread_id: str, index: int, users: Sequence[records.DesignUser], rng: random.Random, past: timestamps.PastTimes
) -> records.Comment:
    author, when = rng.choice(users).id, past.ago(30 - 8 * index)
    return records.Comment(
        comment_id=components.stable_id(thread_id, "comment", index),
        text=rng.choice(sample_workspaces.COMMENTS),
        created_by_id=author,
        modified_by_id=author,
        created_at=when,
        modified_at=when,
    )


def tasks(
    workspace: records.Workspace,
    project: records.Project,
    users: Sequence[records.DesignUser],
    rng: random.Random,
    past: timestamps.PastTimes,
) -> Iterator[records.Task]:
    """The open tasks of a project."""
    for number, (name, description) in enumerate(sample_workspaces.TASKS, 1):
        author, when = rng.choice(users).id, past.ago(25)
        yield records.Task(
            id=components.stable_id(project.id, "task", number),
            workspace_id=workspace.id,
            ref_id=f"{''.join(word[0] for word in project.name.split())}-{number}",
            name=name,
            description=description,
            priority=rng.choice(("LOW", "MEDIUM", "HIGH")),
            status=rng.choice(("TO_DO", "TO_DO", "IN_PROGRESS", "RESOLVED")),
            assignee_id=rng.choice(users).id,
            created_by_id=author,
            modified_by_id=author,
            created_at=when,
            modified_at=when,
            project_id=project.id,
        )
