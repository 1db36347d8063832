"""Defects planted in the candidate's responses: each is found at its field, and no other difference is.

A defect changes what a place in all responses of an endpoint has; the YAML file has them. Responses without a defect
are equivalent, so that whatever is found is the defect.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from support import cases
from together.environment import ProxyEnvironment
from together.tools.compare.comparison import KEY, WHOLE

from proxy.tools.compare.judging import fields
from proxy.tools.compare.judging.causes import Causes
from proxy.tools.compare.judging.judge import Judge
from proxy.traffic.recordings import SideResponse
from proxy.traffic.v3_request import V3Request

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environment, which is that of the file

Pair = tuple[V3Request, SideResponse, SideResponse]
FEW = 3
DEFECTS = cases.of(__file__, "defects")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pairs(environment: ProxyEnvironment, learned_environment: ProxyEnvironment) -> list[Pair]:
    """Requests with the responses of both services."""
    found = []
    async with aiohttp.ClientSession() as session:
        for request in WHOLE:
            sides = []
            for base in (environment.sandbox.legacy_url, learned_environment.proxy.url):
                async with session.get(f"{base}/v3{request.target(KEY)}") as response:
                    sides.append(SideResponse(response.status, await response.read()))
            found.append((request, sides[0], sides[1]))
    readable = (each for each in found if each[1].status == each[2].status == 200)
    return sorted(readable, key=lambda each: len(each[1].body))


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge((), Causes(fields.load()), str)


def _found(judge: Judge, request: V3Request, baseline: SideResponse, body: Any) -> set[str]:
    """The paths that count, without indexes."""
    response = SideResponse(200, json.dumps(body).encode())
    compared = judge.compare(request, (baseline, response))
    return {re.sub(r"\[[^]]*\]", "", finding.difference.path) for finding in compared.findings}


def _holders(value: Any, steps: list[str]) -> Iterator[tuple[Any, Any]]:
    """What has the places of a path, and its key or index there."""
    at, *below = steps
    if at == "*":
        keys: Any = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    else:
        keys = [at] if isinstance(value, dict) and at in value else ()
        keys = [int(at)] if isinstance(value, list) and at.isdigit() and int(at) < len(value) else keys
    for key in keys:
        if below:
            yield from _holders(value[key], below)
        else:
            yield value, key


def _plant(body: Any, place: str, change: Any) -> None:
    places = list(_holders(body, place.split(".")))
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


def _is_at(path: str, place: str) -> bool:
    """Whether a path, without indexes, leads to a place, or to something around it or in it."""
    steps = [r"(\.\w+)?" if step == "*" or step.isdigit() else rf"\.{step}" for step in place.split(".")]
    around = ("".join(steps[:length]) for length in range(1, len(steps)))
    return any(re.fullmatch(each, f".{path}") for each in (*around, "".join(steps) + r"(\..*)?"))


async def test_planted_defects_are_found_at_their_fields(judge: Judge, pairs: list[Pair]) -> None:
    """Of each endpoint few responses that the defect changes are compared: the first ones."""
    assert len(DEFECTS) >= 35
    before: dict[str, set[str]] = {}
    wrong = []
    for endpoint, place, change in DEFECTS:
        changed, found = 0, set[str]()
        for request, baseline, candidate in pairs:
            if request.endpoint != endpoint or changed == FEW:
                continue
            body = json.loads(candidate.body)
            _plant(body, place, change)
            if body != json.loads(candidate.body):
                changed += 1
                if request.id not in before:
                    before[request.id] = _found(judge, request, baseline, json.loads(candidate.body))
                found |= _found(judge, request, baseline, body) - before[request.id]
        elsewhere = [path for path in found if not _is_at(path, place)]
        if elsewhere or not found:
            wrong.append((endpoint, place, change, changed, sorted(found)))
    assert not wrong, wrong
