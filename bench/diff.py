"""Diff of two responses of 255 KB: 48 parts with 288 offers, different order of keys, five changes.

Goal: 2 ms of wall time at the median of many rounds; the best round is reported too, because other load on the machine
affects the median. Parsing the two responses, which precedes every diff, is measured for comparison; the baseline's
JSON has spaces.
"""

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from bench import canned
from bench.goals import Goal
from proxy import model
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import projection_cache
from proxy.planning.operations import join_records
from proxy.tools.compare.judging import diff
from proxy.traffic import v3_response

ROUNDS, RESULTS = 60, 16
GOALS = {"diff of a 255 KB pair, few changes (ms)": Goal("≤", 2.0)}

T = TypeVar("T")


def run() -> dict[str, float]:
    """Return milliseconds of wall time, and the ratio to parsing; medians of all rounds except for the best."""
    same, candidate_body = _response(), json.dumps(_changed(_response()), separators=(",", ":")).encode()
    baseline_body = json.dumps(same, sort_keys=True).encode()
    equal_body = json.dumps(same).encode()
    assert 250_000 < len(candidate_body) < 260_000, len(candidate_body)
    times = []
    for _ in range(ROUNDS):
        pair, parsing = _timed(lambda: (v3_response.read_json(baseline_body), v3_response.read_json(candidate_body)))
        differences, few = _timed(partial(diff.diff_documents, *pair))
        assert sorted(difference.kind for difference in differences) == [
            "extra",
            "missing",
            "order",
            "value",
            "value",
        ], differences
        pair = v3_response.read_json(baseline_body), v3_response.read_json(equal_body)
        differences, none = _timed(partial(diff.diff_documents, *pair))
        assert differences == []
        times.append((few, none, parsing))
    few, none, parsing = (statistics.median(column) for column in zip(*times, strict=True))
    return {
        "diff of a 255 KB pair, few changes (ms)": few,
        "the same, best (ms)": min(ours for ours, _, _ in times),
        "diff of an equal pair (ms)": none,
        "parsing the pair (ms)": parsing,
        "diff, few changes / parsing": statistics.median(ours / read for ours, _, read in times),
    }


def _response() -> dict[str, Any]:
    projection = projection_cache.ProjectionCache(loader.load(shipped.path("mappings"))).match(
        model.Projection(features=frozenset({"LEAD_TIME"}))
    )
    decoded = projection.documents.multi_match.operation({}, 0).decode(canned.body())
    parts = [
        projection.part.map(part, model.MappingContext("US", "USD"))
        for part in projection.part.decode_list(join_records(decoded.data.supMultiMatch[0].parts))
    ]
    results = [{"items": parts, "hits": 3, "reference": str(number), "error": None} for number in range(RESULTS)]
    response: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode({"__class__": "PartsMatchResponse", "msec": 7, "results": results})
    )
    return response


def _changed(response: dict[str, Any]) -> dict[str, Any]:
    """Change a price and a stock, add an offer, reverse offers, and remove a field, far from each other."""
    offers = [[item["offers"] for item in result["items"]] for result in response["results"]]
    offers[2][1][3]["prices"]["USD"][2][1] = "9.99000"
    offers[5][0].insert(2, {**offers[5][0][2], "sku": "one more"})
    offers[7][2].reverse()
    del response["results"][9]["items"][0]["brand"]["homepage_url"]
    offers[12][0][0]["in_stock_quantity"] = 7
    return response


def _timed(job: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    done = job()
    return done, (time.perf_counter() - started) * 1e3
