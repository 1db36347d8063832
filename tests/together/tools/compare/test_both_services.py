"""Responses of the old service and of the proxy to a log with requests of every kind: they are equivalent where the
proxy has a table of uids that was learned from the old service, differ in unrecorded uids only where it has none, and
each planted defect is found at its field.

A defect changes what a place in all responses of an endpoint has; the YAML file has them.
"""

import dataclasses
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml
from aiohttp import web
from support import cases, commands
from support.comparison_server import request_from_target
from support.served import serve
from together.conftest import starter
from together.environment import ProxyEnvironment, StartEnvironment

import nexar_sandbox
from proxy import config
from proxy.kit import clock, shipped
from proxy.mapping import loader
from proxy.tools.compare import sides, uid_learning
from proxy.tools.compare.judging import json_values
from proxy.tools.compare.judging.causes import Causes
from proxy.tools.compare.judging.judge import Judge
from proxy.traffic.recordings import SideResponse
from proxy.traffic.v3_request import V3Request
from proxy.v3 import endpoints

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environments, which are those of the file

KEY = "EXAMPLE_KEY"
UPSTREAM = {
    "legacy": nexar_sandbox.LegacySettings(requests_per_second=None),
    "applications": (dataclasses.replace(nexar_sandbox.DEFAULT_APPLICATION, part_limit=1_000_000),),
}
LOG = Path(__file__).with_name("requests.txt").read_text(encoding="utf-8").splitlines()
LISTS = [
    f"/v3/{name}/search?limit=100&start={start}" for name in ("brands", "sellers") for start in range(0, 1000, 100)
]
LISTS += [f"/v3/categories/search?limit=100&start={start}" for start in range(0, 500, 100)]
# Specs have v3's keys, tolerances as text, and ranges.
SEARCH = "/v3/parts/search?limit=20&include[]=specs&hide[]=offers&"
SPECS = [
    *("tolerance.value", "resistance_tolerance.value", "resistance.value", "pin_count.value", "mount.value"),
    *("operating_temperature.value", "operating_temperature.min_value", "supply_voltage_dc.max_value"),
]
COUNTED = [f"{SEARCH}q=op+amp&facet[fields][specs.{each}][include]=1&stats[specs.{each}][include]=1" for each in SPECS]
# Not by the tolerance of one quantity: the service can order by every tolerance only (docs/v3-today.md).
SORTED = [f"{SEARCH}sortby=specs.{each}+{way}" for each in (SPECS[0], *SPECS[2:]) for way in ("asc", "desc")]
FILTERED = [
    *(f"{SEARCH}filter[fields][specs.{each}][]={value}" for each in SPECS[:2] for value in ("%C2%B15%25", "5", "5.0")),
    *(f"{SEARCH}filter[queries][]=specs.{each}:[{ends}]" for each in SPECS for ends in ("2+TO+10", "*+TO+3")),
    *(f"{SEARCH}filter[fields][specs.operating_temperature.value][]={value}" for value in ("85", "-200")),
]
DRILLED = [f"{SEARCH}spec_drilldown[include]=1&spec_drilldown[limit]=10&q={q}" for q in ("resistor", "op+amp", "")]
REQUESTS = [request_from_target(target) for target in (*LOG, *COUNTED, *SORTED, *FILTERED, *DRILLED)]
HIDING = {"show[]", "hide[]", "slice[offers]"}  # which remove the fields that identify elements
FEW = 3  # responses of each endpoint that a defect is planted in
DEFECTS = cases.of(__file__, "defects")

Responses = dict[str, SideResponse]  # by the id of a request


@pytest.fixture(scope="module")
def start(catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey) -> StartEnvironment:
    return starter(catalog, signing_key, clock.ManualClock())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    async with start(sandbox=UPSTREAM) as opened:
        yield opened


async def responses(url: str, requests: Sequence[V3Request]) -> Responses:
    async with sides.open_session() as session:
        side = sides.HttpSide(f"{url}/v3", lambda _: KEY, session)
        return {request.id: await side.fetch(request) for request in requests}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def baselines(environment: ProxyEnvironment) -> Responses:
    return await responses(environment.sandbox.legacy_url, REQUESTS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def candidates(
    start: StartEnvironment,
    environment: ProxyEnvironment,
    baselines: Responses,
    tmp_path_factory: pytest.TempPathFactory,
) -> Responses:
    """The responses of a proxy with a table of uids that was learned from the old service."""
    lists = await responses(environment.sandbox.legacy_url, [request_from_target(target) for target in LISTS])
    bodies = [json_values.read(each.body) for each in (*baselines.values(), *lists.values()) if each.status == 200]
    learned = uid_learning.learned_uids(bodies, loader.load_uids(shipped("mappings")))
    table = {
        kind: [
            {"uid": line.uid, "name": line.name, "also": [*line.also], "source": "learnt"}
            | ({"id": line.id} if line.id else {})
            for line in lines
        ]
        for kind, lines in learned.lines.items()
    }
    file = tmp_path_factory.mktemp("learned") / "uids.yaml"
    file.write_text(yaml.safe_dump(table), encoding="utf-8")
    async with start(sandbox=UPSTREAM, uids=config.secret.File(file)) as opened:
        return await responses(opened.proxy.url, REQUESTS)


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge((), Causes(), str)


async def test_requests_cover_every_endpoint() -> None:
    known = {endpoint.path for endpoint in endpoints.ENDPOINTS if endpoint.alias_of is None}
    assert {request.endpoint for request in REQUESTS} == known


async def test_learned_uids_make_services_equivalent(judge: Judge, baselines: Responses, candidates: Responses) -> None:
    for request in REQUESTS:
        pair = baselines[request.id], candidates[request.id]
        assert [sides.failure(each, "") for each in pair] == [None, None]
        compared = judge.compare(request, pair)
        found = [(each.cause, each.difference) for each in (*compared.findings, *compared.unknown_uids)]
        assert found == [], request.target()


async def test_without_it_only_uids_differ(judge: Judge, environment: ProxyEnvironment, baselines: Responses) -> None:
    some = REQUESTS[:30]
    found = await responses(environment.proxy.url, some)
    compared = {request: judge.compare(request, (baselines[request.id], found[request.id])) for request in some}
    assert {each.difference.kind for every in compared.values() for each in every.unknown_uids} == {"uid not known"}
    causes = {request.endpoint: {each.cause for each in every.findings} for request, every in compared.items()}
    assert set().union(*causes.values()) == {"unknown uid requested"}
    assert causes["/parts/match"] == causes["/parts/{uid}"] == set()


def holders(value: Any, steps: list[str]) -> Iterator[tuple[Any, Any]]:
    """What has the places of a path, and its key or index there."""
    at, *below = steps
    if at == "*":
        keys: Any = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    else:
        keys = [at] if isinstance(value, dict) and at in value else ()
        keys = [int(at)] if isinstance(value, list) and at.isdigit() and int(at) < len(value) else keys
    for key in keys:
        if below:
            yield from holders(value[key], below)
        else:
            yield value, key


def plant(body: Any, place: str, change: Any) -> None:
    places = list(holders(body, place.split(".")))
    values = [holder[key] for holder, key in places]
    for (holder, key), value, following in zip(places, values, values[1:] + values[:1], strict=True):
        match change:
            case {"set": planted}:
                holder[key] = planted
            case {"copy": field}:
                holder[key] = holder[field]
            case "first":
                holder[key] = values[0]
            case "shift":
                holder[key] = following
            case "reverse":
                holder[key] = value[::-1] if isinstance(value, list) else value
            case "shorten":
                holder[key] = value[:-1] if isinstance(value, list) else value
            case "add":
                holder[key] = value + 1 if isinstance(value, int) else value


def is_at(path: str, place: str) -> bool:
    """Whether a path, without indexes, leads to a place, or to something around it or in it."""
    steps = [r"(\.\w+)?" if step == "*" or step.isdigit() else rf"\.{step}" for step in place.split(".")]
    around = ("".join(steps[:length]) for length in range(1, len(steps)))
    return any(re.fullmatch(each, f".{path}") for each in (*around, "".join(steps) + r"(\..*)?"))


async def test_planted_defects_are_found_in_place(judge: Judge, baselines: Responses, candidates: Responses) -> None:
    """Of each endpoint few responses that the defect changes are compared: the smallest."""
    whole = [request for request in REQUESTS[: len(LOG)] if not HIDING & {name for name, _ in request.query}]
    readable = [each for each in whole if baselines[each.id].status == candidates[each.id].status == 200]
    readable.sort(key=lambda request: len(baselines[request.id].body))
    wrong = []
    for endpoint, place, change in DEFECTS:
        changed, found = 0, set[str]()
        for request in readable:
            if request.endpoint != endpoint or changed == FEW:
                continue
            body = json.loads(candidates[request.id].body)
            plant(body, place, change)
            if body != json.loads(candidates[request.id].body):
                changed += 1
                planted = SideResponse(200, json.dumps(body).encode())
                compared = judge.compare(request, (baselines[request.id], planted))
                found |= {re.sub(r"\[[^]]*\]", "", finding.difference.path) for finding in compared.findings}
        elsewhere = [path for path in found if not is_at(path, place)]
        if elsewhere or not found:
            wrong.append((endpoint, place, change, changed, sorted(found)))
    assert not wrong, wrong


async def test_link_of_another_offer_is_looked_up_and_found(environment: ProxyEnvironment, tmp_path: Path) -> None:
    """No two offers have one link then, and the same two are exchanged in each response of the run."""

    async def exchange(request: web.Request) -> web.Response:
        url = environment.proxy.url + str(request.rel_url)
        content = await request.read()
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, url, data=content, headers=request.headers) as response,
        ):
            body = await response.json()
            if request.path == "/v3/parts/search":
                first, second, *_ = next(
                    found["item"]["offers"] for found in body["results"] if len(found["item"]["offers"]) > 1
                )
                first["product_url"], second["product_url"] = second["product_url"], first["product_url"]
            headers = {"X-Parts-Cost": response.headers.get("X-Parts-Cost", "0")}
            return web.json_response(body, status=response.status, headers=headers)

    (tmp_path / "calls.txt").write_text(f"/v3/parts/search?q=LM324&limit=5&apikey={KEY}\n")
    (tmp_path / "fast.yaml").write_text("baseline_rate: 0")
    async with serve(exchange) as candidate:
        sides = ("--baseline", environment.sandbox.legacy_url + "/v3", "--candidate", candidate)
        options = ("--rules", "fast.yaml", "--requests", "calls.txt", "--yes", "--json", "result.json")
        done = await commands.wait(await commands.start(tmp_path, "compare", *sides, *options))
    result = json.loads((tmp_path / "result.json").read_text("utf-8"))
    counted = {group["path"].rpartition(".")[2] for group in result["groups"] if group["counts"]}
    assert ("product_url" in counted, done.code, result["failures"]) == (True, 1, []), done
    assert result["spent"] <= 5 + 10
