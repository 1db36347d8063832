"""Changes of projects: uploads, parameters, packages, exports and workflows.

A package is a ZIP with the bill of materials and the placement as CSV. There are no Gerber files: the boards of the
sandbox have no copper layers.
"""

import csv
import io
import zipfile
from collections.abc import Iterable
from typing import Any

from nexar_sandbox.design import components, design_store, records, rest


def create_project(
    store: design_store.DesignStore, *, by: str, workspace_url: str, name: str, file_id: str, **fields: Any
) -> records.Record:
    """Create a project of an uploaded file, with one variant without parts: the file is not parsed."""
    if file_id not in store.files:
        raise LookupError(f"there is no file {file_id}")
    if not name.strip():
        raise ValueError("a project needs a name")
    id_ = store.new_id("project")
    variant = records.Variant(name="Base", project_id=id_, bom_id=components.stable_id(id_, "bom", "Base"))
    store.create(records.Bom, by, id=variant.bom_id, project_id=id_, variant_name=variant.name)
    upload = store.stamped(
        records.VcsRevision,
        by,
        revision_id=components.stable_id(id_, "commit"),
        message="Upload",
        author=store.tables[records.User].find(by, "user").user_name,
        files=(records.FileChange(path=store.files[file_id][0]),),
    )
    return store.create(
        records.Project,
        by,
        id=id_,
        project_id=components.stable_id(id_, "guid"),
        workspace_url=workspace_url,
        url=f"{workspace_url}/designs/{id_}",
        name=name,
        revisions=(upload,),
        variants=(variant,),
        **fields,
    )


def update_parameters(
    store: design_store.DesignStore, *, by: str, id: str, parameters: list[dict[str, str]], replace_existing: bool
) -> records.Record:
    project = store.tables[records.Project].find(id, "project")
    merged = {} if replace_existing else {parameter.name: parameter for parameter in project.parameters}
    merged |= {parameter["name"]: records.Parameter(**parameter) for parameter in parameters}
    return store.update(project, by, parameters=tuple(merged.values()))


def create_job(
    store: design_store.DesignStore, *, by: str, project_id: str, name: str, variant_name: str | None, **fields: Any
) -> records.Record:
    """Create a package or an export of a variant (None: the first), which is complete at once."""
    project = store.tables[records.Project].find(project_id, "project")
    variant = next((variant for variant in project.variants if variant_name in (None, variant.name)), None)
    if variant is None:
        raise LookupError(f"the project has no variant {variant_name}")
    id_ = store.new_id("job")
    file_id = store.add_file(name, _build_zip(store, project, variant))
    return store.create(records.ProjectJob, by, id=id_, project_id=project_id, name=name, file_id=file_id, **fields)


def start_workflow(
    store: design_store.DesignStore,
    *,
    by: str,
    workspace_id: str,
    definition_id: str,
    name: str | None,
    **fields: Any,
) -> records.Record:
    definition = store.tables[records.WorkflowDefinition].find(definition_id, "workflow definition")
    if definition.workspace_id != workspace_id:
        raise LookupError(f"the workspace has no workflow definition {definition_id}")
    user_name = store.tables[records.User].find(by, "user").user_name
    return store.create(
        records.Workflow,
        by,
        workflow_id=store.new_id("workflow"),
        workspace_id=workspace_id,
        name=name or definition.name,
        process_definition_id=definition.workflow_definition_id,
        process_definition_name=definition.name,
        workflow_type=definition.workflow_type,
        status="ACTIVE",
        assignee=user_name,
        created_by=user_name,
        **fields,
    )


# Time of the files in a ZIP: fixed, so that equal content gives equal bytes.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def _build_zip(store: design_store.DesignStore, project: records.Record, variant: records.Record) -> bytes:
    bom = store.tables[records.Bom].find(variant.bom_id, "BOM")
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (
            (f"{project.name} {bom.variant_name} BOM.csv", _bom(store, bom)),
            (f"{project.name} placement.csv", _placement(store, project)),
        ):
            archive.writestr(zipfile.ZipInfo(name, ZIP_TIME), text)
    return written.getvalue()


def _bom(store: design_store.DesignStore, bom: records.Record) -> str:
    rows = []
    for item in bom.items:
        component = store.tables[records.Component].find(item.component_id, "component")
        first = component.manufacturer_parts[0] if component.manufacturer_parts else None
        fitted = [instance.designator for instance in item.bom_item_instances if instance.is_fitted]
        maker, number = (first.company_name, first.part_number) if first else ("", "")
        rows.append((" ".join(fitted), len(fitted), component.name, component.description, maker, number))
    return _csv(("Designators", "Quantity", "Component", "Description", "Manufacturer", "Part number"), rows)


def _placement(store: design_store.DesignStore, project: records.Record) -> str:
    (items,) = store.tables[records.DesignItem].where("project_id", [project.id])
    rows = [(item.designator, item.comment, item.footprint_name, item.rotation) for item in items]
    return _csv(("Designator", "Comment", "Footprint", "Rotation"), rows)


def _csv(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


CHANGES: rest.Changes = {
    "POST /projects": create_project,
    "PATCH /projects/{id}": update_parameters,
    "POST /jobs": create_job,
    "POST /workflows": start_workflow,
}
