"""Pages that scripts of docs/ generate are up to date."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from docs import (
    admin_openapi,
    command_line,
    configuration,
    diagnoses,
    first_minute,
    json_schema,
    man_page,
    sandbox_deviations,
)
from proxy.web.admin import pages as admin_pages

from .conftest import ROOT, Page


def test_the_generated_page_is_what_its_script_prints(pages: dict[str, Page]) -> None:
    name = "docs/reference/command-line.md"
    assert pages[name].text == command_line.page(), f"stale; renew it with: python -m docs.command_line > {name}"


@pytest.mark.parametrize("script", [configuration, diagnoses, sandbox_deviations])
def test_generated_tables_are_what_their_script_writes(script: ModuleType) -> None:
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), (
        f"stale; renew it with: python -m {script.__name__}"
    )


def test_the_openapi_document_is_what_its_script_prints() -> None:
    name = "docs/reference/admin.openapi.json"
    assert (ROOT / name).read_text() == admin_openapi.page(), f"renew it with: python -m docs.admin_openapi > {name}"


def test_the_picture_of_the_first_minute_shows_what_its_commands_print(needs_program: Callable[[str], str]) -> None:
    for program in ("curl", "jq"):
        needs_program(program)
    name = "docs/images/first-minute.svg"
    drawn = (ROOT / name).read_text(encoding="utf-8")
    assert drawn == first_minute.page(), f"renew it with: python -m docs.first_minute > {name}"
    assert len(drawn) < 60_000


def test_the_way_of_a_request_is_the_one_that_is_traced() -> None:
    code = "import asyncio; from docs import request_ways; print(asyncio.run(request_ways.page()), end='')"
    traced = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    page = (ROOT / "docs/explanation/performance.md").read_text()
    assert traced.stdout == page, "renew it with: python -m docs.request_ways"


@pytest.mark.parametrize("program", man_page.PAGES)
def test_a_man_page_is_what_its_script_prints(program: str) -> None:
    name = man_page.PAGES[program]
    assert (ROOT / name).read_text() == man_page.page(program), (
        f"renew it with: python -m docs.man_page {program} > {name}"
    )


@pytest.mark.parametrize("command", ["compare", "explain"])
def test_a_schema_is_what_its_script_prints_and_describes_fields_that_exist(command: str) -> None:
    name = f"docs/reference/{command}.schema.json"
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == json_schema.page(command), f"renew it with: python -m docs.json_schema {command} > {name}"
    parts = json.loads(text)["$defs"]
    for part in parts.values():
        assert set(re.findall(r"`([a-z_]+)`", part["description"])) <= part["properties"].keys(), part["title"]


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("program", man_page.PAGES)
def test_man_shows_the_man_page_without_warnings(
    needs_program: Callable[[str], str], program: str, columns: str
) -> None:
    command = [needs_program("man"), "--warnings", "--local-file", str(ROOT / man_page.PAGES[program])]
    environment = os.environ | {"MANWIDTH": columns, "MAN_KEEP_FORMATTING": "", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    heads = [line for line in done.stdout.splitlines() if line[:1].isalpha()][1:-1]
    assert heads[:4] == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]
    commands, _, sandbox = (ROOT / "docs/reference/command-line.md").read_text().partition("## nexar-sandbox")
    options = set(re.findall(r"`(--[a-z-]+)`", commands if program == "v3bridge" else sandbox))
    assert options
    assert {option for option in options if option not in done.stdout} == set()
    # A title line is as wide as the page; a URL can be wider.
    assert max(len(line) for line in done.stdout.splitlines() if "://" not in line) <= int(columns)


def test_the_guide_lists_every_page_of_the_admin_interface(pages: dict[str, Page]) -> None:
    rows = [[page.title, page.summary] for page in admin_pages.PAGES]
    assert pages["docs/how-to/admin.md"].table("page") == rows
