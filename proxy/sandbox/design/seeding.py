"""What a sandbox's design services hold at the start: the companies of blueprints.py, built of the catalog's parts.

The same seed and catalog give the same data. Times lie before the moment that is handed in.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields

from proxy.sandbox.catalog import store
from proxy.sandbox.design import blueprints, boards, choices, moments, records, talk
from proxy.sandbox.design.tables import Table
from proxy.sandbox.state import store as state

Members = Callable[[], Sequence[records.User]]


@dataclass(slots=True)
class Data:
    """All tables. The services change them; nobody else does."""

    workspaces: Table[records.Workspace] = field(default_factory=lambda: Table(records.Workspace))
    users: Table[records.User] = field(default_factory=lambda: Table(records.User))
    folders: Table[records.Folder] = field(default_factory=lambda: Table(records.Folder))
    components: Table[records.Component] = field(default_factory=lambda: Table(records.Component))
    projects: Table[records.Project] = field(default_factory=lambda: Table(records.Project))
    boms: Table[records.Bom] = field(default_factory=lambda: Table(records.Bom))
    releases: Table[records.Release] = field(default_factory=lambda: Table(records.Release))
    items: Table[records.DesignItem] = field(default_factory=lambda: Table(records.DesignItem))
    jobs: Table[records.Job] = field(default_factory=lambda: Table(records.Job))
    definitions: Table[records.WorkflowDefinition] = field(
        default_factory=lambda: Table(records.WorkflowDefinition, key="workflow_definition_id")
    )
    workflows: Table[records.Workflow] = field(
        default_factory=lambda: Table(records.Workflow, key="workflow_id"),
    )
    threads: Table[records.Thread] = field(default_factory=lambda: Table(records.Thread))
    tasks: Table[records.Task] = field(default_factory=lambda: Table(records.Task))


def opened(kept: state.StateStore) -> Data:
    """What is kept; nothing, where nobody has filled it."""
    empty = Data()
    tables = {each.name: getattr(empty, each.name) for each in fields(empty)}
    return Data(**{name: table.on(kept.rows(f"design_{name}", table.kind)) for name, table in tables.items()})


def copied(data: Data, into: Data) -> None:
    """Put all records of one into the other."""
    for each in fields(data):
        for row in getattr(data, each.name):
            getattr(into, each.name).put(row)


def seeded(data: Data, catalog: store.Catalog, seed: int, now: float) -> Iterator[None]:
    """Fill `data` with both companies and everything that they have. Every board takes its time: after each whoever
    wants this may let others in."""
    for number, company in enumerate(blueprints.COMPANIES):
        rng = random.Random(f"{seed}:{company.slug}")  # noqa: S311 (data for a stage, not for a lock)
        past = moments.Past(now, rng)
        workspace = _workspace(company, seed, past, is_default=number == 0)
        data.workspaces.put(workspace)
        people = _people(company, workspace, seed)
        for person in people:
            data.users.put(person)
        shelf = boards.Shelf(catalog, workspace, rng, past, people[0].id)
        for board in company.boards:
            built = boards.build(board, shelf, people)
            _put(data, built)
            for thread in talk.threads(built, people, rng, past):
                data.threads.put(thread)
            for task in talk.tasks(workspace, built.project, people, rng, past):
                data.tasks.put(task)
            yield
        for folder in shelf.folders.values():
            data.folders.put(folder)
        for component in shelf.components.values():
            data.components.put(component)
        data.definitions.put(_definition(workspace, people[0], past))


def _put(data: Data, built: boards.Built) -> None:
    data.projects.put(built.project)
    for bom in built.boms:
        data.boms.put(bom)
    for release in built.releases:
        data.releases.put(release)
    for item in built.items:
        data.items.put(item)


def _workspace(company: blueprints.Company, seed: int, past: moments.Past, *, is_default: bool) -> records.Workspace:
    id_ = choices.ident(seed, "workspace", company.slug)
    leader = choices.ident(seed, "user", company.slug, 0)
    library = records.Library(
        workspace_id=id_,
        name=f"{company.name} Library",
        description=f"Components of {company.name}",
        version="1.0",
        created_by_id=leader,
        updated_by_id=leader,
        created_at=past.ago(900),
        updated_at=past.ago(3),
    )
    groups = (
        records.Group(id=choices.ident(id_, "group", "Engineers"), name="Engineers"),
        records.Group(id=choices.ident(id_, "group", "Administrators"), name="Administrators"),
    )
    return records.Workspace(
        id=id_,
        name=company.name,
        url=f"https://{company.slug}.365.example",
        auth_id=choices.ident(id_, "auth"),
        description=company.description,
        is_default=is_default,
        region=company.region,
        groups=groups,
        library=library,
    )


def _people(company: blueprints.Company, workspace: records.Workspace, seed: int) -> tuple[records.User, ...]:
    engineers, administrators = workspace.groups
    return tuple(
        records.User(
            id=choices.ident(seed, "user", company.slug, number),
            user_name=f"{first}.{last}".lower(),
            email=f"{first}.{last}@{company.slug}.example".lower(),
            first_name=first,
            last_name=last,
            workspace_ids=(workspace.id,),
            group_ids=(engineers.id,) if number else (engineers.id, administrators.id),
        )
        for number, (first, last) in enumerate(company.people)
    )


def _definition(workspace: records.Workspace, leader: records.User, past: moments.Past) -> records.WorkflowDefinition:
    return records.WorkflowDefinition(
        workflow_definition_id=choices.ident(workspace.id, "workflow", "Part Request"),
        workspace_id=workspace.id,
        name="Part Request",
        workflow_type="PartRequest",
        created_at=past.ago(700),
        created_by=leader.user_name,
        variables=(records.Named(name="Manufacturer", value=""), records.Named(name="Part number", value="")),
    )
