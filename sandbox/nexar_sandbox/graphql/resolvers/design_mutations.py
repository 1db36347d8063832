"""Mutations of design data: how they are resolved, and those of projects and libraries (contract graphql.md §5.2).

Errors of a service are in the payload's `errors`, beside an empty id; only a task that was not created, for which the
schema has no empty value, is an error of the field.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphql import GraphQLFieldResolver

from nexar_sandbox.design import client, inputs, records
from nexar_sandbox.graphql import context, design_loaders, errors
from nexar_sandbox.graphql.resolvers import design_access as access

Input: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DesPayloadError:
    """An error of a mutation."""

    message: str


@dataclass(frozen=True, slots=True)
class MutationPayload:
    """The result of a mutation: the created or changed record, or errors."""

    record: Any = None
    errors: tuple[DesPayloadError, ...] = ()


Mutation: TypeAlias = Callable[[context.Info, Input], Awaitable[Any]]


def mutation(change: Mutation) -> GraphQLFieldResolver:
    """The resolver of a mutation, which returns errors of the service in its payload."""

    async def resolve(_root: None, info: context.Info, input: Input) -> MutationPayload:
        try:
            return MutationPayload(await change(info, input))
        except (client.DesignServiceError, errors.DesignError) as refused:
            return MutationPayload(errors=(DesPayloadError(str(refused)),))
        finally:
            # Fields of the payload must not see records of before the change.
            access.session(info).loaders.clear()

    return resolve


async def call_service(info: context.Info, request: str, kind: type[Any], draft: Any = None) -> Any:
    """Send a change to a service: `request` is method, service and path. Raises DesignServiceError."""
    method, service, path = request.split()
    return await access.session(info).services.change(method, service, path, kind, draft)


def author_id(info: context.Info) -> str:
    """The id of the user who makes the change."""
    return access.session(info).user_id


def parameter_records(fields: list[Input] | None) -> tuple[records.DesignParameter, ...]:
    """Parameters of an input as records."""
    return tuple(
        records.DesignParameter(name=parameter["name"], value=parameter["value"]) for parameter in fields or ()
    )


def created_id(attribute: str) -> GraphQLFieldResolver:
    """The resolver of a required id of a payload: empty if nothing was created."""

    def resolve(payload: MutationPayload, _info: context.Info) -> str:
        return "" if payload.record is None else str(getattr(payload.record, attribute))

    return resolve


# What can be exported, with the name that a file has if the caller gives none.
EXPORTS = {"exportAny": "Export.zip", "exportGerber": "Gerber.zip", "exportIdf": "IDF.zip"}


async def update_parameters(info: context.Info, fields: Input) -> Any:
    """Add or replace parameters of a project."""
    project = await access.require(info, design_loaders.PROJECTS, fields["projectId"], "project")
    draft = inputs.ProjectParametersInput(
        by=author_id(info),
        parameters=parameter_records(fields["parameters"]),
        replace=bool(fields.get("replaceExisting")),
    )
    return await call_service(info, f"PATCH projects /projects/{project.id}", records.Project, draft)


async def upload_project(info: context.Info, fields: Input) -> Any:
    """Create a project from an uploaded file."""
    workspace = await _workspace(info, fields)
    draft = inputs.ProjectUploadInput(
        by=author_id(info),
        workspace_id=workspace.id,
        workspace_url=workspace.url,
        name=fields["name"],
        description=fields.get("description") or "",
        file_id=fields["fileId"],
    )
    return await call_service(info, "POST projects /projects", records.Project, draft)


async def _workspace(info: context.Info, fields: Input) -> records.Workspace:
    folder = await access.require(info, design_loaders.FOLDERS, fields["parentFolderId"], "folder")
    workspace = await access.require_workspace(info, fields["workspaceUrl"])
    # The user may see both, and still they may belong to different workspaces.
    if folder.workspace_id != workspace.id:
        raise errors.DesignError(f"the workspace has no folder {folder.id}")
    return workspace


async def release_component(info: context.Info, fields: Input) -> Any:
    """Create a component in its first revision."""
    workspace = await access.require_workspace(info, fields["workspaceUrl"])
    folder_id = fields.get("componentParentFolderId")
    if folder_id is not None:
        await access.require(info, design_loaders.FOLDERS, folder_id, "folder")
    draft = inputs.ComponentInput(
        by=author_id(info),
        workspace_id=workspace.id,
        name=fields["componentItemName"],
        comment=fields.get("componentComment") or "",
        description=fields.get("componentDescription") or "",
        folder_id=folder_id,
        folder_path=fields.get("componentReleaseFolder"),
        parameters=parameter_records(fields.get("parameters")),
    )
    return await call_service(info, "POST library /components", records.Component, draft)


async def add_choices(info: context.Info, fields: Input) -> Any:
    """Add part choices at the end of a component's list."""
    return await _choose(
        info, fields, inputs.PartChoicesInput(by=author_id(info), add=_choices(fields["manufacturerParts"]))
    )


async def remove_choices(info: context.Info, fields: Input) -> Any:
    """Remove the given part choices, or all."""
    parts = fields.get("manufacturerParts")
    gone = None if parts is None else _choices(parts)
    return await _choose(info, fields, inputs.PartChoicesInput(by=author_id(info), remove=gone))


async def _choose(info: context.Info, fields: Input, draft: inputs.PartChoicesInput) -> Any:
    component = await access.require(info, design_loaders.COMPONENTS, fields["componentId"], "component")
    return await call_service(info, f"PATCH library /components/{component.id}", records.Component, draft)


def _choices(fields: list[Input]) -> tuple[inputs.PartChoiceInput, ...]:
    return tuple(
        inputs.PartChoiceInput(company_name=choice["companyName"], part_number=choice["partNumber"])
        for choice in fields
    )


async def launch_workflow(info: context.Info, fields: Input) -> Any:
    """Start a workflow."""
    workspace = await access.require_workspace(info, fields["workspaceUrl"])
    draft = inputs.WorkflowInput(
        by=author_id(info),
        workspace_id=workspace.id,
        definition_id=fields["workflowDefinitionId"],
        name=fields.get("name"),
        variables=parameter_records(fields["variables"]),
    )
    return await call_service(info, "POST projects /workflows", records.Workflow, draft)


async def create_export(info: context.Info, fields: Input) -> Any:
    """Create an export of a project, of exactly one kind."""
    # GraphQL has no union of inputs, so the schema cannot say this.
    kinds = [kind for kind in EXPORTS if fields.get(kind) is not None]
    if len(kinds) != 1:
        raise errors.DesignError(f"exactly one of {', '.join(EXPORTS)} must be given")
    name = fields[kinds[0]].get("fileName") or EXPORTS[kinds[0]]
    return await _make(info, fields, name, kinds[0], is_package=False)


async def create_package(info: context.Info, fields: Input) -> Any:
    """Create a manufacture package. No e-mail is sent."""
    return await _make(info, fields, fields["name"], "package", is_package=True)


async def _make(info: context.Info, fields: Input, name: str, kind: str, *, is_package: bool) -> Any:
    project = await access.require(info, design_loaders.PROJECTS, fields["projectId"], "project")
    revision_ids = [revision.revision_id for revision in project.revisions]
    if fields.get("vcsRevisionId") not in (None, *revision_ids):
        raise errors.DesignError(f"the project has no revision {fields['vcsRevisionId']}")
    draft = inputs.ProjectJobInput(
        by=author_id(info),
        project_id=project.id,
        name=name,
        kind=kind,
        is_package=is_package,
        variant_name=fields.get("variantName"),
    )
    return await call_service(info, "POST projects /jobs", records.ProjectJob, draft)


def export_id(payload: MutationPayload, _info: context.Info) -> str | None:
    """The id of the job; None if it was rejected."""
    return None if payload.record is None else str(payload.record.id)


def workflow_id(payload: MutationPayload, _info: context.Info) -> str:
    """The id of the workflow. Raises DesignError if it was rejected: the payload has no errors in the schema."""
    if payload.record is None:
        raise errors.DesignError(payload.errors[0].message)
    return str(payload.record.workflow_id)


def started(payload: MutationPayload, _info: context.Info) -> int:
    """0 if the workflow was started, else 1. The contract has no values."""
    return 1 if payload.errors else 0


MUTATIONS: dict[str, Mutation] = {
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
    **{f"Mutation.{name}": mutation(change) for name, change in MUTATIONS.items()},
    "DesUploadProjectPayload.projectId": created_id("id"),
    "DesLaunchWorkflowPayload.id": workflow_id,
    "DesLaunchWorkflowPayload.status": started,
    "DesCreateProjectExportJobPayload.projectExportJobId": export_id,
    "DesCreateManufacturePackagePayload.jobId": created_id("id"),
}
