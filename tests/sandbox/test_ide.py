"""The IDE's page and files over HTTP: when a GET returns it, its policy, the schema as text, and what is vendored."""

import base64
import hashlib
import re
import tomllib
from pathlib import Path

import graphql
from support.sandbox_client import SandboxClient

from nexar_sandbox.ide import endpoints

HTML = {"Accept": "text/html"}


async def _page(caller: SandboxClient) -> str:
    async with caller.session.get(caller.sandbox.graphql_url, headers=HTML) as response:
        assert response.status == 200
        return await response.text()


async def test_a_query_gets_its_response_instead_of_the_ide(caller: SandboxClient) -> None:
    params = {"query": "{ __typename }"}
    async with caller.session.get(caller.sandbox.graphql_url, params=params) as response:
        assert (await response.json())["data"] == {"__typename": "Query"}


async def test_the_ide_loads_only_files_of_the_sandbox(caller: SandboxClient) -> None:
    addresses = re.findall(r'<(?:script|link)[^>]* (?:src|href)="([^"]+)"', await _page(caller))
    assert len(addresses) > 5
    for address in addresses:
        if address == "data:,":
            continue
        assert address.startswith(endpoints.FILES_PATH + "/")
        async with caller.session.get(caller.sandbox.url + address) as response:
            assert response.status == 200, address


async def test_the_ide_has_no_inline_scripts_and_a_strict_policy(caller: SandboxClient) -> None:
    assert re.findall(r"<script[^>]*>\s*[^<\s]|\son\w+=", await _page(caller)) == []
    nonces = set()
    for _ in range(2):
        async with caller.session.get(caller.sandbox.graphql_url, headers=HTML) as response:
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
            before = caller.sandbox.billed_parts
            (answer,) = (await caller.ask(example["query"], example["variables"])).data.values()
            assert answer
            assert caller.sandbox.billed_parts > before, example


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
