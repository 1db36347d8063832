"""Bodies of POST and PATCH requests from the query service to the design services."""

import msgspec

from nexar_sandbox.design import records


class ChangeInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Common fields. `by`: the id of the user who makes the change."""

    by: str


class CommentThreadInput(ChangeInput, frozen=True, kw_only=True):
    """A new comment thread with its first comment."""

    project_id: str
    workspace_id: str
    text: str
    context: records.CommentContext
    document_name: str | None = None


class CommentInput(ChangeInput, frozen=True, kw_only=True):
    """The text of a new or changed comment."""

    text: str


class TaskInput(ChangeInput, frozen=True, kw_only=True):
    """A new task of a project, or of the workspace if there is no project."""

    workspace_id: str
    name: str
    description: str
    project_id: str | None = None
    priority: str = "UNDEFINED"
    status: str = "TO_DO"


class TaskUpdateInput(ChangeInput, frozen=True, kw_only=True):
    """A changed task; fields that are None stay as they are."""

    name: str | None = None
    description: str | None = None
    priority: str | None = None
    status: str | None = None


class ProjectParametersInput(ChangeInput, frozen=True, kw_only=True):
    """Parameters of a project, added to the existing ones or replacing them."""

    parameters: tuple[records.DesignParameter, ...]
    replace: bool = False


class ProjectUploadInput(ChangeInput, frozen=True, kw_only=True):
    """A project to create from an uploaded file."""

    workspace_id: str
    workspace_url: str
    name: str
    description: str
    file_id: str


class ProjectJobInput(ChangeInput, frozen=True, kw_only=True):
    """A manufacture package or an export of one variant of a project (None: the first)."""

    project_id: str
    name: str
    kind: str
    is_package: bool
    variant_name: str | None = None


class WorkflowInput(ChangeInput, frozen=True, kw_only=True):
    """A workflow to start."""

    workspace_id: str
    definition_id: str
    name: str | None = None
    variables: tuple[records.DesignParameter, ...] = ()


class ComponentInput(ChangeInput, frozen=True, kw_only=True):
    """A new component, in the folder with this id or path."""

    workspace_id: str
    name: str
    comment: str = ""
    description: str = ""
    folder_id: str | None = None
    folder_path: str | None = None
    parameters: tuple[records.DesignParameter, ...] = ()


class PartChoiceInput(msgspec.Struct, frozen=True, kw_only=True):
    """A part by maker and MPN."""

    company_name: str
    part_number: str


class PartChoicesInput(ChangeInput, frozen=True, kw_only=True):
    """Part choices to add, and to remove; None removes all."""

    add: tuple[PartChoiceInput, ...] = ()
    remove: tuple[PartChoiceInput, ...] | None = ()
