"""Tests of the description at /v3/openapi.json: valid, public, and correct for every response of the service.

schemathesis makes requests from the description alone. It needs a service on a socket and blocks until each response,
so proxy and sandbox run in another thread.
"""

import asyncio
import copy
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib import request
from urllib.error import HTTPError

import hypothesis
import jsonschema
import openapi_spec_validator
import pytest
import schemathesis
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks
from support import cases, running_proxy
from together.environment import ProxyEnvironment, StartEnvironment, single_application

import nexar_sandbox
from proxy import config
from proxy.kit import clock, shipped
from proxy.mapping import loader
from proxy.v3 import endpoints
from proxy.v3.description import openapi

BOOK = loader.load(shipped.path("mappings"))
DOCUMENT = openapi.document(BOOK)
KEY = f"apikey={running_proxy.KEY}"
EVERYTHING = "".join(f"&include[]={field}" for field in sorted(BOOK.includable("Part")))
COUNTS = (
    "&facet[fields][brand.uid][include]=1&facet[fields][specs.resistance.value][include]=1&facet[queries][]=brand.name:TI"
    "&stats[specs.resistance.value][include]=1&spec_drilldown[include]=1"
)

REQUESTS = {
    "a match": ("/parts/match", '&queries=[{"mpn":"SN74S74N","reference":7},{"q":5},{}]', 200),
    "a match of everything": ("/parts/match", f'&queries=[{{"mpn":"SN74S74N"}}]{EVERYTHING}', 200),
    "a match for a page": ("/parts/match", '&queries=[{"mpn":"SN74S74N"}]&callback=show', 200),
    "a match without queries": ("/parts/match", "", 400),
    "an error as a 200": ("/parts/match", "&suppress_status_codes=1", 200),
    "a search": ("/parts/search", f"&q=resistor&limit=5{EVERYTHING}", 200),
    "a search with counts": ("/parts/search", f"&q=resistor{COUNTS}", 200),
    "a search that cannot be": ("/parts/search", "&sortby=flavor asc", 400),
    "a search of which something is left out": (
        "/parts/search",
        "&limit=1&sortby=uid asc&facet[fields][descriptions.value][include]=1&facet[queries][]=mpn:X"
        "&stats[avg_price][include]=1",
        200,
    ),
    "a search by part number": ("/parts/search", "&filter[fields][mpn][]=SN74S74N", 200),
    "a search for an unknown spec": ("/parts/search", "&facet[fields][specs.no such spec.value][include]=1", 400),
    "parts by uid": ("/parts/get_multi", "&uid[]=103cdb613d20cffb&uid[]=bd4d768f82c5628a&uid[]=ffff", 200),
    "a part": ("/parts/bd4d768f82c5628a", EVERYTHING, 200),
    "a part cut short": ("/parts/bd4d768f82c5628a", "&show[]=offers.seller.name&show[]=mpn&slice[offers]=[0:1]", 200),
    "no part": ("/parts/ffffffffffffffff", "", 404),
    "brands": ("/brands/search", "&q=texas&facet[fields][homepage_url][include]=1", 200),
    "categories": ("/categories/search", "&q=&limit=100&stats[num_parts][include]=1&include[]=imagesets", 200),
    "sellers": ("/sellers/search", "&q=*newark*&filter[fields][display_flag]=US&facet[queries][]=name:Newark", 200),
    "sellers by uid": ("/sellers/get_multi", "&uid=2c3be9310496fffc", 200),
    "the root of all categories": ("/categories/8a1e4714bb3951d9", "", 200),
    "a brand": ("/brands/2239e3330e2df5fe", "", 200),
}


def _resolved(schema: Any) -> Any:
    """A schema of the description that knows the others."""
    return {"components": DOCUMENT["components"], **schema}


def _described(path: Any, status: Any, content_type: str = "application/json") -> Any:
    """The schema that the description gives for an answer."""
    response = DOCUMENT["paths"][path]["get"]["responses"][str(status)]
    if "$ref" in response:
        response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
    return _resolved(response["content"][content_type]["schema"])


def _template(path: Any) -> Any:
    known = [endpoint.path for endpoint in endpoints.ENDPOINTS]
    return path if path in known else f"{path.rpartition('/')[0]}/{{uid}}"


def _object(name: Any) -> Any:
    return jsonschema.Draft202012Validator(_resolved({"$ref": f"#/components/schemas/{name}"}))


@asynccontextmanager
async def _service(catalog: Any, key: Any) -> Any:
    """A proxy and a sandbox whose plan no test can use up."""
    chosen = nexar_sandbox.SandboxSettings(applications=single_application(part_limit=10_000_000))
    async with nexar_sandbox.serve(chosen, clock=clock.SystemClock(), catalog=catalog, key=key) as upstream:
        own = {
            "client_id": config.ClientId(upstream.default_application.client_id),
            "client_secret": config.Secret(upstream.default_application.client_secret),
        }
        changed = running_proxy.settings(upstream.graphql_url, upstream.token_url, application=own)
        async with running_proxy.running(changed) as proxy:
            yield proxy.url


@pytest.fixture(scope="module")
def url(catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey) -> Iterator[str]:
    """The address of a service that runs in a thread of its own."""
    ready = threading.Event()
    running: dict[str, Any] = {}

    async def serve() -> None:
        running["stop"], running["loop"] = asyncio.Event(), asyncio.get_running_loop()
        async with _service(catalog, signing_key) as running["url"]:
            ready.set()
            await running["stop"].wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="service")
    thread.start()
    assert ready.wait(30)
    yield running["url"]
    running["loop"].call_soon_threadsafe(running["stop"].set)
    thread.join(30)


class Reply(NamedTuple):
    """An answer of the service in the thread."""

    status: int
    content_type: str
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@pytest.fixture
def get(url: str) -> Callable[[str], Reply]:
    """Asks the service in the thread for a target below /v3, sent as it is but for blanks."""

    def get(target: Any) -> Any:
        try:
            with request.urlopen(f"{url}/v3{target.replace(' ', '%20')}") as response:
                return Reply(response.status or 0, response.headers.get_content_type(), response.read().decode())
        except HTTPError as response:
            with response:
                return Reply(response.status or 0, response.headers.get_content_type(), response.read().decode())

    return get


def test_openapi_description_is_valid() -> None:
    openapi_spec_validator.validate(DOCUMENT, cls=openapi_spec_validator.OpenAPIV31SpecValidator)


def test_openapi_has_every_route_with_get_only() -> None:
    assert {path: list(item) for path, item in DOCUMENT["paths"].items()} == {
        endpoint.path: ["get"] for endpoint in endpoints.ENDPOINTS
    }
    names = [item["get"]["operationId"] for item in DOCUMENT["paths"].values()]
    assert len(set(names)) == len(names) == 14
    assert [server["url"] for server in DOCUMENT["servers"]] == list(endpoints.PREFIXES)


@pytest.mark.parametrize("prefix", endpoints.PREFIXES)
async def test_openapi_is_public(environment: ProxyEnvironment, prefix: Any) -> None:
    response = await environment.proxy.get(f"{prefix}/openapi.json")
    assert (response.status, response.content_type) == (200, "application/json")
    assert await response.json() == json.loads(json.dumps(DOCUMENT))
    assert (await environment.proxy.get(f"{prefix}/openapi.json", method="HEAD")).status == 200
    assert (await environment.proxy.get(f"{prefix}/openapi.json", method="POST")).status == 405


async def test_openapi_has_the_fields_of_the_configured_site(start: StartEnvironment) -> None:
    async with start(site="elsewhere") as elsewhere:
        found = await (await elsewhere.proxy.get("/v3/openapi.json")).json()
    fields = found["components"]["schemas"]["Part"]["properties"]
    assert "elsewhere_url" in fields
    assert "octopart_url" not in fields


@pytest.mark.parametrize("name", REQUESTS)
def test_response_conforms_to_openapi(get: Callable[[str], Reply], name: Any) -> None:
    path, more, status = REQUESTS[name]
    reply = get(f"{path}?{KEY}{more}")
    assert reply.status == status, reply.text
    script = reply.content_type == "application/javascript"
    jsonschema.validate(reply.text if script else reply.json, _described(_template(path), status, reply.content_type))


@pytest.mark.parametrize("key,status", [("", 400), ("nobodys", 403)])
def test_api_key_errors_conform_to_openapi(get: Callable[[str], Reply], key: str, status: int) -> None:
    reply = get(f"/sellers/search?apikey={key}")
    assert reply.status == status
    jsonschema.validate(reply.json, _described("/sellers/search", status))


async def test_small_plan_responses_conform_to_openapi(start: StartEnvironment) -> None:
    async with start(application={"features": frozenset()}) as small:
        response = await small.proxy.get(f"/v3/parts/bd4d768f82c5628a?{KEY}{EVERYTHING}")
    part = await response.json()
    assert (part["datasheets"], part["specs"]) == ([], {})
    jsonschema.validate(part, _described("/parts/{uid}", 200))


def test_openapi_part_has_exactly_the_mapped_fields(get: Callable[[str], Reply]) -> None:
    part = get(f"/parts/bd4d768f82c5628a?{KEY}{EVERYTHING}").json
    schemas = DOCUMENT["components"]["schemas"]
    assert list(part) == list(schemas["Part"]["properties"])
    assert list(part["offers"][0]) == list(schemas["PartOffer"]["properties"])
    assert list(part["offers"][0]["seller"]) == list(schemas["Seller"]["properties"])


def test_slice_applies_to_exactly_the_described_lists(get: Callable[[str], Reply]) -> None:
    slices = "".join(f"&slice[{field}]=[1:1]" for field in BOOK.rules["Part"].fields)
    part, cut = (get(f"/parts/103cdb613d20cffb?{KEY}{EVERYTHING}{more}").json for more in ("", slices))
    changed = {field for field in part if part[field] != cut[field]}
    sliced = next(each for each in DOCUMENT["paths"]["/parts/{uid}"]["get"]["parameters"] if each["name"] == "slice")
    assert changed == {field for field in sliced["schema"]["properties"] if part[field]}
    assert {"offers", "redirected_uids", "category_uids"} <= changed
    assert all(cut[field] == [] for field in changed)


def _broken(part: Any, at: Any, value: Any) -> Any:
    """The part with something else at a path."""
    broken = copy.deepcopy(part)
    *way, last = at
    place = broken
    for step in way:
        place = place[step]
    place[last] = value
    return broken


@cases.parametrize("at,value")
def test_openapi_rejects_non_v3_responses(get: Callable[[str], Reply], at: Any, value: Any) -> None:
    part = get(f"/parts/bd4d768f82c5628a?{KEY}").json
    assert _object("Part").is_valid(part)
    assert not _object("Part").is_valid(_broken(part, at, value))


SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
SCHEMA.config.generation.update(modes=[schemathesis.GenerationMode.POSITIVE])
SCHEMA.config.phases.coverage.enabled = False  # thousands of requests that differ in one parameter
CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]


def _meant_to_find(case: Any) -> None:
    """Replace half of the unknown part numbers and uids by known ones."""
    uid = openapi.UIDS[case.operation.definition.raw["tags"][0]]
    path, query = dict(case.path_parameters or {}), {**(case.query or {}), "apikey": running_proxy.KEY}
    if len(path.get("uid", "")) % 2:
        path["uid"] = uid
    if len(query.get("uid[]", [])) % 2:
        query["uid[]"] = [*query["uid[]"][:-1], uid]
    if "queries" in query:
        query["queries"] = json.dumps([_known(each) for each in json.loads(query["queries"])])
    case.path_parameters, case.query = path, query


def _known(query: Any) -> Any:
    numbers = {key: "SN74S74N" for key in ("mpn", "mpn_or_sku") if len(query.get(key) or "") % 2}
    return {**query, **numbers} if numbers else query


@SCHEMA.parametrize()
@hypothesis.settings(max_examples=8)
def test_any_request_gets_a_described_response_without_server_error(case: Any, url: str) -> None:
    _meant_to_find(case)
    response = case.call_and_validate(base_url=f"{url}{endpoints.PREFIXES[0]}", checks=CHECKS)
    assert b"ServerErrorResponse" not in response.content  # as a 200, with suppress_status_codes
