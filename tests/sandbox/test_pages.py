"""The sandbox's pages without a browser: login, home page, journal, and unknown paths."""

import asyncio
import dataclasses
import html
import re
from collections.abc import Callable

import pytest
from sandbox.page_browser import PageBrowser
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications, user_directory

FREE = '{ supSellers(ids: ["459"]) { name } }'
HOSTILE = "<script>alert(1)</script>"
SHOWN = html.escape(HOSTILE)


async def _typed(command: str) -> str:
    """Arguments of a command after shell parsing."""
    process = await asyncio.create_subprocess_exec("sh", "-c", command, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()


async def test_the_login_page_offers_default_users(visitor: PageBrowser) -> None:
    for number, user in enumerate(user_directory.DEFAULT_USERS, 1):
        page = await visitor.open("/account/login", return_to="/portal")
        form = re.findall(r"<form.*?</form>", page.page, re.DOTALL)[number]
        assert f'aria-label="Sign in as {user.name}"' in form
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
        landed = await visitor.post("/account/login", **fields)
        assert (landed.status, landed.address.path) == (200, "/portal")
        assert user.email in landed.page
        visitor.jar.clear()


async def test_commands_of_the_home_page_work_escaped(needs_program: Callable[[str], str], start: StartSandbox) -> None:
    needs_program("curl")
    secret = f"a'b\"c$(exit 3)&d=e+f%20\\{HOSTILE}"
    application = dataclasses.replace(applications.DEFAULT_APPLICATION, client_secret=secret, name=HOSTILE)
    async with start(applications=(application,)) as caller, PageBrowser(caller.sandbox.url) as visitor:
        page = await visitor.open("/")
        assert HOSTILE not in page.page
        assert html.escape(secret, quote=False) in page.page.replace("&#34;", '"').replace("&#39;", "'")
        queries, legacy = map(html.unescape, re.findall(r"<pre[^>]*>(.*?)</pre>", page.page, re.DOTALL))
        assert '"mpn":"LM358"' in await _typed(queries)
        assert '"LM358N"' in await _typed(legacy)
        assert caller.sandbox.billed_parts == 1


@pytest.mark.parametrize("path", ["/", "/admin/journal"])
async def test_every_page_is_also_available_as_json(caller: SandboxClient, visitor: PageBrowser, path: str) -> None:
    page = await visitor.open(path)
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "format=json" in page.page
    beside = await visitor.open(path, format="json")
    async with caller.session.get(caller.sandbox.url + path) as plain:
        types = {plain.headers["Content-Type"], beside.headers["Content-Type"]}
        assert types == {"application/json"}
        assert {page.headers["Vary"], plain.headers["Vary"]} == {"Accept"}
        assert await plain.text() == beside.page


async def test_scripts_run_only_on_the_page_with_copy_buttons(visitor: PageBrowser) -> None:
    for path in ("/", "/account/login", "/admin/journal", "/nothing"):
        page = await visitor.open(path)
        policy = page.headers["Content-Security-Policy"]
        assert ("script-src 'self'" in policy) == ("<script" in page.page) == (path == "/")
        assert policy.startswith("default-src 'none'")
        assert re.findall(r"<script[^>]*>\s*[^<\s]|\son\w+=|\sstyle=", page.page) == []


async def test_the_journal_page_shows_requests_newest_first(caller: SandboxClient, visitor: PageBrowser) -> None:
    for query in (FREE, '{ supSearchMpn(q: "LM358", limit: 2) { results { part { mpn } } } }', "{ nonsense }"):
        await caller.ask(query)
    page = (await visitor.open("/admin/journal", last="3")).page
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in page.split("<tr>")[2:]]
    texts = [[re.sub(r"<[^>]+>", "", cell).strip() for cell in row] for row in rows]
    assert [(row[0], row[2], row[3], row[5]) for row in texts] == [
        ("4", "graphql", "nonsense", "0"),
        ("3", "graphql", "supSearchMpn", "2"),
        ("2", "graphql", "supSellers", "0"),
    ]
    assert {row[1] for row in texts} == {"2023-11-14 22:13:20.000"}
    assert texts[1][4] == caller.sandbox.default_application.name


async def test_request_texts_are_escaped_on_the_journal_page(caller: SandboxClient, visitor: PageBrowser) -> None:
    application = caller.sandbox.default_application
    caller.sandbox.applications.replace(dataclasses.replace(application, name=HOSTILE))
    entry = caller.sandbox.journal.begin("design")
    entry.operation, entry.fields, entry.application = HOSTILE, (HOSTILE,), application.application_id
    page = (await visitor.open("/admin/journal")).page
    assert HOSTILE not in page
    assert page.count(SHOWN) >= 3
    assert "in progress" in page


async def test_clearing_the_journal_needs_the_csrf_token(caller: SandboxClient, visitor: PageBrowser) -> None:
    await caller.ask(FREE)
    refused = await visitor.post("/admin/journal", csrf="guessed")
    assert refused.status == 400
    assert caller.sandbox.journal.totals.requests["graphql"] == 1
    page = await visitor.fill(await visitor.open("/admin/journal"), "/admin/journal")
    assert (page.status, page.address.path) == (200, "/admin/journal")
    assert "No requests yet" in page.page
    assert caller.sandbox.journal.entries == ()


async def test_an_unknown_path_has_a_page_for_browsers_only(caller: SandboxClient, visitor: PageBrowser) -> None:
    path = "/nothing/%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    page = await visitor.open(path)
    assert (page.status, page.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert HOSTILE not in page.page
    assert f"/nothing/{SHOWN}" in page.page
    assert 'href="/"' in page.page
    async with caller.session.get(caller.sandbox.url + "/nothing") as plain:
        assert (plain.status, plain.content_type) == (404, "text/plain")
    legacy = await visitor.open("/v3/nothing", apikey="EXAMPLE_KEY")
    assert (legacy.status, legacy.headers["Content-Type"].split(";")[0]) == (404, "application/json")
