"""Changes of design data: what a new record gets beside the fields of the request, and what a request may change.

A function gets the store, the user `by` who makes the change, and the fields of the request. Errors are ValueError or
LookupError, whose texts are for the client.
"""

import csv
import io
import re
import zipfile
from collections.abc import Callable

from nexar_sandbox.catalog import records as catalog_records
from nexar_sandbox.design import design_store, samples
from nexar_sandbox.design.resources import Record

# A user name after an @, without a full stop after it.
MENTION = re.compile(r"@(\w+(?:[.-]\w+)*)")
# Time of the files in a ZIP: fixed, so that equal content gives equal bytes.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def create_thread(store: design_store.DesignStore, by: str, fields: Record) -> Record:
    (others,) = store.where("threads", "projectId", [fields["projectId"]])
    number = max((thread["threadNumber"] for thread in others), default=0) + 1
    comment = new_comment(store, by, fields.pop("text"))
    thread = store.create("threads", by, fields | {"threadNumber": number, "status": 0, "comments": [comment]})
    publish(store, "ThreadAdded", thread, comment)
    return thread


def create_task(store: design_store.DesignStore, by: str, fields: Record) -> Record:
    """Create a task of a project, or of the workspace if there is no project, assigned to its author."""
    _require_text(fields["name"], "a task needs a name")
    own = {"priority": "UNDEFINED", "status": "TO_DO", "refId": f"T-{len(store.tables['tasks']) + 1}"}
    return store.create("tasks", by, {**own, "assigneeId": by, "comments": [], **fields})


def create_component(store: design_store.DesignStore, by: str, fields: Record) -> Record:
    """Create a component in its first revision, in the folder with this id or path."""
    name, workspace_id, path = fields["name"], fields["workspaceId"], fields.pop("folderPath")
    _require_text(name, "a component needs a name")
    components = store.tables["components"].values()
    if any(component["name"] == name and component["workspaceId"] == workspace_id for component in components):
        raise ValueError(f"there is a component {name} already")
    if fields["folderId"] is None and path is not None:
        fields["folderId"] = _folder(store, by, workspace_id, path)["id"]
    component = store.create("components", by, fields | {"footprintName": "", "manufacturerParts": []})
    component |= samples.component_fields(component["id"])
    return component


def _folder(store: design_store.DesignStore, by: str, workspace_id: str, path: str) -> Record:
    """Return the folder with this path, which is created if it is missing."""
    for folder in store.tables["folders"].values():
        if folder["path"] == path and folder["workspaceId"] == workspace_id:
            return folder
    name = path.replace("/", "\\").rpartition("\\")[2]
    kind = {"description": "", "folderType": "COMPONENT_LIBRARY"}
    return store.create("folders", by, {"workspaceId": workspace_id, "name": name, "path": path, **kind})


def choose_parts(store: design_store.DesignStore, by: str, component: Record, fields: Record) -> Record:
    """`add` part choices (companyName, partNumber) at the end, or `remove` some; None removes all."""
    remove = fields.get("remove", ())
    choices = {(each["companyName"], each["partNumber"]): each for each in component["manufacturerParts"]}
    if remove is None:
        choices = {}
    for each in remove or ():
        choices.pop((each["companyName"], each["partNumber"]), None)
    for each in fields.get("add", ()):
        key = each["companyName"], each["partNumber"]
        choices.setdefault(key, _part_choice(store, *key))
    ranked = [{**choice, "priority": place} for place, choice in enumerate(choices.values(), 1)]
    return store.update(component, by, {"manufacturerParts": ranked})


def _part_choice(store: design_store.DesignStore, company: str, number: str) -> Record:
    """Return the part of the catalog as part choice; without suppliers if the catalog does not have it."""
    query = catalog_records.MatchQuery(mpn=number, manufacturer=company)
    ids = store.catalog.match(query, catalog_records.SearchConditions()).page(0, 1)
    part = store.catalog.part(ids[0]) if ids else None
    if part is not None:
        return samples.part_choice(part, store.catalog, 0)
    return {"companyName": company, "partNumber": number, "octopartId": None, "supplierParts": []}


def create_project(store: design_store.DesignStore, by: str, fields: Record) -> Record:
    """Create a project of an uploaded file, with one variant without parts: the file is not parsed."""
    file_id = fields.pop("fileId")
    if file_id not in store.files:
        raise LookupError(f"there is no file {file_id}")
    _require_text(fields["name"], "a project needs a name")
    commit = {"revisionId": store.new_id("commit"), "message": "Upload", "author": store.find("users", by)["userName"]}
    upload = store.stamped(by, {**commit, "files": [{"path": store.files[file_id][0]}]})
    project = store.create("projects", by, fields | {"parameters": [], "revisions": [upload]})
    id_ = project["id"]
    place = {"projectId": id_, "workspaceId": project["workspaceId"]}
    bom = store.create("boms", by, {**place, "variantName": "Base", "items": []})
    variant = {"name": "Base", "bomId": bom["id"], "pcb": None, "schematics": []}
    own = {"url": f"{project['workspaceUrl']}/designs/{id_}", "projectId": samples.stable_id(id_, "guid")}
    return store.update(project, by, {**own, "variants": [variant]})


def update_parameters(store: design_store.DesignStore, by: str, project: Record, fields: Record) -> Record:
    before = [] if fields["replaceExisting"] else project["parameters"]
    merged = {parameter["name"]: parameter for parameter in (*before, *fields["parameters"])}
    return store.update(project, by, {"parameters": list(merged.values())})


def create_job(store: design_store.DesignStore, by: str, fields: Record) -> Record:
    """Create a package or an export of a variant (None: the first), which is complete at once: a ZIP with the bill of
    materials as CSV."""
    project, name = store.find("projects", fields["projectId"]), fields.pop("variantName")
    variant = next((variant for variant in project["variants"] if name in (None, variant["name"])), None)
    if variant is None:
        raise LookupError(f"the project has no variant {name}")
    file_id = store.add_file(fields["name"], _zip(store, project, store.find("boms", variant["bomId"])))
    return store.create("jobs", by, fields | {"fileId": file_id, "status": "DONE"})


def _zip(store: design_store.DesignStore, project: Record, bom: Record) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(f"{project['name']} {bom['variantName']} BOM.csv", ZIP_TIME), _bom(store, bom))
    return written.getvalue()


def _bom(store: design_store.DesignStore, bom: Record) -> str:
    rows = []
    for item in bom["items"]:
        component = store.find("components", item["componentId"])
        first = next(iter(component["manufacturerParts"]), {"companyName": "", "partNumber": ""})
        fitted = [instance["designator"] for instance in item["bomItemInstances"] if instance["isFitted"]]
        rows.append((" ".join(fitted), len(fitted), component["name"], first["companyName"], first["partNumber"]))
    text = io.StringIO()
    csv.writer(text).writerows([("Designators", "Quantity", "Component", "Manufacturer", "Part number"), *rows])
    return text.getvalue()


def new_comment(store: design_store.DesignStore, by: str, text: str) -> Record:
    _require_text(text, "a comment needs a text")
    named = set(MENTION.findall(text))
    mentions = [{"userId": user["id"]} for user in store.tables["users"].values() if user["userName"] in named]
    return store.stamped(by, {"commentId": store.new_id("comment"), "text": text, "mentions": mentions})


def update_comment(store: design_store.DesignStore, by: str, comment: Record, text: str) -> Record:
    _require_text(text, "a comment needs a text")
    return store.update(comment, by, {"text": text})


def find_comment(parent: Record, id_: str) -> Record:
    comment: Record | None = next((each for each in parent["comments"] if each["commentId"] == id_), None)
    if comment is None:
        raise LookupError(f"there is no comment {id_}")
    return comment


def publish(store: design_store.DesignStore, action: str, parent: Record, comment: Record) -> None:
    """Publish an event, unless the comment is on a task. The values of `action` are ours: the contract has none."""
    if "threadNumber" in parent:
        store.comment_events.publish({"action": action, "thread": parent, "comment": comment})


def delete_thread(store: design_store.DesignStore, thread: Record) -> None:
    for comment in thread["comments"]:
        publish(store, "CommentDeleted", thread, comment)


def _require_text(text: str, message: str) -> None:
    if not text.strip():
        raise ValueError(message)


# By table: other tables cannot be changed so. An update without an entry replaces the fields.
CREATE: dict[str, Callable[..., Record]] = {
    "threads": create_thread,
    "tasks": create_task,
    "components": create_component,
    "projects": create_project,
    "jobs": create_job,
}
UPDATE: dict[str, Callable[..., Record]] = {
    "tasks": lambda store, by, task, fields: store.update(task, by, fields),
    "components": choose_parts,
    "projects": update_parameters,
}
DELETE: dict[str, Callable[[design_store.DesignStore, Record], None]] = {
    "threads": delete_thread,
    "tasks": lambda _store, _task: None,
}
