"""The mutations of projects and libraries: parameters, uploads, part choices, workflows, exports, packages (contract
graphql.md §5.2)."""

from typing import Any

from graphql import GraphQLFieldResolver

from proxy.sandbox.design import inputs, records
from proxy.sandbox.graphql import context, problems
from proxy.sandbox.graphql import lookups as looking
from proxy.sandbox.graphql.resolvers import design_access as access
from proxy.sandbox.graphql.resolvers import design_changes as changes

# What can be exported, with the name that a file has if the caller gives none.
EXPORTS = {"exportAny": "Export.zip", "exportGerber": "Gerber.zip", "exportIdf": "IDF.zip"}


async def update_parameters(info: context.Info, asked: changes.Input) -> Any:
    """Added to those of a project, or in their place."""
    project = await access.needed(info, looking.PROJECTS, asked["projectId"], "project")
    draft = inputs.ProjectParametersInput(
        by=changes.by(info),
        parameters=changes.named(asked["parameters"]),
        replace=bool(asked.get("replaceExisting")),
    )
    return await changes.send(info, f"PATCH projects /projects/{project.id}", records.Project, draft)


async def upload_project(info: context.Info, asked: changes.Input) -> Any:
    """A project of a file that was uploaded, in the workspace that is named."""
    workspace = await _workspace(info, asked)
    draft = inputs.ProjectUploadInput(
        by=changes.by(info),
        workspace_id=workspace.id,
        workspace_url=workspace.url,
        name=asked["name"],
        description=asked.get("description") or "",
        file_id=asked["fileId"],
    )
    return await changes.send(info, "POST projects /projects", records.Project, draft)


async def _workspace(info: context.Info, asked: changes.Input) -> records.Workspace:
    folder = await access.needed(info, looking.FOLDERS, asked["parentFolderId"], "folder")
    workspace = await access.needed_workspace(info, asked["workspaceUrl"])
    if folder.workspace_id != workspace.id:
        raise problems.DesignError(f"the workspace has no folder {folder.id}")
    return workspace


async def release_component(info: context.Info, asked: changes.Input) -> Any:
    """A component in its first revision."""
    workspace = await access.needed_workspace(info, asked["workspaceUrl"])
    folder_id = asked.get("componentParentFolderId")
    if folder_id is not None:
        await access.needed(info, looking.FOLDERS, folder_id, "folder")
    draft = inputs.ComponentInput(
        by=changes.by(info),
        workspace_id=workspace.id,
        name=asked["componentItemName"],
        comment=asked.get("componentComment") or "",
        description=asked.get("componentDescription") or "",
        folder_id=folder_id,
        folder_path=asked.get("componentReleaseFolder"),
        parameters=changes.named(asked.get("parameters")),
    )
    return await changes.send(info, "POST library /components", records.Component, draft)


async def add_choices(info: context.Info, asked: changes.Input) -> Any:
    """Part choices at the end of a component's list."""
    return await _choose(
        info, asked, inputs.PartChoicesInput(by=changes.by(info), add=_choices(asked["manufacturerParts"]))
    )


async def remove_choices(info: context.Info, asked: changes.Input) -> Any:
    """Those that are named; all where none is."""
    parts = asked.get("manufacturerParts")
    gone = None if parts is None else _choices(parts)
    return await _choose(info, asked, inputs.PartChoicesInput(by=changes.by(info), remove=gone))


async def _choose(info: context.Info, asked: changes.Input, draft: inputs.PartChoicesInput) -> Any:
    component = await access.needed(info, looking.COMPONENTS, asked["componentId"], "component")
    return await changes.send(info, f"PATCH library /components/{component.id}", records.Component, draft)


def _choices(asked: list[changes.Input]) -> tuple[inputs.PartChoiceInput, ...]:
    return tuple(
        inputs.PartChoiceInput(company_name=one["companyName"], part_number=one["partNumber"]) for one in asked
    )


async def launch_workflow(info: context.Info, asked: changes.Input) -> Any:
    """A process of the workspace."""
    workspace = await access.needed_workspace(info, asked["workspaceUrl"])
    draft = inputs.WorkflowInput(
        by=changes.by(info),
        workspace_id=workspace.id,
        definition_id=asked["workflowDefinitionId"],
        name=asked.get("name"),
        variables=changes.named(asked["variables"]),
    )
    return await changes.send(info, "POST projects /workflows", records.Workflow, draft)


async def create_export(info: context.Info, asked: changes.Input) -> Any:
    """One export of a project; there must be one kind in the input."""
    kinds = [kind for kind in EXPORTS if asked.get(kind) is not None]
    if len(kinds) != 1:
        raise problems.DesignError(f"exactly one of {', '.join(EXPORTS)} must be given")
    name = asked[kinds[0]].get("fileName") or EXPORTS[kinds[0]]
    return await _make(info, asked, name, kinds[0], is_package=False)


async def create_package(info: context.Info, asked: changes.Input) -> Any:
    """A package for manufacturers. Nobody is written to."""
    return await _make(info, asked, asked["name"], "package", is_package=True)


async def _make(info: context.Info, asked: changes.Input, name: str, kind: str, *, is_package: bool) -> Any:
    project = await access.needed(info, looking.PROJECTS, asked["projectId"], "project")
    known = [one.revision_id for one in project.revisions]
    if asked.get("vcsRevisionId") not in (None, *known):
        raise problems.DesignError(f"the project has no revision {asked['vcsRevisionId']}")
    draft = inputs.ProjectJobInput(
        by=changes.by(info),
        project_id=project.id,
        name=name,
        kind=kind,
        is_package=is_package,
        variant_name=asked.get("variantName"),
    )
    return await changes.send(info, "POST projects /jobs", records.ProjectJob, draft)


def export_id(payload: changes.Payload, _info: context.Info) -> str | None:
    """None where no job was made."""
    return None if payload.made is None else str(payload.made.id)


def workflow_id(payload: changes.Payload, _info: context.Info) -> str:
    """The process that was started. Raises DesignError: this payload has no errors."""
    if payload.made is None:
        raise problems.DesignError(payload.errors[0].message)
    return str(payload.made.workflow_id)


def started(payload: changes.Payload, _info: context.Info) -> int:
    """0 where the process was started. The contract has no values."""
    return 1 if payload.errors else 0


CHANGES: dict[str, changes.Change] = {
    "desUpdateProjectParameters": update_parameters,
    "desUploadProject": upload_project,
    "desReleaseComponent": release_component,
    "desAddComponentPartChoices": add_choices,
    "desRemoveComponentPartChoices": remove_choices,
    "desLaunchWorkflow": launch_workflow,
    "desCreateProjectExportJob": create_export,
    "desCreateManufacturePackage": create_package,
}
ATTRIBUTES: dict[str, str] = {}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    **{f"Mutation.{name}": changes.mutation(change) for name, change in CHANGES.items()},
    "DesUploadProjectPayload.projectId": changes.made("id"),
    "DesLaunchWorkflowPayload.id": workflow_id,
    "DesLaunchWorkflowPayload.status": started,
    "DesCreateProjectExportJobPayload.projectExportJobId": export_id,
    "DesCreateManufacturePackagePayload.jobId": changes.made("id"),
}
