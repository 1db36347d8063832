"""GraphQL requests compared with an aiohttp handler that passes the same documents on, on a canned upstream.

The document selects what the service fetches of a part as shipped, so that both receive and send the same fields. The
first rendering is measured alone: parts of memory, without a server.
"""

import json
import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec
from graphql.execution import values

from bench import canned
from bench.goals import Goal
from bench.processes import LoadResult, load, pass_through, service, start_all, upstream
from proxy.graphql import schema
from proxy.graphql.documents import DocumentReader
from proxy.graphql.selection import Selections, compile_part

ROUNDS, SECONDS, WARM, RATE, UPSTREAM_MS = 3, 1.0, 0.6, 200, 50
PARTS, OFFERS, RENDERINGS = 20, 20, 50
SELECTION = """
akaMpns category { ancestors { id name } id name } descriptions { creditString text } freeSampleUrl id
images { creditString creditUrl url55px url75px url90px urlLargest } manufacturer { homepageUrl id name }
manufacturerUrl mpn octopartUrl shortDescription slug totalAvail v3uid
sellers { company { displayFlag homepageUrl id name } isAuthorized offers { clickUrl eligibleRegion factoryLeadDays
factoryPackQuantity id inventoryLevel moq multipackQuantity onOrderQuantity orderMultiple packaging
prices { currency price quantity } sku updated } }"""
DOCUMENT = (
    f"query($queries: [SupPartMatchQuery!]!) {{ supMultiMatch(queries: $queries) {{ hits parts {{ {SELECTION} }} }} }}"
)


def target(mpn: str, limit: int = 3) -> str:
    """Return the target and the body of a request for a part number."""
    sent = {"query": " ".join(DOCUMENT.split()), "variables": {"queries": [{"mpn": mpn, "limit": limit}]}}
    return f"/graphql?apikey=EXAMPLE_KEY {json.dumps(sent)}"


MISS, HIT, SAME = "miss", "hit", "same query in flight"
TARGETS = {MISS: target("SN74SNUMBER"), HIT: target("SN74S74N"), SAME: target("SN74SBURST")}
FLOOR = "pass-through"


def _ratio(name: str) -> str:
    return f"GraphQL, {name} / {FLOOR}, by CPU"


ADDED = f"added over {FLOOR} at {RATE} requests/s: miss with one part, p50 (ms)"
ADDED_REPEATED = f"added over {FLOOR} at {RATE} requests/s: repeated, p50 (ms)"
FIRST = f"first rendering of {PARTS} parts with {OFFERS} offers (ms)"
GOALS = {
    **{_ratio(name): Goal("≥", 0.6) for name in TARGETS},
    ADDED: Goal("≤", 0.5),
    ADDED_REPEATED: Goal("≤", 0.5),
    FIRST: Goal("≤", 3.0),
}


def run() -> dict[str, float]:
    """Return medians over all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        throughput = [_throughput(Path(folder)) for _ in range(ROUNDS)]
        latency = [_latency(Path(folder)) for _ in range(ROUNDS)]
    return {
        f"{FLOOR} (requests/s)": median(floor.rate for floor, _ in (each[MISS] for each in throughput)),
        **{
            _ratio(name): median(floor.cpu / own.cpu for floor, own in (each[name] for each in throughput))
            for name in TARGETS
        },
        ADDED: median(miss - floor for floor, miss, _ in latency),
        ADDED_REPEATED: median(hit - floor for floor, _, hit in latency),
        FIRST: _first_rendering(),
    }


def _throughput(folder: Path) -> dict[str, tuple[LoadResult, LoadResult]]:
    """Return the results of pass-through and service for each kind of request."""
    with ExitStack() as stack:
        behind = stack.enter_context(upstream())
        servers = start_all(stack, {FLOOR: pass_through(behind), "service": service(behind, folder)})
        results: dict[str, tuple[LoadResult, LoadResult]] = {}
        for name, requested in TARGETS.items():
            measured: dict[str, list[LoadResult]] = {each: [] for each in servers}
            for server in servers.values():
                load(server, requested, WARM)
            order = random.sample(list(servers), len(servers))
            for each in [*order, *reversed(order)]:
                measured[each].append(load(servers[each], requested, SECONDS))
            floor, own = (LoadResult(*map(mean, zip(*pair, strict=True))) for pair in measured.values())
            results[name] = floor, own
        return results


def _latency(folder: Path) -> tuple[float, float, float]:
    """Return the p50 of the pass-through, of misses and of hits, each there and back."""
    one, repeated = target("SN74SNUMBER", 1), target("SN74S74N", 1)
    with upstream(UPSTREAM_MS, 1) as behind, pass_through(behind) as floor, service(behind, folder) as own:
        runs = ((floor, one), (own, one), (own, repeated))
        for server, requested in runs:
            load(server, requested, WARM, 1 / RATE)
        there = [load(server, requested, SECONDS, 1 / RATE).p50 for server, requested in runs]
        back = [load(server, requested, SECONDS, 1 / RATE).p50 for server, requested in reversed(runs)][::-1]
    low, miss, hit = (mean(pair) for pair in zip(there, back, strict=True))
    return low, miss, hit


def _first_rendering() -> float:
    """Return the milliseconds from the records of parts to JSON in the shape of a compiled selection."""
    document = DocumentReader(schema.load()).read(DOCUMENT)
    variables = values.get_variable_values(schema.load(), (), {})
    assert not isinstance(variables, list)
    selections = Selections(schema.load(), document.fragments, variables, {})
    root = selections.fields(document.operation(None).selection_set)[0]
    parts = next(field for field in selections.below(root) if field.name == "parts")
    compiled = compile_part(selections, selections.below(parts))
    records, encode = json.dumps([_part()] * PARTS).encode(), msgspec.json.encode
    times = []
    for _ in range(RENDERINGS):
        began = time.perf_counter()
        encode([compiled.map(part, None) for part in compiled.decode_list(records)])  # type: ignore[arg-type]
        times.append(time.perf_counter() - began)
    return median(times) * 1000


def _part() -> dict[str, Any]:
    part: dict[str, Any] = json.loads(canned.match_body(["SN74S74N"], 1, whole=True))["data"]["supMultiMatch"][0][
        "parts"
    ][0]
    sellers = part["sellers"]
    return part | {"sellers": [sellers[n % len(sellers)] for n in range(OFFERS)]}
