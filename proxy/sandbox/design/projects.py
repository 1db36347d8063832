"""The service of projects: their designs, releases and parameters, packages, exports and workflows."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from proxy.sandbox.design import choices, drafts, exports, records, rest
from proxy.sandbox.design.tables import Table


class Projects(rest.Service):
    """Projects come by upload and keep their history."""

    name = "projects"

    def tables(self) -> Mapping[str, Table[Any]]:
        """All that belongs to projects."""
        data = self.held.data
        return {
            "projects": data.projects,
            "boms": data.boms,
            "releases": data.releases,
            "items": data.items,
            "jobs": data.jobs,
            "definitions": data.definitions,
            "workflows": data.workflows,
        }

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """POST a project, a job, a workflow; PATCH a project's parameters."""
        router.add_post("/projects", self.upload)
        router.add_patch("/projects/{id}", self.describe)
        router.add_post("/jobs", self.make)
        router.add_post("/workflows", self.launch)

    async def upload(self, request: web.Request) -> web.Response:
        """A project of an uploaded file, with one variant that has no parts: the file is not looked into."""
        draft = await rest.body(request, drafts.Project)
        if draft.file_id not in self.held.files:
            raise LookupError(f"there is no file {draft.file_id}")
        if not draft.name.strip():
            raise ValueError("a project needs a name")
        id_, now = self.held.new_id("project"), self.held.now()
        variant = records.Variant(name="Base", bom_id=choices.ident(id_, "bom", "Base"))
        self.held.data.boms.put(records.Bom(id=variant.bom_id, project_id=id_, variant_name=variant.name))
        author = rest.found(self.held.data.users, draft.by, "user").user_name
        upload = records.FileChange(path=self.held.files[draft.file_id][0])
        first = records.VcsRevision(
            revision_id=choices.ident(id_, "commit"), message="Upload", author=author, created_at=now, files=(upload,)
        )
        made = records.Project(
            id=id_,
            project_id=choices.ident(id_, "guid"),
            workspace_id=draft.workspace_id,
            workspace_url=draft.workspace_url,
            url=f"{draft.workspace_url}/designs/{id_}",
            name=draft.name,
            description=draft.description,
            created_by_id=draft.by,
            updated_by_id=draft.by,
            created_at=now,
            updated_at=now,
            revisions=(first,),
            variants=(variant,),
        )
        return rest.reply(self.held.data.projects.put(made), 201)

    async def describe(self, request: web.Request) -> web.Response:
        """Other parameters."""
        draft = await rest.body(request, drafts.Parameters)
        projects = self.held.data.projects
        project: records.Project = rest.found(projects, request.match_info["id"], "project")
        held = {} if draft.replace else {one.name: one for one in project.parameters}
        held.update({one.name: one for one in draft.parameters})
        changed = replace(project, parameters=tuple(held.values()), updated_by_id=draft.by, updated_at=self.held.now())
        return rest.reply(projects.put(changed))

    async def make(self, request: web.Request) -> web.Response:
        """A package or an export, done at once."""
        draft = await rest.body(request, drafts.Job)
        data = self.held.data
        project: records.Project = rest.found(data.projects, draft.project_id, "project")
        variant = next((one for one in project.variants if draft.variant_name in (None, one.name)), None)
        if variant is None:
            raise LookupError(f"the project has no variant {draft.variant_name}")
        components = {one.id: one for one in data.components}
        items = data.items.where("project_id", [project.id])[0]
        content = exports.package(project, rest.found(data.boms, variant.bom_id, "BOM"), components, items)
        job = records.Job(
            id=self.held.new_id("job"),
            project_id=project.id,
            name=draft.name,
            kind=draft.kind,
            file_id=self.held.keep(draft.name, content),
            created_at=self.held.now(),
            is_package=draft.is_package,
        )
        return rest.reply(data.jobs.put(job), 201)

    async def launch(self, request: web.Request) -> web.Response:
        """A process of a definition."""
        draft = await rest.body(request, drafts.Workflow)
        data = self.held.data
        definition: records.WorkflowDefinition = rest.found(
            data.definitions, draft.definition_id, "workflow definition"
        )
        if definition.workspace_id != draft.workspace_id:
            raise LookupError(f"the workspace has no workflow definition {draft.definition_id}")
        now, name = self.held.now(), rest.found(data.users, draft.by, "user").user_name
        made = records.Workflow(
            workflow_id=self.held.new_id("workflow"),
            workspace_id=draft.workspace_id,
            name=draft.name or definition.name,
            process_definition_id=definition.workflow_definition_id,
            process_definition_name=definition.name,
            workflow_type=definition.workflow_type,
            status="ACTIVE",
            assignee=name,
            created_by=name,
            created_at=now,
            modified_at=now,
            variables=draft.variables,
        )
        return rest.reply(data.workflows.put(made), 201)
