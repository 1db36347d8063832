"""State file of a sandbox: what is restored, when it is written, and invalid files."""

import json
import re
import shutil
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from sandbox.page_browser import PageBrowser
from support.sandbox_client import StartSandbox

from nexar_sandbox import applications, state, user_directory
from nexar_sandbox.identity import keys
from proxy.kit import clock
from sandbox import code_flow as desks
from sandbox import design_client as designers

SEARCH = '{ supSearch(q: "", limit: 7) { results { part { mpn } } } }'
CREATE = ("desCreateProjectTask", "task { id } errors { message }")
TASKS = "query($p: ID!) { desProjectTasks(projectId: $p, first: 100) { nodes { id } } }"
Opens = Callable[[], AbstractAsyncContextManager[desks.CodeFlow]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sandbox.state"


@pytest.fixture
def start_on(start: StartSandbox, path: Path) -> Opens:
    """Starts a sandbox on the file, with an authorization code flow."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[desks.CodeFlow]:
        given = (applications.DEFAULT_APPLICATION, desks.DESIGN)
        async with (
            start(applications=given, token_windows=(), state=path) as caller,
            PageBrowser(caller.sandbox.url) as visitor,
        ):
            yield desks.CodeFlow(caller, visitor)

    return opened


async def test_users_and_applications_are_restored(start_on: Opens) -> None:
    ada, grace = user_directory.DEFAULT_USERS
    async with start_on() as flow:
        sandbox = flow.caller.sandbox
        sandbox.users.replace_organization(replace(user_directory.DEFAULT_ORGANIZATION, name="Renamed"))
        sandbox.users.replace(replace(ada, name="Ada Lovelace"))
        sandbox.users.remove(grace.id)
        sandbox.applications.replace(replace(desks.DESIGN, name="Changed"))
        sandbox.applications.add(desks.OTHER)
        sandbox.applications.choose_for_ide(desks.OTHER.application_id)
        sandbox.applications.remove(applications.DEFAULT_APPLICATION.application_id)
        before = (sandbox.users.organizations, sandbox.users.all, sandbox.applications.all)
    async with start_on() as flow:
        sandbox = flow.caller.sandbox
        assert (sandbox.users.organizations, sandbox.users.all, sandbox.applications.all) == before
        assert sandbox.applications.ide_application(user_directory.DEFAULT_ORGANIZATION.id) == desks.OTHER
        assert [one.name for one in sandbox.applications.deleted_by(user_directory.DEFAULT_ORGANIZATION.id)] == [
            applications.DEFAULT_APPLICATION.name
        ]
        assert (await flow.token("client_credentials", applications.DEFAULT_APPLICATION)).status == 400
        assert (await flow.token("client_credentials", desks.OTHER, scope="supply.domain")).status == 200


async def test_part_usage_is_restored(start_on: Opens, manual_clock: clock.ManualClock) -> None:
    id_ = applications.DEFAULT_APPLICATION.application_id
    async with start_on() as flow:
        assert (await flow.caller.ask(SEARCH)).status == 200
    async with start_on() as flow:
        assert flow.caller.sandbox.part_usage.used(id_) == 7
        assert (await flow.caller.ask(SEARCH)).status == 200
    manual_clock.advance(31 * 86_400)
    async with start_on() as flow:
        usage = flow.caller.sandbox.part_usage
        assert (usage.used(id_), usage.history(id_)) == (0, [("2023-11", 14)])


async def test_tokens_and_revocations_are_restored(start_on: Opens) -> None:
    async with start_on() as flow:
        good, ended = [(await flow.token("client_credentials")).body["access_token"] for _ in range(2)]
        flow.caller.sandbox.keys.rotate(keys.generate_key())
        newer = (await flow.token("client_credentials")).body["access_token"]
        secret = {"client_id": desks.DESIGN.client_id, "client_secret": desks.DESIGN.client_secret}
        url = flow.caller.sandbox.url + "/connect/revocation"
        async with flow.caller.session.post(url, data={"token": ended, **secret}) as response:
            assert response.status == 200
    async with start_on() as flow:
        assert [await flow.is_good(token) for token in (good, newer, ended)] == [True, True, False]


async def test_sessions_consents_and_refresh_tokens_are_restored(start_on: Opens) -> None:
    async with start_on() as flow:
        first = (await flow.redeem(await flow.code())).body["refresh_token"]
        second = (await flow.token("refresh_token", refresh_token=first)).body["refresh_token"]
        cookies = [morsel.OutputString() for morsel in flow.visitor.jar]
    async with start_on() as flow:
        third = await flow.token("refresh_token", refresh_token=second)
        assert third.status == 200
        # The first was used before the restart: whoever brings it again ends them all.
        assert (await flow.token("refresh_token", refresh_token=first)).status == 400
        again = await flow.token("refresh_token", refresh_token=third.body["refresh_token"])
        assert again.status == 400
        assert not await flow.is_good(third.body["access_token"])
        # Another port has another cookie; its value is as good.
        value = cookies[0].partition("=")[2].partition(";")[0]
        name = f"sandbox_session_{flow.caller.sandbox.port}"
        flow.visitor.jar.update_cookies({name: value}, flow.visitor.url)
        seen = await flow.ask()
        assert seen.address.query["code"]


async def test_the_state_file_is_private_and_has_no_password(start_on: Opens, path: Path) -> None:
    path.touch(0o644)
    async with start_on() as flow:
        refresh = (await flow.redeem(await flow.code())).body["refresh_token"]
        for one in path.parent.iterdir():
            assert stat.S_IMODE(one.stat().st_mode) == 0o600
    raw = path.read_bytes()
    assert user_directory.DEFAULT_PASSWORD.encode() not in raw
    assert refresh.encode() not in raw


async def test_design_data_is_restored(start_design: designers.StartDesignSandbox, path: Path) -> None:
    task = {"name": "Measure", "description": "The ripple", "priority": "HIGH"}
    board = "id design { variants { bom { items(first: 3) { nodes { component { id name } } } } } }"
    form = aiohttp.FormData()
    form.add_field("file", b"copper", filename="board.zip")
    async with start_design(state=path) as designer:
        project = await designer.project(board)
        first = (await designer.change(*CREATE, projectId=project["id"], task=task))["task"]["id"]
        url, token = designer.sandbox.url, {"token": designer.token}
        async with designer.session.post(f"{url}/File/Upload", data=form, headers=token) as response:
            uploaded = await response.text()
    async with start_design(state=path, seed=2) as designer:  # the seed was for the beginning
        assert await designer.project(board) == project
        second = (await designer.change(*CREATE, projectId=project["id"], task=task))["task"]["id"]
        assert second != first
        found = (await designer.get(TASKS, p=project["id"]))["desProjectTasks"]["nodes"]
        assert {first, second} <= {one["id"] for one in found}
        async with designer.session.get(f"{designer.sandbox.url}/File/Download", params={"id": uploaded}) as response:
            assert await response.read() == b"copper"


async def test_a_state_file_is_locked_by_one_sandbox(start_on: Opens, path: Path) -> None:
    async with start_on():
        with pytest.raises(ValueError, match=f"^{path}: another sandbox is using it$"):
            async with start_on():
                pass
    async with start_on():
        pass


def _marked(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    database.execute(statement)
    database.commit()
    database.close()


def _text(path: Path) -> None:
    path.write_text("a letter to a friend, " * 100, encoding="utf-8")


def _foreign(path: Path) -> None:
    _marked(path, "CREATE TABLE letters (text)")


def _begun(path: Path) -> None:
    state_store = state.StateFile(path)
    state_store.complete_creation()
    state_store.close()


def _newer(path: Path) -> None:
    _begun(path)
    _marked(path, f"PRAGMA user_version = {state.VERSION + 1}")


def _earlier(path: Path) -> None:
    _begun(path)
    _marked(path, "PRAGMA user_version = 1")


def _odd_row(path: Path) -> None:
    _begun(path)
    _marked(path, "INSERT INTO row VALUES ('user', 'u-1', '{\"id\": 1}')")


def _no_such_address(path: Path) -> None:
    _begun(path)
    user = json.dumps({"id": "u-1", "email": "nobody", "name": "N", "password": "x", "organization": "o"})
    _marked(path, f"INSERT INTO row VALUES ('user', 'u-1', '{user}')")


def _no_key(path: Path) -> None:
    _begun(path)
    _marked(path, """INSERT INTO row VALUES ('key', 'K', '{"pem": "x"}')""")


def _torn(path: Path) -> None:
    state_store = state.StateFile(path)
    rows = state_store.rows("user", user_directory.SandboxUser)
    for number in range(200):
        rows[f"u-{number}"] = replace(user_directory.DEFAULT_USERS[0], name="N" * 500)
    state_store.complete_creation()
    state_store.close()
    raw = bytearray(path.read_bytes())
    raw[4096:-4096] = b"\xff" * len(raw[4096:-4096])
    path.write_bytes(raw)


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    "spoil, complaint",
    [
        (_text, "it is not a sandbox's state file"),
        (_foreign, "it is not a sandbox's state file"),
        (_newer, f"a newer version has written it (format {state.VERSION + 1}; this one knows {state.VERSION})"),
        (
            _earlier,
            f"an earlier version has written it (format 1; this one knows {state.VERSION}); in another file its ",
        ),
        (_odd_row, "user u-1 cannot be read: "),
        (_no_such_address, "user u-1 cannot be read: user N: 'nobody' is not an e-mail address"),
        (_no_key, "key K cannot be read: "),
        (_torn, "cannot be used: database disk image is malformed"),
        (_folder, "cannot be written: Is a directory"),
    ],
)
async def test_an_invalid_state_file_is_named_and_unchanged(
    start: StartSandbox, path: Path, spoil: Callable[[Path], None], complaint: str
) -> None:
    spoil(path)
    before = path.is_file() and path.read_bytes()
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {complaint}')}"):
        async with start(state=path):
            pass
    assert (path.is_file() and path.read_bytes()) == before


async def test_a_change_is_written_before_the_response(start: StartSandbox, path: Path, tmp_path: Path) -> None:
    """The state file at this moment is that of a killed sandbox."""
    async with start(state=path) as caller, PageBrowser(caller.sandbox.url) as visitor:
        await visitor.sign_in(await visitor.open("/portal"))
        await visitor.fill(await visitor.open("/portal/applications/new"), "/new", {"name": "Just made"})
        left = tmp_path / "left"
        left.mkdir()
        for one in tmp_path.glob(f"{path.name}*"):
            shutil.copy(one, left)
    state_store = state.StateFile(left / path.name)
    assert [one.name for one in state_store.rows("application", applications.SandboxApplication).values()] == [
        applications.DEFAULT_APPLICATION.name,
        "Just made",
    ]
    state_store.close()
