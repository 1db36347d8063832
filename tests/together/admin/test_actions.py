"""Actions of the admin interface: their result is shown once on their page, is JSON for scripts, and is logged."""

import io
import json
from collections.abc import AsyncIterator

import pytest
from support import html_forms
from support.running_admin import BEARER, PAGE, AdminClient
from together.environment import ProxyEnvironment, StartEnvironment

from proxy import errors
from proxy.web.admin import pages
from proxy.web.admin.page import ActionResult, AdminAction, AdminContext, PageParameter, Query

PATH = "/overview/rename"


async def _rename(_: AdminContext, form: Query) -> ActionResult:
    if not form.get("name"):
        raise errors.BadRequest("a name is needed")
    return ActionResult(f"Renamed to <{form['name']}>.")


@pytest.fixture
async def acting(start: StartEnvironment, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProxyEnvironment]:
    """An environment whose admin interface has one action, of the overview."""
    action = AdminAction(PATH, "overview", "Rename.", _rename, (PageParameter("name", "The new name."),))
    monkeypatch.setattr(pages, "ACTIONS", (action,))
    async with start(admin=True) as environment:
        yield environment


async def csrf(admin: AdminClient) -> str:
    page = await (await admin.send("GET", "/", headers=PAGE)).text()
    return html_forms.first_form(page).fields["csrf"]


async def test_result_is_shown_once_on_the_page_of_the_action(acting: ProxyEnvironment) -> None:
    admin = acting.admin
    await admin.sign_in()
    form = {"csrf": await csrf(admin), "name": "ö\u202e"}
    response = await admin.send("POST", PATH, headers=PAGE, data=form)
    assert (response.status, response.headers["Location"]) == (303, "/")
    first, second = [await (await admin.send("GET", "/", headers=PAGE)).text() for _ in range(2)]
    assert '<p class="notice" role="status">Renamed to &lt;ö\\u202e&gt;.</p>' in first
    assert "Renamed" not in second


async def test_scripts_get_the_result_as_json(acting: ProxyEnvironment, log_output: io.StringIO) -> None:
    assert await acting.admin.act(PATH, {"name": "x"}) == "Renamed to <x>."
    (event,) = [json.loads(line) for line in log_output.getvalue().splitlines() if "admin action" in line]
    assert (event["action"], event["address"]) == (PATH, "127.0.0.1")


async def test_action_that_fails_says_why(acting: ProxyEnvironment) -> None:
    program = await acting.admin.send("POST", PATH, headers=BEARER)
    assert (program.status, await program.json()) == (400, {"message": "a name is needed"})
    await acting.admin.sign_in()
    browser = await acting.admin.send("POST", PATH, headers=PAGE, data={"csrf": await csrf(acting.admin)})
    assert browser.status == 400
    assert "A name is needed." in await browser.text()


async def test_action_is_no_get_and_takes_no_files(acting: ProxyEnvironment) -> None:
    admin = acting.admin
    assert (await admin.send("GET", PATH, headers=BEARER)).status == 405
    body = b'--x\r\nContent-Disposition: form-data; name="name"; filename="f"\r\n\r\ntext\r\n--x--\r\n'
    headers = BEARER | {"Content-Type": "multipart/form-data; boundary=x"}
    for path in (PATH, "/sign-in"):
        assert (await admin.send("POST", path, headers=headers, data=body)).status == 415
        assert (await admin.send("POST", path, headers=BEARER, data={"name": "x" * 300_000})).status == 413


async def test_planted_notice_is_shown_as_text(acting: ProxyEnvironment) -> None:
    admin = acting.admin
    for notice in (b"<script>1</script>".hex(), "zz", "ff", "é"):
        cookie = f"__Host-v3bridge-notice={notice}"
        response = await admin.send("GET", "/", headers=BEARER | PAGE | {"Cookie": cookie})
        assert response.status == 200
        assert "<script>1" not in await response.text()
