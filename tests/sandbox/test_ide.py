"""The IDE: its page and files, and its endpoints, which give an organization's user a token of its application."""

import base64
import dataclasses
import hashlib
import json
import re
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import graphql
import pytest
from sandbox.page_browser import PageBrowser, PageResult
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications, user_directory
from nexar_sandbox.ide import endpoints

HTML = {"Accept": "text/html"}


async def test_the_ide_has_no_inline_scripts_and_a_strict_policy(caller: SandboxClient) -> None:
    nonces = set()
    for _ in range(2):
        async with caller.session.get(caller.sandbox.graphql_url, headers=HTML) as response:
            assert re.findall(r"<script[^>]*>\s*[^<\s]|\son\w+=", await response.text()) == []
            policy = dict(rule.split(" ", 1) for rule in response.headers["Content-Security-Policy"].split("; "))
        assert (policy["default-src"], policy["script-src"]) == ("'none'", "'self'")
        assert (policy["base-uri"], policy["frame-ancestors"]) == ("'none'", "'none'")
        assert policy["connect-src"] == f"'self' ws://127.0.0.1:{caller.sandbox.port}"
        nonces.add(policy["style-src"])
    assert len(nonces) == 2


async def test_the_example_documents_are_valid_and_find_parts(caller: SandboxClient) -> None:
    async with caller.session.get(f"{caller.sandbox.url}{endpoints.FILES_PATH}/examples.json") as response:
        examples = await response.json()
    async with caller.session.get(caller.sandbox.graphql_url + "?sdl") as response:
        schema = graphql.build_schema(await response.text())
    assert "supSearchMpn" in examples[0]["query"]
    for example in examples:
        assert graphql.validate(schema, graphql.parse(example["query"])) == [], example
        if "sup" in example["query"]:
            before = caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id)
            (answer,) = (await caller.ask(example["query"], example["variables"])).data.values()
            assert answer
            assert caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id) > before, example


GUESTS = user_directory.Organization("5b1ac5f0-7d0a-4f0c-8a53-0e4a6f1f7c99", "Guests")
GUEST = dataclasses.replace(
    user_directory.DEFAULT_USERS[1], id="guest", email="guest@sandbox.example", organization=GUESTS.id
)
OTHERS = dataclasses.replace(
    applications.DEFAULT_APPLICATION,
    name="of others",
    application_id="app-of-others",
    client_id="client-of-others",
    organization=GUESTS.id,
)


@pytest.fixture
async def caller(start: StartSandbox) -> AsyncIterator[SandboxClient]:
    """A sandbox with two organizations; the first has an application for parts, then one for users' tokens."""
    known = (OTHERS, applications.DEFAULT_APPLICATION, applications.DEFAULT_DESIGN_APPLICATION)
    async with start(
        applications=known,
        organizations=(user_directory.DEFAULT_ORGANIZATION, GUESTS),
        users=(*user_directory.DEFAULT_USERS, GUEST),
        token_windows=(),
    ) as ready:
        yield ready


async def state(visitor: PageBrowser) -> Any:
    """The session: user, organization, application and CSRF token."""
    return json.loads((await visitor.open("/ide/session")).page)


async def token(visitor: PageBrowser, csrf: str | None = None) -> PageResult:
    """Request a token as the page's script does, with the session's CSRF token unless another is given."""
    return await visitor.post("/ide/token", {"X-CSRF-Token": (await state(visitor))["csrf"] if csrf is None else csrf})


async def sign_in(visitor: PageBrowser, *who: Any) -> None:
    await visitor.sign_in(await visitor.open((await state(visitor))["links"]["sign_in"]), *who)


async def test_the_ide_session_before_sign_in_has_links_only(visitor: PageBrowser) -> None:
    found = await state(visitor)
    assert (found["user"], found["organization"], found["application"], found["csrf"]) == (None,) * 4
    assert found["links"]["sign_in"] == "/account/login?return_to=%2Fgraphql"
    response = await token(visitor, csrf="")
    assert (response.status, json.loads(response.page)["error"]) == (401, "login_required")


async def test_ide_uses_no_application_of_another_organization(caller: SandboxClient, visitor: PageBrowser) -> None:
    await sign_in(visitor, GUEST, "sandbox-grace")
    assert (await state(visitor))["application"]["name"] == OTHERS.name
    caller.token = json.loads((await token(visitor)).page)["access_token"]
    await caller.ask('{ supSearchMpn(q: "LM358", limit: 1) { results { part { mpn } } } }')
    assert caller.sandbox.part_usage.used(OTHERS.application_id) == 1
    assert caller.sandbox.part_usage.used(applications.DEFAULT_APPLICATION.application_id) == 0


async def test_the_ide_has_no_secret_and_rejects_a_request_without_the_csrf_token(visitor: PageBrowser) -> None:
    await sign_in(visitor)
    shown = str(await state(visitor)) + (await token(visitor)).page
    assert applications.DEFAULT_APPLICATION.client_secret not in shown
    response = await token(visitor, csrf="x" * 64)
    assert (response.status, json.loads(response.page)["error"]) == (403, "invalid_csrf")
    assert "X-CSRF-Token" in json.loads(response.page)["error_description"]


MANIFEST = Path(__file__).parents[2] / "sandbox/vendored.toml"


def test_the_vendored_files_match_the_manifest() -> None:
    packages = tomllib.loads(MANIFEST.read_text("utf-8"))["package"]
    recorded = {file["name"]: file["sha512"] for package in packages for file in package["file"]}
    found = {
        path.name: base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
        for path in endpoints.VENDORED.iterdir()
        if path.name != "LICENSES.txt"
    }
    assert found == recorded
    licenses = (endpoints.VENDORED / "LICENSES.txt").read_text(encoding="utf-8")
    for package in packages:
        assert package["name"] in licenses.split()
        prefix = f"{package['name']}-{package['version']}."
        assert all(file["name"].startswith(prefix) for file in package["file"])
    for words in ("Permission is hereby granted", "SIL OPEN FONT LICENSE", "Redistribution and use"):
        assert words in licenses
