"""What the query service sends to change something: the bodies of POST and PATCH. `by` is the id of who does it."""

import msgspec

from proxy.sandbox.design import records


class Draft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all have."""

    by: str


class Thread(Draft, frozen=True, kw_only=True):
    """A new conversation with its first comment."""

    project_id: str
    workspace_id: str
    text: str
    context: records.Context
    document_name: str | None = None


class Text(Draft, frozen=True, kw_only=True):
    """A new comment, or other words for one."""

    text: str


class Task(Draft, frozen=True, kw_only=True):
    """A new task; without a project it is the workspace's."""

    workspace_id: str
    name: str
    description: str
    project_id: str | None = None
    priority: str = "UNDEFINED"
    status: str = "TO_DO"


class TaskChange(Draft, frozen=True, kw_only=True):
    """What is None stays."""

    name: str | None = None
    description: str | None = None
    priority: str | None = None
    status: str | None = None


class Parameters(Draft, frozen=True, kw_only=True):
    """Parameters of a project, added to those that there are or in their place."""

    parameters: tuple[records.Named, ...]
    replace: bool = False


class Project(Draft, frozen=True, kw_only=True):
    """A project that was uploaded."""

    workspace_id: str
    workspace_url: str
    name: str
    description: str
    file_id: str


class Job(Draft, frozen=True, kw_only=True):
    """A package or an export of one variant of a project (None: the first)."""

    project_id: str
    name: str
    kind: str
    is_package: bool
    variant_name: str | None = None


class Workflow(Draft, frozen=True, kw_only=True):
    """A process to start."""

    workspace_id: str
    definition_id: str
    name: str | None = None
    variables: tuple[records.Named, ...] = ()


class Component(Draft, frozen=True, kw_only=True):
    """A new component; `folder_id` or the folder's path."""

    workspace_id: str
    name: str
    comment: str = ""
    description: str = ""
    folder_id: str | None = None
    folder_path: str | None = None
    parameters: tuple[records.Named, ...] = ()


class PartChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A part by maker and number."""

    company_name: str
    part_number: str


class Choices(Draft, frozen=True, kw_only=True):
    """Part choices to add, and to remove; None removes all."""

    add: tuple[PartChoice, ...] = ()
    remove: tuple[PartChoice, ...] | None = ()
