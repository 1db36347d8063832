"""graphql-request, a JavaScript client, unmodified: installed from npm by the Makefile."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import running_proxy
from together.graphql.conftest import Pair

SCRIPT = """
import { GraphQLClient } from "graphql-request"
const { url, key, document, variables } = JSON.parse(process.env.SENT)
const client = new GraphQLClient(url, { headers: { authorization: `Bearer ${key}` } })
const told = await client.request(document, variables).then(
  (data) => ({ data }), (error) => ({ status: error.response.status, errors: error.response.errors }))
console.log(JSON.stringify(told))
"""
MATCH = "query ($q: [SupPartMatchQuery!]!) { supMultiMatch(queries: $q) { hits parts { mpn } } }"

Send = Callable[..., Any]


@pytest.fixture
def send(needs_program: Callable[[str], str]) -> Send:
    """Returns what the client returns or throws."""
    node, installed = needs_program("node"), Path(sys.prefix) / "npm"
    if not (installed / "node_modules" / "graphql-request").is_dir():
        needs_program("npm")
        pytest.fail(f"graphql-request is not in {installed}: `make test` installs it", pytrace=False)

    async def sent(both: Pair, document: str, key: str = running_proxy.KEY, mpn: str = "SN74S74N") -> Any:
        url = f"{both.environment.proxy.url}/graphql"
        variables = {"q": [{"mpn": mpn, "limit": 1}]} if "$q" in document else {}
        told = {"url": url, "key": key, "document": document, "variables": variables}
        command = [node, "--input-type=module", "-e", SCRIPT]
        environment = {"PATH": os.environ["PATH"], "SENT": json.dumps(told)}

        def run() -> str:
            done = subprocess.run(command, cwd=installed, env=environment, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            return done.stdout

        return json.loads(await asyncio.to_thread(run))

    return sent


async def test_client_gets_data_and_throws_errors(pair: Any, send: Send) -> None:
    async with pair() as both:
        found = await send(both, MATCH)
        assert found["data"]["supMultiMatch"][0]["parts"] == [{"mpn": "SN74S74N"}]
        wrong = await send(both, MATCH, "wrong-key")
        assert (wrong["status"], wrong["errors"][0]["extensions"]["code"]) == (401, "AuthInvalidToken")
        invalid = await send(both, "{ nothing }")
        assert "nothing" in invalid["errors"][0]["message"]
        assert both.billed == 1


@pytest.mark.parametrize("status", [200, 429])
async def test_exhausted_parts_are_thrown(pair: Any, send: Send, status: int) -> None:
    async with pair(application={"parts": 1}, graphql={"exhausted_status": status}) as both:
        assert (await send(both, MATCH))["data"]
        told = await send(both, MATCH, mpn="NE555P")
        assert told["status"] == status
        assert told["errors"][0]["message"].startswith("You have exceeded your part limit")
