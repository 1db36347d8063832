"""Records of the design services: frozen values, sent as JSON to the query service.

Names are the schema's field names in snake case (contract graphql.md §5.3); ids are opaque. A field that ends in `_id`
refers to another record. Times are RFC 3339 texts in UTC.
"""

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of all records."""


class DesignParameter(Record, frozen=True, kw_only=True):
    """A parameter of a project, a component, a design item or a workflow."""

    name: str
    value: str


class UserGroup(Record, frozen=True, kw_only=True):
    """A group of users, in one workspace."""

    id: str
    name: str


class DesignUser(Record, frozen=True, kw_only=True):
    """A person. `id` is the subject of the person's tokens."""

    id: str
    user_name: str
    email: str
    first_name: str
    last_name: str
    workspace_ids: tuple[str, ...] = ()
    group_ids: tuple[str, ...] = ()


class DesignLibrary(Record, frozen=True, kw_only=True):
    """The component library of a workspace."""

    workspace_id: str
    name: str
    description: str
    version: str
    created_by_id: str
    updated_by_id: str
    created_at: str
    updated_at: str


class Workspace(Record, frozen=True, kw_only=True):
    """A workspace of a company, with its user groups and library."""

    id: str
    name: str
    url: str
    auth_id: str
    description: str
    is_default: bool
    region: str
    groups: tuple[UserGroup, ...]
    library: DesignLibrary


class Folder(Record, frozen=True, kw_only=True):
    """A folder of a library."""

    id: str
    workspace_id: str
    name: str
    path: str
    description: str
    folder_type: str
    created_by_id: str
    updated_by_id: str
    created_at: str
    updated_at: str
    parent_id: str | None = None


class SupplierPrice(Record, frozen=True, kw_only=True):
    """A price from a quantity on."""

    currency: str
    price: float
    break_quantity: int


class SupplierStock(Record, frozen=True, kw_only=True):
    """Stock at a location."""

    location_name: str
    quantity: float


class SupplierPart(Record, frozen=True, kw_only=True):
    """An offer of a seller for a part choice."""

    company_name: str
    part_number: str
    prices: tuple[SupplierPrice, ...] = ()
    stocks: tuple[SupplierStock, ...] = ()


class ManufacturerPart(Record, frozen=True, kw_only=True):
    """A part choice: a part of the catalog that a component may be bought as. `priority` 1 is the first."""

    company_name: str
    part_number: str
    priority: int
    octopart_id: str | None = None
    supplier_parts: tuple[SupplierPart, ...] = ()


class LifeCycleState(Record, frozen=True, kw_only=True):
    """The life cycle state of a revision."""

    life_cycle_state_id: str
    name: str
    description: str
    state_index: int
    is_allowed_in_design: bool


class Component(Record, frozen=True, kw_only=True):
    """A component of a library, with its one revision."""

    id: str
    workspace_id: str
    folder_id: str | None
    item_internal_id: str
    revision_id: str
    name: str
    comment: str
    description: str
    footprint_name: str
    created_at: str
    modified_at: str
    is_managed: bool
    life_cycle_state: LifeCycleState
    parameters: tuple[DesignParameter, ...] = ()
    manufacturer_parts: tuple[ManufacturerPart, ...] = ()


class FileChange(Record, frozen=True, kw_only=True):
    """A file changed by a commit."""

    path: str


class VcsRevision(Record, frozen=True, kw_only=True):
    """A commit of a project's version control."""

    revision_id: str
    message: str
    author: str
    created_at: str
    files: tuple[FileChange, ...] = ()


class DesignDocument(Record, frozen=True, kw_only=True):
    """A schematic sheet or the board."""

    document_id: str
    document_name: str
    is_pcb: bool


class Variant(Record, frozen=True, kw_only=True):
    """A variant of a design, with its bill of materials."""

    name: str
    bom_id: str


class Project(Record, frozen=True, kw_only=True):
    """A project: one board with its documents."""

    id: str
    project_id: str
    workspace_id: str
    workspace_url: str
    url: str
    name: str
    description: str
    created_by_id: str
    updated_by_id: str
    created_at: str
    updated_at: str
    parameters: tuple[DesignParameter, ...] = ()
    revisions: tuple[VcsRevision, ...] = ()
    documents: tuple[DesignDocument, ...] = ()
    variants: tuple[Variant, ...] = ()


class BomItemInstance(Record, frozen=True, kw_only=True):
    """One placed component of a bill of materials line."""

    designator: str
    is_fitted: bool = True
    alternate_component_id: str | None = None


class BomItem(Record, frozen=True, kw_only=True):
    """A line of a bill of materials."""

    component_id: str
    quantity: int
    instances: tuple[BomItemInstance, ...]


class Bom(Record, frozen=True, kw_only=True):
    """The bill of materials of a variant."""

    id: str
    project_id: str
    variant_name: str
    items: tuple[BomItem, ...] = ()


class Release(Record, frozen=True, kw_only=True):
    """A published version of a project."""

    id: str
    project_id: str
    release_id: str
    description: str
    created_at: str
    variants: tuple[Variant, ...] = ()


class DesignItem(Record, frozen=True, kw_only=True):
    """A component placed on a sheet and the board of a project."""

    id: str
    project_id: str
    sheet_id: str
    designator: str
    component_id: str
    comment: str
    description: str
    footprint_name: str
    rotation: float
    parameters: tuple[DesignParameter, ...] = ()


class ProjectJob(Record, frozen=True, kw_only=True):
    """A manufacture package or an export, complete at once. `file_id` is the file to download."""

    id: str
    project_id: str
    name: str
    kind: str
    file_id: str
    created_at: str
    is_package: bool
    release_id: str | None = None


class WorkflowDefinition(Record, frozen=True, kw_only=True):
    """A workflow that can be started."""

    workflow_definition_id: str
    workspace_id: str
    name: str
    workflow_type: str
    created_at: str
    created_by: str
    variables: tuple[DesignParameter, ...] = ()


class Workflow(Record, frozen=True, kw_only=True):
    """A workflow that was started."""

    workflow_id: str
    workspace_id: str
    name: str
    process_definition_id: str
    process_definition_name: str
    workflow_type: str
    status: str
    assignee: str
    created_by: str
    created_at: str
    modified_at: str
    project_id: str | None = None
    state: str | None = None
    ended_at: str | None = None
    variables: tuple[DesignParameter, ...] = ()


class Position2D(Record, frozen=True, kw_only=True):
    """A position on a document, in the document's units."""

    x: int
    y: int


class Rectangle(Record, frozen=True, kw_only=True):
    """A rectangle by two corners."""

    pos1: Position2D = Position2D(x=0, y=0)
    pos2: Position2D = Position2D(x=0, y=0)


class CommentContext(Record, frozen=True, kw_only=True):
    """The object that a comment thread is about."""

    document_id: str | None = None
    object_id: str | None = None
    area: Rectangle = Rectangle()
    release_id: str | None = None


class Comment(Record, frozen=True, kw_only=True):
    """A comment, in a thread or on a task."""

    comment_id: str
    text: str
    created_by_id: str
    modified_by_id: str
    created_at: str
    modified_at: str
    mentioned_ids: tuple[str, ...] = ()


class CommentThread(Record, frozen=True, kw_only=True):
    """A comment thread about an object of a design. `status` 0 is open, 1 resolved."""

    id: str
    project_id: str
    workspace_id: str
    thread_number: int
    status: int
    created_by_id: str
    modified_by_id: str
    created_at: str
    modified_at: str
    context: CommentContext
    document_name: str | None = None
    assigned_to_id: str | None = None
    comments: tuple[Comment, ...] = ()


class Task(Record, frozen=True, kw_only=True):
    """A task of a project or of the workspace."""

    id: str
    workspace_id: str
    ref_id: str
    name: str
    description: str
    priority: str
    status: str
    assignee_id: str
    created_by_id: str
    modified_by_id: str
    created_at: str
    modified_at: str
    project_id: str | None = None
    comments: tuple[Comment, ...] = ()


class CommentEvent(Record, frozen=True, kw_only=True):
    """A change of a comment. The values of `action` are our choice: the contract has none."""

    action: str
    workspace_id: str
    thread: CommentThread
    comment: Comment
