"""All documents: links lead somewhere, blocks are what they say, files and commands that are named are there."""

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import graphql
import pytest
import yaml
from support import running_proxy, scripted_upstream

ROOT = Path(__file__).parents[3]
NAMES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("contract/*.md"), *ROOT.glob("docs/**/*.md")]
)
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
FILE = re.compile(
    r"`((?:proxy|sandbox|mappings|docs|deploy|tests|bench|examples|\.ci)/[\w./-]*|[\w.-]+\.(?:md|toml|yaml)|Makefile)`",
)
OF_THE_READER = {
    "our.yaml",
    "deploy/secrets",
    "migrate.yaml",
    "tests/service/cases/average_price/",
}  # written by readers
GENERATED_PAGES = {"command-line.md", "compatibility.md", "v3-surface.md"}
GENERATED_PART = re.compile(
    r"^## Settings that people change$.*?(?=^## Settings that need)"
    r"|^## (?:Diagnoses|All deviations|Responses of the GraphQL service|The way of a request|Results)$.*",
    re.MULTILINE | re.DOTALL,
)
PARSERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "yaml": yaml.safe_load,
    "python": ast.parse,
    "graphql": lambda text: graphql.parse(text if text.startswith("query") else f"type Any {{ {text} }}"),
}


def _anchors(text: Any) -> Any:
    """The names of a page's headings as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", NAMES)
def test_every_internal_link_has_a_target(pages: Any, name: Any) -> None:
    broken = []
    for link in LINK.findall(pages[name].text):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists() or (anchor and anchor not in _anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("name", NAMES)
def test_every_code_block_is_valid_in_its_language(pages: Any, name: Any) -> None:
    for block in pages[name].blocks():
        assert block.language or name == "CHANGELOG.md", f"{name}:{block.line} does not say its language"
        if block.language in PARSERS:
            assert PARSERS[block.language](block.text) is not None, f"{name}:{block.line}"


@pytest.mark.parametrize("name", NAMES)
def test_shell_blocks_are_valid_shell(pages: Any, name: Any) -> None:
    shell = shutil.which("sh") or "sh"
    for block in pages[name].blocks("sh"):
        done = subprocess.run([shell, "-n"], input=block.text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}:{block.line}: {done.stderr}"


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name != "CHANGELOG.md" and not name.startswith("contract/")]
)
def test_every_named_file_exists(pages: Any, name: Any) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", pages[name].text, flags=re.MULTILINE | re.DOTALL)
    found = {path for path in FILE.findall(prose) if "*" not in path} - OF_THE_READER
    places = {path: (ROOT / path, ROOT / "docs" / path) for path in found}
    assert [path for path, both in places.items() if not any(place.exists() for place in both)] == []


def test_every_page_is_linked_from_the_index_and_the_index_from_the_readme(pages: Any) -> None:
    index = ROOT / "docs/index.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text(encoding="utf-8"))}
    assert [name for name in pages if ROOT / name not in linked | {index}] == []
    assert "docs/index.md" in LINK.findall(pages["README.md"].text)


def test_pages_are_few_and_short() -> None:
    """What scripts generate does not count: whole pages, tables in a page, and the end of a page."""
    written = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md")}
    assert len(written) <= 30
    lines = {name: GENERATED_PART.sub("", text).count("\n") for name, text in written.items()}
    assert {name for name, count in lines.items() if count > 250} <= GENERATED_PAGES


def test_every_named_make_target_exists(pages: Any) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = {target for page in pages.values() for target in re.findall(r"`make ([a-z]+)", page.text)}
    assert named <= targets


def test_every_package_is_listed_in_the_architecture(pages: Any) -> None:
    places = ", ".join(row[0] for row in pages["ARCHITECTURE.md"].table("place")).split(", ")
    rows = {place.strip("`").removeprefix("proxy/").rstrip("/") for place in places}
    packages = {
        path.name for path in (ROOT / "proxy").iterdir() if path.name[0] not in "_." and path.suffix in ("", ".py")
    }
    assert packages <= rows


def test_every_client_has_documented_instructions(pages: Any) -> None:
    page = pages["docs/how-to/connect.md"]
    text = page.text.partition("## Client by client")[0].lower()
    ways = {word.strip() for row in page.table("client") for word in row[1].split(",")}
    assert [way for way in ways if way.lower() not in text] == []


async def test_client_with_http_proxy_reaches_only_the_proxy() -> None:
    async with scripted_upstream.running() as upstream:
        upstream.respond_with({"data": {"supMultiMatch": [{"hits": 0, "parts": []}]}})
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url)
        async with running_proxy.running(settings) as client:
            asked = f'http://octopart.com/api/v3/parts/match?apikey={running_proxy.KEY}&queries=[{{"mpn":"X1"}}]'
            async with client.session.get(asked, proxy=client.url) as found:
                assert (await found.json())["__class__"] == "PartsMatchResponse"
            async with client.session.get("http://example.com/index.html", proxy=client.url) as other:
                assert other.status == 404
