"""The service of projects: designs, releases, parameters, packages, exports and workflows.

A package is a ZIP with the bill of materials and the placement as CSV. There are no Gerber files: the boards of the
sandbox have no copper layers.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from nexar_sandbox.design import components, inputs, records, rest, tables


class ProjectService(rest.DesignService):
    """Service of projects, which are created by upload and keep their history."""

    name = "projects"

    def served_tables(self) -> Mapping[str, tables.Table[Any]]:
        """Projects and everything that belongs to them."""
        data = self.store.tables
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
        """Add the routes: POST a project, a job, a workflow; PATCH a project's parameters."""
        router.add_post("/projects", self.create_project)
        router.add_patch("/projects/{id}", self.update_parameters)
        router.add_post("/jobs", self.create_job)
        router.add_post("/workflows", self.start_workflow)

    async def create_project(self, request: web.Request) -> web.Response:
        """Create a project of an uploaded file, with one variant without parts: the file is not parsed."""
        input_ = await rest.read_input(request, inputs.ProjectUploadInput)
        if input_.file_id not in self.store.files:
            raise LookupError(f"there is no file {input_.file_id}")
        if not input_.name.strip():
            raise ValueError("a project needs a name")
        id_, now = self.store.new_id("project"), self.store.now()
        variant = records.Variant(name="Base", bom_id=components.stable_id(id_, "bom", "Base"))
        self.store.tables.boms.put(records.Bom(id=variant.bom_id, project_id=id_, variant_name=variant.name))
        author = rest.find_record(self.store.tables.users, input_.by, "user").user_name
        upload = records.FileChange(path=self.store.files[input_.file_id][0])
        first = records.VcsRevision(
            revision_id=components.stable_id(id_, "commit"),
            message="Upload",
            author=author,
            created_at=now,
            files=(upload,),
        )
        project = records.Project(
            id=id_,
            project_id=components.stable_id(id_, "guid"),
            workspace_id=input_.workspace_id,
            workspace_url=input_.workspace_url,
            url=f"{input_.workspace_url}/designs/{id_}",
            name=input_.name,
            description=input_.description,
            created_by_id=input_.by,
            updated_by_id=input_.by,
            created_at=now,
            updated_at=now,
            revisions=(first,),
            variants=(variant,),
        )
        return rest.json_response(self.store.tables.projects.put(project), 201)

    async def update_parameters(self, request: web.Request) -> web.Response:
        """Add or replace parameters."""
        input_ = await rest.read_input(request, inputs.ProjectParametersInput)
        projects = self.store.tables.projects
        project: records.Project = rest.find_record(projects, request.match_info["id"], "project")
        parameters = {} if input_.replace else {parameter.name: parameter for parameter in project.parameters}
        parameters.update({parameter.name: parameter for parameter in input_.parameters})
        changed = replace(
            project, parameters=tuple(parameters.values()), updated_by_id=input_.by, updated_at=self.store.now()
        )
        return rest.json_response(projects.put(changed))

    async def create_job(self, request: web.Request) -> web.Response:
        """Create a package or an export, which is complete at once."""
        input_ = await rest.read_input(request, inputs.ProjectJobInput)
        data = self.store.tables
        project: records.Project = rest.find_record(data.projects, input_.project_id, "project")
        variant = next((variant for variant in project.variants if input_.variant_name in (None, variant.name)), None)
        if variant is None:
            raise LookupError(f"the project has no variant {input_.variant_name}")
        components = {component.id: component for component in data.components}
        items = data.items.where("project_id", [project.id])[0]
        content = build_zip(project, rest.find_record(data.boms, variant.bom_id, "BOM"), components, items)
        job = records.ProjectJob(
            id=self.store.new_id("job"),
            project_id=project.id,
            name=input_.name,
            kind=input_.kind,
            file_id=self.store.add_file(input_.name, content),
            created_at=self.store.now(),
            is_package=input_.is_package,
        )
        return rest.json_response(data.jobs.put(job), 201)

    async def start_workflow(self, request: web.Request) -> web.Response:
        """Start a workflow of a definition."""
        input_ = await rest.read_input(request, inputs.WorkflowInput)
        data = self.store.tables
        definition: records.WorkflowDefinition = rest.find_record(
            data.definitions, input_.definition_id, "workflow definition"
        )
        if definition.workspace_id != input_.workspace_id:
            raise LookupError(f"the workspace has no workflow definition {input_.definition_id}")
        now, name = self.store.now(), rest.find_record(data.users, input_.by, "user").user_name
        workflow = records.Workflow(
            workflow_id=self.store.new_id("workflow"),
            workspace_id=input_.workspace_id,
            name=input_.name or definition.name,
            process_definition_id=definition.workflow_definition_id,
            process_definition_name=definition.name,
            workflow_type=definition.workflow_type,
            status="ACTIVE",
            assignee=name,
            created_by=name,
            created_at=now,
            modified_at=now,
            variables=input_.variables,
        )
        return rest.json_response(data.workflows.put(workflow), 201)


# Time of the files in a ZIP: fixed, so that equal content gives equal bytes.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def build_zip(
    project: records.Project,
    bom: records.Bom,
    components: Mapping[str, records.Component],
    items: Iterable[records.DesignItem],
) -> bytes:
    """The ZIP of a variant: bill of materials and placement as CSV."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (
            (f"{project.name} {bom.variant_name} BOM.csv", _bom(bom, components)),
            (f"{project.name} placement.csv", _placement(items)),
        ):
            archive.writestr(zipfile.ZipInfo(name, ZIP_TIME), text)
    return written.getvalue()


def _bom(bom: records.Bom, components: Mapping[str, records.Component]) -> str:
    rows = []
    for item in bom.items:
        component = components[item.component_id]
        first = component.manufacturer_parts[0] if component.manufacturer_parts else None
        fitted = [instance.designator for instance in item.instances if instance.is_fitted]
        maker, number = (first.company_name, first.part_number) if first else ("", "")
        rows.append((" ".join(fitted), len(fitted), component.name, component.description, maker, number))
    return _csv(("Designators", "Quantity", "Component", "Description", "Manufacturer", "Part number"), rows)


def _placement(items: Iterable[records.DesignItem]) -> str:
    rows = [(item.designator, item.comment, item.footprint_name, item.rotation) for item in items]
    return _csv(("Designator", "Comment", "Footprint", "Rotation"), rows)


def _csv(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
