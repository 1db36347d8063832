"""The mutations of design data: changes are visible at once, and errors are reported (contract graphql.md §5.2)."""

import csv
import io
import zipfile
from typing import Any

import aiohttp
from sandbox.design_client import AURORA, NORTHWIND, DesignClient
from support import cases

from proxy.kit import clock

THREADS = """query($p: ID!) { desCommentThreads(projectId: $p) { commentThreadId threadNumber createdAt modifiedAt
  createdBy { userName } context { documentId area { pos2 { x y } } }
  comments { commentId text modifiedAt modifiedBy { userName } mentions { user { userName } } } } }"""
TASKS = """query($p: ID!) { desProjectTasks(projectId: $p, first: 100) { totalCount nodes {
  id name description status priority assignee { userName } comments { commentId text } } } }"""
ERRORS = "errors { message }"


async def threads(designer: DesignClient, project_id: str) -> list[Any]:
    return list((await designer.get(THREADS, p=project_id))["desCommentThreads"])


async def tasks(designer: DesignClient, project_id: str) -> dict[str, Any]:
    return {one["id"]: one for one in (await designer.get(TASKS, p=project_id))["desProjectTasks"]["nodes"]}


async def open_thread(designer: DesignClient, **given: Any) -> tuple[str, dict[str, Any]]:
    """A new thread on the first sheet of a project."""
    project = await designer.project("id design { variants { schematics { documentId } } }")
    document = project["design"]["variants"][0]["schematics"][0]["documentId"]
    asked = {
        "entityId": project["id"],
        "documentId": document,
        "documentType": "SCHEMATIC",
        "commentContextType": "AREA",
        "area": {"pos1": {"x": 1, "y": 2}, "pos2": {"x": 3, "y": 4}},
        "text": "Look here, @grace.okafor.",
        **given,
    }
    made = await designer.change("desCreateCommentThread", f"commentThreadId commentId {ERRORS}", **asked)
    return project["id"], made


async def test_comment_threads_are_made_and_deleted(designer: DesignClient, manual_clock: clock.ManualClock) -> None:
    project_id, made = await open_thread(designer)
    assert made["errors"] == []
    place = {"entityId": project_id, "commentThreadId": made["commentThreadId"]}
    manual_clock.advance(60)
    said = await designer.change("desCreateComment", f"commentId {ERRORS}", **place, text="Why?")
    manual_clock.advance(60)
    await designer.sign_in("grace")
    await designer.change("desUpdateComment", ERRORS, **place, commentId=said["commentId"], text="Why not?")
    *others, thread = await threads(designer, project_id)
    before = len(others) + 1
    assert thread["commentThreadId"] == made["commentThreadId"]
    assert thread["threadNumber"] == before
    assert thread["createdBy"] == {"userName": "ada"}
    assert (thread["createdAt"], thread["modifiedAt"]) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:15:20.000Z")
    assert thread["context"]["area"]["pos2"] == {"x": 3, "y": 4}
    first, second = thread["comments"]
    assert (first["commentId"], first["mentions"]) == (made["commentId"], [{"user": {"userName": "grace.okafor"}}])
    assert (second["text"], second["modifiedBy"]) == ("Why not?", {"userName": "grace"})
    await designer.change("desDeleteComment", ERRORS, **place, commentId=said["commentId"])
    (*_, thread) = await threads(designer, project_id)
    assert [one["commentId"] for one in thread["comments"]] == [made["commentId"]]
    await designer.change("desDeleteCommentThread", ERRORS, **place)
    assert len(await threads(designer, project_id)) == before - 1


async def test_tasks_are_created_updated_commented_and_deleted(designer: DesignClient) -> None:
    project_id = (await designer.project())["id"]
    selection = f"task {{ id status priority assignee {{ userName }} }} {ERRORS}"
    task = {"name": "Measure", "description": "The ripple", "priority": "HIGH"}
    made = (await designer.change("desCreateProjectTask", selection, projectId=project_id, task=task))["task"]
    assert (made["status"], made["priority"], made["assignee"]) == ("TO_DO", "HIGH", {"userName": "ada"})
    of = {"taskId": made["id"]}
    assert await designer.change("desUpdateTask", ERRORS, **of, status="RESOLVED") == {"errors": []}
    kept = (await tasks(designer, project_id))[made["id"]]
    assert (kept["name"], kept["status"]) == ("Measure", "RESOLVED")
    said = await designer.change("desCreateTaskComment", f"comment {{ commentId text }} {ERRORS}", **of, text="12 mV")
    comment = {**of, "commentId": said["comment"]["commentId"]}
    await designer.change("desUpdateTaskComment", ERRORS, **comment, text="11 mV")
    assert (await tasks(designer, project_id))[made["id"]]["comments"][0]["text"] == "11 mV"
    await designer.change("desDeleteTaskComment", ERRORS, **comment)
    assert (await tasks(designer, project_id))[made["id"]]["comments"] == []
    await designer.change("desDeleteTask", ERRORS, **of)
    assert made["id"] not in await tasks(designer, project_id)


async def test_a_task_of_a_workspace_is_in_no_project(designer: DesignClient) -> None:
    selection = f"task {{ id }} {ERRORS}"
    task = {"name": "Tidy up", "description": ""}
    made = (await designer.change("desCreateWorkspaceTask", selection, workspaceUrl=AURORA, task=task))["task"]
    query = "query($u: String!) { desWorkspaceTasks(workspaceUrl: $u, last: 1) { nodes { id } } }"
    assert (await designer.get(query, u=AURORA))["desWorkspaceTasks"]["nodes"] == [made]
    assert made["id"] not in await tasks(designer, (await designer.project())["id"])


async def test_parameters_are_added_or_replaced(designer: DesignClient) -> None:
    before = await designer.project("id parameters { name value }")
    given = [{"name": "Client", "value": "Harbour"}, {"name": "New", "value": "1"}]
    asked = {"projectId": before["id"], "parameters": given}
    await designer.change("desUpdateProjectParameters", ERRORS, **asked)
    added = await designer.project('parameters { name value } named: parameters(names: ["New"]) { value }')
    assert [one["name"] for one in added["parameters"]] == [*(one["name"] for one in before["parameters"]), "New"]
    assert added["parameters"][0] == given[0]
    assert added["named"] == [{"value": "1"}]
    await designer.change("desUpdateProjectParameters", ERRORS, **asked, replaceExisting=True)
    assert (await designer.project("parameters { name value }"))["parameters"] == given


async def test_part_choices_are_added_from_the_catalog_and_removed(designer: DesignClient) -> None:
    query = """query($i: ID!) { desComponentById(id: $i) { manufacturerParts {
      priority partNumber octopartId supplierParts { companyName } } } }"""
    selection = "design { variants { bom { items(first: 1) { nodes { component { id } } } } } }"
    project = await designer.project(selection)
    id_ = project["design"]["variants"][0]["bom"]["items"]["nodes"][0]["component"]["id"]
    first = (await designer.get(query, i=id_))["desComponentById"]["manufacturerParts"]
    parts = [
        {"companyName": "Texas Instruments", "partNumber": "SN74S74N"},
        {"companyName": "Nobody", "partNumber": "X-1"},
    ]
    assert await designer.change("desAddComponentPartChoices", ERRORS, componentId=id_, manufacturerParts=parts) == {
        "errors": []
    }
    held = (await designer.get(query, i=id_))["desComponentById"]["manufacturerParts"]
    assert [one["priority"] for one in held] == list(range(1, len(first) + 3))
    assert held[-2]["octopartId"]
    assert held[-2]["supplierParts"]
    assert (held[-1]["octopartId"], held[-1]["supplierParts"]) == (None, [])
    await designer.change("desRemoveComponentPartChoices", ERRORS, componentId=id_, manufacturerParts=parts[:1])
    assert len((await designer.get(query, i=id_))["desComponentById"]["manufacturerParts"]) == len(first) + 1
    await designer.change("desRemoveComponentPartChoices", ERRORS, componentId=id_)
    assert (await designer.get(query, i=id_))["desComponentById"]["manufacturerParts"] == []


async def test_a_component_is_released_into_a_new_folder(designer: DesignClient) -> None:
    asked = {
        "workspaceUrl": NORTHWIND,
        "componentItemName": "CMP-NEW",
        "componentReleaseFolder": "Components\\Grippers",
        "parameters": [{"name": "Force", "value": "40 N"}],
    }
    assert await designer.change("desReleaseComponent", ERRORS, **asked) == {"errors": []}
    query = """query($u: String!) { desLibrary(workspaceUrl: $u) {
      components(where: {name: {eq: "CMP-NEW"}}) { nodes {
        folder { name path } details { parameters { name value } }
        revision { details { lifeCycleState { name } } } } } } }"""
    (found,) = (await designer.get(query, u=NORTHWIND))["desLibrary"]["components"]["nodes"]
    assert found["folder"] == {"name": "Grippers", "path": "Components\\Grippers"}
    assert found["details"]["parameters"] == asked["parameters"]
    assert found["revision"]["details"]["lifeCycleState"]["name"] == "New From Design"
    again = await designer.change("desReleaseComponent", ERRORS, **asked)
    assert again["errors"] == [{"message": "there is a component CMP-NEW already"}]


async def test_an_export_and_a_package_can_be_downloaded(designer: DesignClient) -> None:
    project = await designer.project("id design { variants { name bom { items(first: 1000) { totalCount } } } }")
    lines = project["design"]["variants"][0]["bom"]["items"]["totalCount"]
    of = {"projectId": project["id"]}
    job = await designer.change("desCreateProjectExportJob", f"projectExportJobId {ERRORS}", **of, exportGerber={})
    query = "query($i: String!) { desProjectExportJob(projectExportJobId: $i) { status reason downloadUrl } }"
    export = (await designer.get(query, i=job["projectExportJobId"]))["desProjectExportJob"]
    assert (export["status"], export["reason"]) == ("DONE", None)
    package = await designer.change(
        "desCreateManufacturePackage", f"jobId {ERRORS}", **of, name="For the maker.zip", shareWith=["m@example.com"]
    )
    query = """query($i: ID!) { desManufacturePackageCreationJob(id: $i) { status payload { packageId } }
      desManufacturePackageById(id: $i) { name downloadUrl } desManufacturePackages { id } }"""
    made = await designer.get(query, i=package["jobId"])
    assert made["desManufacturePackageCreationJob"] == {"status": "DONE", "payload": {"packageId": package["jobId"]}}
    assert made["desManufacturePackages"] == [{"id": package["jobId"]}]
    for url, name in (
        (export["downloadUrl"], "Gerber.zip"),
        (made["desManufacturePackageById"]["downloadUrl"], "For%20the%20maker.zip"),
    ):
        async with designer.session.get(url) as response:
            assert name in response.headers["Content-Disposition"]
            archive = zipfile.ZipFile(io.BytesIO(await response.read()))
        bom = archive.read("Weather Station Mk2 Base BOM.csv").decode()
        assert len(list(csv.DictReader(io.StringIO(bom)))) == lines


async def test_an_uploaded_file_becomes_a_project(designer: DesignClient) -> None:
    form = aiohttp.FormData()
    form.add_field("file", b"PK...", filename="Board.zip")
    upload = f"{designer.sandbox.url}/File/Upload"
    async with designer.session.post(upload, data=form, headers={"token": designer.token}) as response:
        assert response.status == 200
        file_id = await response.text()
    query = "query($u: String!) { desLibrary(workspaceUrl: $u) { folders { id } } }"
    folder = (await designer.get(query, u=AURORA))["desLibrary"]["folders"][0]["id"]
    asked = {"workspaceUrl": AURORA, "parentFolderId": folder, "name": "Uploaded", "fileId": file_id}
    made = await designer.change("desUploadProject", f"projectId {ERRORS}", **asked)
    selection = """id latestRevision { author files { path } }
      design { variants { bom { items { totalCount } } pcb { documentId } } }"""
    shown = await designer.project(selection, AURORA, "Uploaded")
    assert shown["id"] == made["projectId"]
    assert shown["latestRevision"] == {"author": "ada", "files": [{"path": "Board.zip"}]}
    assert shown["design"]["variants"] == [{"bom": {"items": {"totalCount": 0}}, "pcb": None}]
    async with designer.session.get(f"{designer.sandbox.url}/File/Download?id={file_id}") as response:
        assert await response.read() == b"PK..."


@cases.parametrize(
    "name, selection, given, message",
    (
        "desReleaseComponent",
        "",
        {"workspaceUrl": AURORA, "componentItemName": " ", "parameters": []},
        "a component needs a name",
    ),
)
async def test_a_rejected_mutation_has_its_errors_in_the_payload(
    designer: DesignClient, name: str, selection: str, given: dict[str, Any], message: str
) -> None:
    payload = await designer.change(name, f"{selection} {ERRORS}", **given)
    assert payload["errors"] == [{"message": message}]
    assert not any(value for key, value in payload.items() if key != "errors")


async def test_a_comment_needs_a_text_and_a_thread_of_its_project(designer: DesignClient) -> None:
    project_id, made = await open_thread(designer)
    place = {"commentThreadId": made["commentThreadId"]}
    other = (await designer.project("id", AURORA, "Data Logger USB"))["id"]
    wrong = await designer.change("desCreateComment", f"commentId {ERRORS}", entityId=other, **place, text="x")
    assert wrong["errors"] == [{"message": f"the project has no comment thread {made['commentThreadId']}"}]
    empty = await designer.change("desCreateComment", f"commentId {ERRORS}", entityId=project_id, **place, text=" ")
    assert empty == {"commentId": "", "errors": [{"message": "a comment needs a text"}]}
    asked = {"entityId": project_id, **place, "commentId": "a/b?c"}
    assert (await designer.change("desDeleteComment", ERRORS, **asked))["errors"]
    _, nowhere = await open_thread(designer, documentId="none")
    assert nowhere["errors"] == [{"message": "the project has no document none"}]


async def test_a_rejected_task_is_a_field_error(designer: DesignClient) -> None:
    query = """mutation { desCreateWorkspaceTask(input: {workspaceUrl: "%s", task: {name: " ", description: ""}})
      { task { id } } }"""
    response = await designer.ask(query % AURORA)
    assert response.messages == ["a task needs a name"]
    assert response.body["data"] is None


async def test_an_export_needs_exactly_one_kind(designer: DesignClient) -> None:
    of = {"projectId": (await designer.project())["id"]}
    choices: tuple[dict[str, Any], ...] = ({}, {"exportGerber": {}, "exportIdf": {}})
    for kinds in choices:
        job = await designer.change("desCreateProjectExportJob", f"projectExportJobId {ERRORS}", **of, **kinds)
        assert job["projectExportJobId"] is None
        assert "exactly one of" in job["errors"][0]["message"]
    wrong = await designer.change("desCreateProjectExportJob", ERRORS, **of, exportIdf={}, variantName="None")
    assert wrong["errors"] == [{"message": "the project has no variant None"}]
