"""The longest step of the event loop, for documents and variables at their bounds and beyond.

The service runs in this process, in front of no upstream, so that all CPU is its own; clients have a thread. A task
that does nothing else sees how much CPU the loop's thread has used between two turns. Each request counts by its best
of some, so that a collection of garbage is not taken for it.
"""

import asyncio
import contextlib
import io
import json
import os
import tempfile
import time
import urllib.error
import urllib.request
from typing import Any

import graphql
import msgspec

from bench.processes import TIMEOUT
from proxy import app, config, log
from proxy.config import loader
from proxy.kit import shipped

LONGEST = "longest step of the event loop, documents at their bounds and beyond (ms of CPU)"
GOALS = {LONGEST: -50}
SELLERS = "sellers { company { name } } "


def _parts(selection: str, more: str = "") -> str:
    return f'{{ supParts(ids: ["a"]) {{ {selection} }} }} {more}'


def _many(count: int, text: str) -> str:
    return " ".join(text.replace("NUMBER", str(number)) for number in range(count))


DOCUMENTS = [
    _parts(SELLERS * 600),
    _parts("mpn", _many(100, "fragment FNUMBER on SupPart { " + SELLERS * 12 + "}")),
    "{ __schema { types { fields { args { " + _many(240, "aNUMBER: name") + " } } } } }",
    _parts(_many(655, "aNUMBER: mpn")),
    _parts(_many(95, "...FNUMBER"), _many(95, "fragment FNUMBER on SupPart { aNUMBER: id bNUMBER: id }")),
    "{ " + _many(20, 'aNUMBER: supParts(ids: ["NUMBER"]) { ...F }') + " } fragment F on SupPart { "
    + _many(90, "aNUMBER: mpn") + " }",
    graphql.get_introspection_query(),
    "{ supParts(ids: [" + _many(1_900, '"NUMBER"') + "]) { mpn } }",
]  # fmt: skip
QUERIES = 660, 30_000  # within the bounds of variables, and beyond


def run() -> dict[str, float]:
    return asyncio.run(_run())


async def _run() -> dict[str, float]:
    log.configure("error", "json", io.StringIO())
    settings = loader.load(shipped("config.yaml"), os.environ, upstream=False)
    demo, secret = settings.applications["demo"], config.Secret("bench-secret")
    with tempfile.TemporaryDirectory() as folder:
        changes = {
            "applications": {"demo": msgspec.structs.replace(demo, client_id="bench", client_secret=secret)},
            "upstream": config.UpstreamSettings("http://127.0.0.1:9/graphql", "http://127.0.0.1:9/connect/token"),
            "listen": msgspec.structs.replace(settings.listen, port=0),
            "store": config.StoreUrl(f"sqlite:{folder}/state.sqlite"),
            "admin": False,
        }
        async with app.serving(msgspec.structs.replace(settings, **changes)) as service:
            return {LONGEST: await _longest(service.url.rstrip("/")) * 1_000}


async def _longest(url: str) -> float:
    requests: list[dict[str, Any]] = [{"query": document} for document in DOCUMENTS]
    for count in QUERIES:
        queries = [{"mpn": f"{number}", "limit": 1} for number in range(count)]
        document = "query ($q: [SupPartMatchQuery!]!) { supMultiMatch(queries: $q) { hits parts { mpn } } }"
        requests.append({"query": document, "variables": {"q": queries}})
    return max([min([await _step(url, each) for _ in range(5)]) for each in requests])


async def _step(url: str, request: dict[str, Any]) -> float:
    """Return the longest step while a request is answered whose document is new."""
    sending = asyncio.create_task(asyncio.to_thread(_send, url, request))
    longest, before = 0.0, time.thread_time()
    while not sending.done():
        await asyncio.sleep(0)
        longest, before = max(longest, (now := time.thread_time()) - before), now
    await sending
    return longest


def _send(url: str, request: dict[str, Any]) -> None:
    body = json.dumps(request | {"query": f"# {time.time_ns()}\n{request['query']}"}).encode()
    sent = urllib.request.Request(f"{url}/graphql", body, {"token": "EXAMPLE_KEY", "Accept": "application/json"})
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(sent, timeout=TIMEOUT).close()
