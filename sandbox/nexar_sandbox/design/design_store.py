"""The data of the design services of one sandbox: tables, uploaded files, new ids, members; and the sample data.

The sample workspaces are created at the first request, because most users of a sandbox never request design data, and
project by project, so that other requests are served meanwhile. The same seed and catalog give the same data; all times
are before the current time.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from nexar_sandbox import user_directory
from nexar_sandbox.catalog import store
from nexar_sandbox.design import components, project_builder, records, sample_workspaces, tables, timestamps
from nexar_sandbox.kit import clock as clocks
from nexar_sandbox.state import store as state

ListMembers = Callable[[], Sequence[records.DesignUser]]


class DesignStore:
    """`members` lists the users of the sandbox: they are in every workspace as long as they exist. Sample users are in
    one workspace only. `files` are name and content of uploaded and generated files, by id."""

    def __init__(
        self,
        catalog: store.Catalog,
        seed: int,
        clock: clocks.Clock,
        members: ListMembers,
        *,
        state_store: state.StateStore | None = None,
    ) -> None:
        self.catalog, self._seed, self._clock, self._members = catalog, seed, clock, members
        self._state_store = state_store or state.StateStore()
        self._numbers = self._state_store.rows("design_number", int)
        self.files = self._state_store.rows("design_file", tuple[str, bytes])
        self._tables: tables.DesignTables | None = None
        self._sample_users: frozenset[str] = frozenset()
        self._opening = asyncio.Lock()
        self._known_members: dict[str, records.DesignUser] = {}

    async def open(self) -> None:
        """Open the tables, once; concurrent callers wait for the same. Creates the sample data if there is no saved
        data."""
        async with self._opening:
            if self._tables is None:
                self._tables = await self._open_tables()

    async def _open_tables(self) -> tables.DesignTables:
        """The saved tables, or the sample data. That is saved in one transaction when it is complete, because other
        services save theirs meanwhile."""
        data = tables.open_tables(self._state_store)
        if not len(data.workspaces):
            new = tables.DesignTables()
            for _ in seed_tables(new, self.catalog, self._seed, self._clock.now()):
                await asyncio.sleep(0)
            with self._state_store.transaction():
                tables.copy_tables(new, data)
        # Sample users are in one workspace, members in all of them, former members in none.
        self._sample_users = frozenset(user.id for user in data.users if len(user.workspace_ids) == 1)
        self._known_members = {
            user.id: msgspec.structs.replace(user, workspace_ids=(), group_ids=())
            for user in data.users
            if len(user.workspace_ids) > 1
        }
        return data

    def now(self) -> str:
        """The current time as RFC 3339 text."""
        return timestamps.rfc3339(self._clock.now())

    def new_id(self, kind: str) -> str:
        """A new, unused id."""
        self._numbers["last"] = number = self._numbers.get("last", 0) + 1
        return components.stable_id(self._seed, "made", kind, number)

    def add_file(self, name: str, content: bytes) -> str:
        """Store a file; return its id."""
        id_ = self.new_id("file")
        self.files[id_] = (name, content)
        return id_

    def _update_members(self, members: dict[str, records.DesignUser], data: tables.DesignTables) -> None:
        """Update the users for changed members. A former member is in no workspace but remains the author of
        comments."""
        workspaces = tuple(data.workspaces)
        for former in self._known_members.keys() - members:
            data.users.put(self._known_members[former])
        for member in members.values():
            data.users.put(
                msgspec.structs.replace(
                    member,
                    workspace_ids=tuple(workspace.id for workspace in workspaces),
                    group_ids=tuple(workspace.groups[0].id for workspace in workspaces),
                )
            )
        self._known_members = members

    @property
    def tables(self) -> tables.DesignTables:
        """All tables, with the current members. Raises RuntimeError before `open`."""
        if self._tables is None:
            raise RuntimeError("the design data is not open")
        members = {member.id: member for member in self._members() if member.id not in self._sample_users}
        if members != self._known_members:
            self._update_members(members, self._tables)
        return self._tables


def members_of(users: user_directory.UserDirectory) -> tuple[records.DesignUser, ...]:
    """The users who can sign in, as users of workspaces."""
    return tuple(
        records.DesignUser(
            id=user.id,
            user_name=user.email.partition("@")[0],
            email=user.email,
            first_name=user.given_name,
            last_name=user.family_name,
        )
        for user in users.all
    )


def seed_tables(data: tables.DesignTables, catalog: store.Catalog, seed: int, now: float) -> Iterator[None]:
    """Fill `data` with the sample workspaces. Yields after each project, so that the caller can serve other
    requests."""
    for number, sample in enumerate(sample_workspaces.WORKSPACES):
        # A source for each workspace, so that a change of one leaves the others as they are.
        rng = random.Random(f"{seed}:{sample.slug}")  # noqa: S311 (sample data, not cryptography)
        past = timestamps.PastTimes(now, rng)
        workspace = _workspace(sample, seed, past, is_default=number == 0)
        data.workspaces.put(workspace)
        users = _users(sample, workspace, seed)
        for user in users:
            data.users.put(user)
        builder = components.ComponentBuilder(catalog, workspace, rng, past, users[0].id)
        for template in sample.projects:
            built_project = project_builder.build_project(template, builder, users)
            _put(data, built_project)
            for thread in project_builder.comment_threads(built_project, users, rng, past):
                data.threads.put(thread)
            for task in project_builder.tasks(workspace, built_project.project, users, rng, past):
                data.tasks.put(task)
            yield
        # The projects have filled the library.
        for folder in builder.folders.values():
            data.folders.put(folder)
        for component in builder.components.values():
            data.components.put(component)
        data.definitions.put(_definition(workspace, users[0], past))


def _put(data: tables.DesignTables, built_project: project_builder.BuiltProject) -> None:
    data.projects.put(built_project.project)
    for bom in built_project.boms:
        data.boms.put(bom)
    for release in built_project.releases:
        data.releases.put(release)
    for item in built_project.items:
        data.items.put(item)


def _workspace(
    sample: sample_workspaces.WorkspaceTemplate, seed: int, past: timestamps.PastTimes, *, is_default: bool
) -> records.Workspace:
    id_ = components.stable_id(seed, "workspace", sample.slug)
    leader = components.stable_id(seed, "user", sample.slug, 0)
    library = records.DesignLibrary(
        workspace_id=id_,
        name=f"{sample.name} Library",
        description=f"Components of {sample.name}",
        version="1.0",
        created_by_id=leader,
        updated_by_id=leader,
        created_at=past.ago(900),
        updated_at=past.ago(3),
    )
    groups = (
        records.UserGroup(id=components.stable_id(id_, "group", "Engineers"), name="Engineers"),
        records.UserGroup(id=components.stable_id(id_, "group", "Administrators"), name="Administrators"),
    )
    return records.Workspace(
        id=id_,
        name=sample.name,
        url=f"https://{sample.slug}.365.example",
        auth_id=components.stable_id(id_, "auth"),
        description=sample.description,
        is_default=is_default,
        region=sample.region,
        groups=groups,
        library=library,
    )


def _users(
    sample: sample_workspaces.WorkspaceTemplate, workspace: records.Workspace, seed: int
) -> tuple[records.DesignUser, ...]:
    engineers, administrators = workspace.groups
    return tuple(
        records.DesignUser(
            id=components.stable_id(seed, "user", sample.slug, number),
            user_name=f"{first}.{last}".lower(),
            email=f"{first}.{last}@{sample.slug}.example".lower(),
            first_name=first,
            last_name=last,
            workspace_ids=(workspace.id,),
            group_ids=(engineers.id,) if number else (engineers.id, administrators.id),
        )
        for number, (first, last) in enumerate(sample.users)
    )


def _definition(
    workspace: records.Workspace, leader: records.DesignUser, past: timestamps.PastTimes
) -> records.WorkflowDefinition:
    return records.WorkflowDefinition(
        workflow_definition_id=components.stable_id(workspace.id, "workflow", "Part Request"),
        workspace_id=workspace.id,
        name="Part Request",
        workflow_type="PartRequest",
        created_at=past.ago(700),
        created_by=leader.user_name,
        variables=(
            records.DesignParameter(name="Manufacturer", value=""),
            records.DesignParameter(name="Part number", value=""),
        ),
    )
