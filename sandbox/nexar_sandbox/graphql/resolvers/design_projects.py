"""Projects and their designs: variants, documents, design items, bills of materials, releases, packages (contract
graphql.md §5)."""

from typing import Any, NamedTuple

from graphql import GraphQLFieldResolver

from nexar_sandbox.design import files, records
from nexar_sandbox.graphql import connections, context, design_filters, design_loaders
from nexar_sandbox.graphql.resolvers import design_access as access
from nexar_sandbox.graphql.resolvers import design_workspaces

DONE = "DONE"


class VariantView(NamedTuple):
    """A variant of a project, in progress or released."""

    project_id: str
    name: str
    bom_id: str


class DocumentView(NamedTuple):
    """A sheet or the board of a project."""

    project_id: str
    document_id: str
    document_name: str
    is_pcb: bool


class PackageCreationPayload(NamedTuple):
    """The result of a package creation job."""

    package_id: str | None
    errors: tuple[()] = ()


async def projects(
    _root: None,
    info: context.Info,
    *,
    workspaceUrl: str,  # noqa: N803 (the schema's argument name)
    where: dict[str, Any] | None = None,
    **arguments: Any,
) -> connections.Connection:
    """A page of those of a workspace that pass the filter."""
    workspace = await access.require_workspace(info, workspaceUrl)
    projects_ = await access.session(info).loaders.where(design_loaders.PROJECTS, "workspace_id", workspace.id)
    return connections.page(design_filters.matching_records(projects_, where), arguments, lambda project: project.id)


async def project(_root: None, info: context.Info, id: str) -> records.Project | None:
    """The record with this id, or None."""
    return await access.visible(info, design_loaders.PROJECTS, id)


async def design_item(_root: None, info: context.Info, id: str) -> records.DesignItem | None:
    """The record with this id, or None."""
    return await access.visible(info, design_loaders.ITEMS, id)


async def release(_root: None, info: context.Info, id: str) -> records.Release | None:
    """The record with this id, or None."""
    return await access.visible(info, design_loaders.RELEASES, id)


async def bom(_root: None, info: context.Info, id: str) -> records.Bom | None:
    """The record with this id, or None."""
    return await access.visible(info, design_loaders.BOMS, id)


def parameters(
    project: records.Project, _info: context.Info, names: list[str] | None = None
) -> list[records.DesignParameter]:
    """All parameters, or those with the given names."""
    return [parameter for parameter in project.parameters if names is None or parameter.name in names]


def preview_url(project: records.Project, info: context.Info) -> str:
    """The URL of a preview image."""
    return f"{access.session(info).origin}{files.PREVIEW_PATH}?id={project.id}"


def latest_revision(project: records.Project, _info: context.Info) -> records.VcsRevision:
    """The latest commit."""
    return project.revisions[0]


def revisions(project: records.Project, _info: context.Info, **arguments: Any) -> connections.Connection:
    """A page of the commits, latest first."""
    return connections.page(project.revisions, arguments, lambda revision: revision.revision_id)


async def tasks(project: records.Project, info: context.Info) -> list[records.Task]:
    """The tasks of a project."""
    return await access.session(info).loaders.where(design_loaders.TASKS, "project_id", project.id)


async def workflows(
    project: records.Project, info: context.Info, where: dict[str, Any] | None = None, **arguments: Any
) -> list[records.Workflow]:
    """The workflows of a project that match the filters: running ones, or closed ones."""
    workflows_ = await access.session(info).loaders.where(design_loaders.WORKFLOWS, "project_id", project.id)
    after = arguments.get("modifiedAfter")
    return [
        workflow
        for workflow in design_filters.matching_records(workflows_, where)
        if (workflow.ended_at is not None) == arguments["isClosed"]
        and (after is None or design_filters.is_later(workflow.modified_at, after))
        and design_workspaces.has_variable(workflow, arguments.get("withVariable"))
    ]


def variants(project: records.Project, _info: context.Info, where: dict[str, Any] | None = None) -> list[VariantView]:
    """The variants of the work in progress."""
    return [
        VariantView(project.id, variant.name, variant.bom_id)
        for variant in design_filters.matching_records(project.variants, where)
    ]


async def releases(
    project: records.Project, info: context.Info, where: dict[str, Any] | None = None, **arguments: Any
) -> connections.Connection:
    """A page of the published versions."""
    releases_ = await access.session(info).loaders.where(design_loaders.RELEASES, "project_id", project.id)
    return connections.page(design_filters.matching_records(releases_, where), arguments, lambda release: release.id)


def release_variants(
    release: records.Release, _info: context.Info, where: dict[str, Any] | None = None
) -> list[VariantView]:
    """The variants of a release."""
    return [
        VariantView(release.project_id, variant.name, variant.bom_id)
        for variant in design_filters.matching_records(release.variants, where)
    ]


async def _documents(variant: VariantView, info: context.Info, *, pcb: bool) -> list[DocumentView]:
    project = await access.session(info).loaders.one(design_loaders.PROJECTS, variant.project_id)
    documents = project.documents if project else ()
    return [
        DocumentView(variant.project_id, document.document_id, document.document_name, document.is_pcb)
        for document in documents
        if document.is_pcb == pcb
    ]


async def board(variant: VariantView, info: context.Info) -> DocumentView | None:
    """The board, or None."""
    return next(iter(await _documents(variant, info, pcb=True)), None)


async def schematics(
    variant: VariantView, info: context.Info, where: dict[str, Any] | None = None
) -> list[DocumentView]:
    """The sheets that pass the filter."""
    return design_filters.matching_records(await _documents(variant, info, pcb=False), where)


async def design_items(
    document: DocumentView,
    info: context.Info,
    *,
    designators: list[str] | None = None,
    where: dict[str, Any] | None = None,
    **arguments: Any,
) -> connections.Connection:
    """A page of the items placed on a document: all items on a board, its own on a sheet."""
    items = await access.session(info).loaders.where(design_loaders.ITEMS, "project_id", document.project_id)
    placed = [
        item
        for item in items
        if (document.is_pcb or item.sheet_id == document.document_id)
        and (designators is None or item.designator in designators)
    ]
    return connections.page(design_filters.matching_records(placed, where), arguments, lambda item: item.id)


async def document_threads(document: DocumentView, info: context.Info) -> list[records.CommentThread]:
    """The comment threads about a document."""
    threads = await access.session(info).loaders.where(design_loaders.THREADS, "project_id", document.project_id)
    return [thread for thread in threads if thread.context.document_id == document.document_id]


async def item_threads(item: records.DesignItem, info: context.Info) -> list[records.CommentThread]:
    """The comment threads about a design item."""
    threads = await access.session(info).loaders.where(design_loaders.THREADS, "project_id", item.project_id)
    return [thread for thread in threads if thread.context.object_id == item.id]


def bom_items(bom: records.Bom, _info: context.Info, **arguments: Any) -> connections.Connection:
    """A page of the items."""
    return connections.page(bom.items, arguments, lambda item: item.component_id)


async def packages(_root: None, info: context.Info) -> list[records.ProjectJob]:
    """Every package of the user's projects."""
    jobs = await access.session(info).loaders.all(design_loaders.JOBS)
    return [job for job in jobs if job.is_package and await access.visible(info, design_loaders.JOBS, job.id)]


async def package(_root: None, info: context.Info, id: str) -> records.ProjectJob | None:
    """The record with this id, or None."""
    job = await access.visible(info, design_loaders.JOBS, id)
    return job if job is not None and job.is_package else None


async def project_packages(release: records.Release, info: context.Info) -> list[records.ProjectJob]:
    """The packages that were made of a release's project."""
    jobs = await access.session(info).loaders.where(design_loaders.JOBS, "project_id", release.project_id)
    return [job for job in jobs if job.is_package]


async def export_job(
    _root: None,
    info: context.Info,
    projectExportJobId: str,  # noqa: N803
) -> records.ProjectJob:
    """The record with this id, or None."""
    return await access.require(info, design_loaders.JOBS, projectExportJobId, "export job")


def download_url(job: records.ProjectJob, info: context.Info) -> str:
    """The download URL of the file."""
    return f"{access.session(info).origin}{files.DOWNLOAD_PATH}?id={job.file_id}"


def done(_job: records.ProjectJob, _info: context.Info) -> str:
    """Always DONE: jobs are completed when they are created."""
    return DONE


def creation(job: records.ProjectJob, _info: context.Info) -> PackageCreationPayload:
    """A package has the id of its job."""
    return PackageCreationPayload(job.id)


def no_reason(_job: records.ProjectJob, _info: context.Info) -> None:
    """Always null: a job that fails is rejected and never created."""


ATTRIBUTES = {"DesBom.bomItems": "items", "DesBomItem.bomItemInstances": "instances"}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.desProjects": projects,
    "Query.desProjectById": project,
    "Query.desDesignItemById": design_item,
    "Query.desReleaseById": release,
    "Query.desBomById": bom,
    "Query.desManufacturePackages": packages,
    "Query.desManufacturePackageById": package,
    "Query.desManufacturePackageCreationJob": package,
    "Query.desProjectExportJob": export_job,
    "DesProject.createdBy": access.record_resolver(design_loaders.USERS, "created_by_id"),
    "DesProject.updatedBy": access.record_resolver(design_loaders.USERS, "updated_by_id"),
    "DesProject.parameters": parameters,
    "DesProject.previewUrl": preview_url,
    "DesProject.latestRevision": latest_revision,
    "DesProject.revisions": revisions,
    "DesProject.design": access.same_record,
    "DesProject.tasks": tasks,
    "DesProject.workflows": workflows,
    "DesDesign.variants": variants,
    "DesDesign.releases": releases,
    "DesDesign.workInProgress": access.same_record,
    "DesWorkInProgress.variants": variants,
    "DesRelease.variants": release_variants,
    "DesRelease.manufacturePackages": project_packages,
    **{
        f"{kind}.{name}": resolver
        for kind in ("DesWipVariant", "DesReleaseVariant")
        for name, resolver in (
            ("bom", access.record_resolver(design_loaders.BOMS, "bom_id")),
            ("pcb", board),
            ("schematics", schematics),
        )
    },
    **{
        f"{kind}.{name}": resolver
        for kind in ("DesPcb", "DesSchematic")
        for name, resolver in (("designItems", design_items), ("commentThreads", document_threads))
    },
    "DesBom.items": bom_items,
    "DesBomItem.component": access.record_resolver(design_loaders.COMPONENTS, "component_id"),
    "DesBomItemInstance.alternateComponent": access.record_resolver(
        design_loaders.COMPONENTS, "alternate_component_id"
    ),
    "DesDesignItem.component": access.record_resolver(design_loaders.COMPONENTS, "component_id"),
    "DesDesignItem.commentThreads": item_threads,
    "DesManufacturePackage.downloadUrl": download_url,
    "DesManufacturePackageCreationJob.payload": creation,
    "DesManufacturePackageCreationJob.status": done,
    "DesProjectExportJob.downloadUrl": download_url,
    "DesProjectExportJob.status": done,
    "DesProjectExportJob.reason": no_reason,
}
