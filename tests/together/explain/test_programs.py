"""Programs that `explain --as` writes give the values of the proxy's own response.

They are run by python and sh against the sandbox, with its addresses and credentials in the environment. The script for
curl prints the responses of the GraphQL service.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from support import running_proxy
from together.conftest import starter
from together.environment import ProxyEnvironment

import nexar_sandbox
from proxy.explain.explainer import Explainer
from proxy.explain.programs import program
from proxy.explain.programs.mapping_functions import without_class
from proxy.kit import clock
from proxy.traffic.v3_request import V3Request, parse_target

pytestmark = pytest.mark.asyncio(loop_scope="module")

RUNNERS = {"python": (sys.executable, "-I"), "curl": ("sh",)}
NEEDED = {"python": (), "curl": ("curl",)}
EVERYTHING = "".join(
    f"&include[]={name}"
    for name in (
        "specs", "descriptions", "imagesets", "datasheets", "compliance_documents", "reference_designs", "cad_models",
        "category_uids", "external_links", "broker_listings", "short_description",
    )
)  # fmt: skip

# In each request as many features as there can be, because programs are started for it.
REQUESTS = (
    '/parts/match?queries=[{"mpn":"SN74S74N","reference":"line 1"}]' + EVERYTHING,
    '/parts/match?queries=[{"mpn":"SN74S7","limit":20}]',
    '/parts/match?queries=[{"mpn":"sn74-s74n","limit":2,"start":2}]&hide[]=offers.seller',
    '/parts/match?queries=[{"mpn":"SN74S74N","start":9}]&slice[offers]=[0:2]&slice[offers.prices]=[0:1]',
    '/parts/match?queries=[{"mpn":"SN74S74N","limit":2},{"mpn_or_sku":"MBR1020VL"},{"sku":"67K1122"},'
    '{"mpn":"NE555P","brand":"Texas Instruments","limit":1},{"mpn":"no such part"}]&show[]=mpn&show[]=brand'
    "&show[]=offers.sku&show[]=offers.seller.uid&show[]=specs.pin_count.value&show[]=specs.*.unit&include[]=specs",
    '/parts/match?queries=[{"q":"diode","limit":2,"brand":"Fairchild Semiconductor"}]&show[]=uid&show[]=offers.prices',
    '/parts/match?queries=[{"mpn":"SN74*","limit":4},{"q":"resistor","limit":1},{"limit":-1},{"mpn":"SN74S74N",'
    '"seller":"Mouser"},{"mpn":"*S74N","start":1,"limit":2}]&show[]=mpn&show[]=manufacturer.uid',
    '/parts/match?queries=[{"mpn":"ATMEGA328P-PU"},{"mpn":"atmega328ppu"},{"sku":"67K1122"},{"mpn":"SN74*","limit":2},'
    '{"mpn":"IRFZ44N"},{"mpn_or_sku":"SN74S74N","limit":1,"start":1}]&exact_only=true&show[]=mpn&show[]=offers.sku',
    '/parts/match?queries=[{"mpn":"SN74S74N","limit":1},{"mpn":"SN74S74N","limit":1,"reference":2}]&show[]=mpn',
    "/parts/search?q=SN74S74N&limit=3&start=1" + EVERYTHING,
    "/parts/search?q=&filter[fields][brand.name][]=Texas+Instruments&sortby=mpn+desc&limit=2&show[]=mpn",
    "/parts/search?filter[fields][mpn][]=SN74S74N&filter[fields][mpn][]=MBR1020VL&limit=2&start=1",
    "/parts/get_multi?uid[]=103cdb613d20cffb&uid[]=ffffffffffffffff&uid[]=bd4d768f82c5628a&uid[]=no-uid" + EVERYTHING,
    "/parts/103cdb613d20cffb",
    "/brands/get_multi?uid[]=2239e3330e2df5fe&uid[]=ffffffffffffffff&uid[]=4da98ca360d79a6e",
    "/sellers/search?q=arrow&limit=3&spec_drilldown[include]=1",
    "/sellers/search?start=2&limit=3&show[]=name",
    "/categories/search?q=capacitor&limit=4",
    "/categories/8a1e4714bb3951d9",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> AsyncIterator[ProxyEnvironment]:
    start = starter(catalog, signing_key, clock.ManualClock())
    async with start(sandbox={"token_windows": ()}) as ready:
        yield ready


@pytest.fixture(scope="module")
def explainer(environment: ProxyEnvironment) -> Explainer:
    settings = running_proxy.settings("https://api.nexar.com/graphql", "https://identity.nexar.com/connect/token")
    return Explainer(settings)


def written(explainer: Explainer, target: str, language: program.Language, fields: str | None = None) -> str:
    path, query, _ = parse_target(f"/v3{target}")
    return program.write(explainer, explainer.explain(V3Request(path, query)), language, fields)


async def run(
    text: str, language: str, environment: ProxyEnvironment, folder: Path, **variables: str
) -> tuple[int | None, str, str]:
    """Run a program, and return its exit code, output and messages."""
    file = folder / "program"
    file.write_text(text, encoding="utf-8")
    application = environment.sandbox.default_application
    process = await asyncio.create_subprocess_exec(
        *RUNNERS[language], str(file),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "NEXAR_GRAPHQL_URL": environment.sandbox.graphql_url,
            "NEXAR_TOKEN_URL": environment.sandbox.token_url,
            "NEXAR_CLIENT_ID": application.client_id,
            "NEXAR_CLIENT_SECRET": application.client_secret,
            **variables,
        },
    )  # fmt: skip
    output, messages = await process.communicate()
    return process.returncode, output.decode(), messages.decode()


def values(response: Any) -> Any:
    """Return what a program prints of a response: neither classes, nor the echo of the request, nor the time."""
    if "results" in response:
        response = {name: response[name] for name in ("results", "hits") if name in response}
    return without_class(response)


@pytest.mark.parametrize("target", REQUESTS)
async def test_a_program_prints_the_values_of_the_proxy(
    target: str, environment: ProxyEnvironment, explainer: Explainer, tmp_path: Path
) -> None:
    path, query, _ = parse_target(f"/v3{target}")
    response = await environment.proxy.get(f"/v3{V3Request(path, query).target(running_proxy.KEY)}")
    assert response.status == 200, await response.text()
    code, output, messages = await run(written(explainer, target, "python"), "python", environment, tmp_path)
    assert (code, messages) == (0, "")
    assert json.loads(output) == values(await response.json())


@pytest.mark.parametrize("target", REQUESTS)
async def test_curl_prints_the_responses_of_the_graphql_service(
    target: str,
    environment: ProxyEnvironment,
    explainer: Explainer,
    tmp_path: Path,
    needs_program: Callable[[str], str],
) -> None:
    needs_program("curl")
    path, query, _ = parse_target(f"/v3{target}")
    explanation = explainer.explain(V3Request(path, query), for_program=True)
    names = [operation.name for operation in explanation.operations if operation.condition is None]
    code, output, messages = await run(written(explainer, target, "curl"), "curl", environment, tmp_path)
    assert (code, messages) == (0, "")
    responses = [json.loads(line) for line in output.splitlines()]
    assert [response.get("errors") for response in responses] == [None] * max(1, len(names))
    assert all(next(iter(response["data"])).startswith(("sup", "a0")) for response in responses)


FAILURES = {
    "no credentials": (2, "set NEXAR_CLIENT_ID and NEXAR_CLIENT_SECRET", {"NEXAR_CLIENT_SECRET": ""}),
    "wrong secret": (1, "invalid_client", {"NEXAR_CLIENT_SECRET": "a wrong secret"}),
    "nothing listens": (1, "http://127.0.0.1:1/graphql: ", {"NEXAR_GRAPHQL_URL": "http://127.0.0.1:1/graphql"}),
    "no token": (1, "errors: no access token", {"NEXAR_TOKEN_URL": "errors"}),
}


FAILURES_OF_PYTHON = {
    "GraphQL error": (1, "Nexar: the part limit is reached; and another error", {"NEXAR_GRAPHQL_URL": "errors"}),
    "not JSON": (1, "text: ", {"NEXAR_GRAPHQL_URL": "text"}),
}


async def respond(request: web.Request) -> web.Response:
    if request.path == "/text":
        return web.Response(text="<html>Maintenance</html>")
    messages = ["the part limit is reached", "and another error"]
    return web.json_response({"data": None, "errors": [{"message": message} for message in messages]})


@pytest.mark.parametrize("failure", [*FAILURES, *FAILURES_OF_PYTHON])
async def test_a_failure_is_a_message_and_an_exit_code(
    failure: str,
    environment: ProxyEnvironment,
    explainer: Explainer,
    tmp_path: Path,
    needs_program: Callable[[str], str],
) -> None:
    code, message, variables = (FAILURES | FAILURES_OF_PYTHON)[failure]
    languages = program.LANGUAGES if failure in FAILURES else ("python",)
    app = web.Application()
    app.router.add_post("/{any}", respond)
    async with TestServer(app) as server:
        # A word stands for a path of this server.
        changed = {
            name: str(server.make_url(f"/{value}")) if value.isalpha() else value for name, value in variables.items()
        }
        for language in languages:
            for name in NEEDED[language]:
                needs_program(name)
            text = written(explainer, "/parts/2c3be9310496fffc?show[]=uid", language)
            result = await run(text, language, environment, tmp_path, **changed)
            assert result[:2] == (code, ""), (language, result)
            assert message in result[2], language
            assert "secret" not in result[2].replace("NEXAR_CLIENT_SECRET", "")
            assert "Traceback" not in result[2]


async def test_an_unknown_uid_is_a_message_and_an_exit_code(
    environment: ProxyEnvironment, explainer: Explainer, tmp_path: Path
) -> None:
    text = written(explainer, "/parts/ffffffffffffffff?show[]=uid", "python")
    result = await run(text, "python", environment, tmp_path)
    assert (result[0], result[1], result[2].strip()) == (1, "", "there is no part with the uid ffffffffffffffff")


async def test_fields_restrict_what_is_asked_and_printed(
    environment: ProxyEnvironment, explainer: Explainer, tmp_path: Path
) -> None:
    target = '/parts/match?queries=[{"mpn":"SN74S74N","limit":1}]&hide[]=mpn'
    text = written(explainer, target, "python", "mpn,offers.seller.name,specs.pin_count")
    code, output, _ = await run(text, "python", environment, tmp_path)
    (result,) = json.loads(output)["results"]
    assert code == 0
    assert set(result["items"][0]) == {"mpn", "offers", "specs"}
    assert set(result["items"][0]["offers"][0]) == {"seller"}
    assert set(result["items"][0]["specs"]) == {"pin_count"}
    assert "descriptions" not in text
    assert "SELLER_UIDS" not in text
