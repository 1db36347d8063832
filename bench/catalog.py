"""Sandbox with a catalog of 50 000 parts: creation, start, and every kind of search over HTTP.

`python -m bench catalog`; BENCH_CATALOG_PARTS sets the number of parts. The sandbox runs in its own process.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import nexar_sandbox
from bench.goals import Goal

PARTS = int(os.environ.get("BENCH_CATALOG_PARTS", "50000"))
STARTS, ROUNDS = 5, 5
CACHED_SEARCHES = 32  # of each kind, in the search cache of a sandbox
GOALS = {
    "start with it, to the first answer (s)": Goal("≤", 2.0),
    "search of it, all kinds: median (ms)": Goal("≤", 50.0),
}
PAGE = "hits results { part { mpn shortDescription manufacturer { name } } }"
AGGREGATIONS = """hits manufacturerAgg(size: 10) { count } distributorAgg(size: 10) { count }
categoryAgg(size: 10) { count } inStockAgg { count }
specAggs(attributeNames: ["resistance", "tolerance"], size: 10) { buckets { count } }"""
NUMBERS = ("RC0603FR-0710KL", "SN74S74N", "CRCW0805475RFKEB", "C0603C682M3PACTU")
WORDS = ("resistor", "ceramic capacitor", "chip resistor 4.7 kΩ", "inductor 10 µH", "zener", "X7R 100 nF 0603")


def _search(kind: str, selection: str, **arguments: Any) -> str:
    argument_text = ", ".join(f"{name}: {_literal(value)}" for name, value in arguments.items())
    return f"{{ {kind}({argument_text}) {{ {selection} }} }}"


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_literal(inner)}" for name, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _match(**query: str) -> str:
    return _search("supMultiMatch", "hits parts { mpn }", queries=[{}]).replace("[{}]", f"[{_literal(query)}]")


def _kinds() -> dict[str, list[str]]:
    ranged = {"resistance": ["(1000__10000)"], "tolerance": ["1"]}
    return {
        "part numbers, whole": [_search("supSearchMpn", PAGE, q=q) for q in NUMBERS],
        "part numbers, beginnings": [
            _search("supSearchMpn", PAGE, q=q) for q in ("RC0603", "CRCW08", "SN74", "C0603C")
        ],
        "part numbers, middles": [_search("supSearchMpn", PAGE, q=q) for q in ("104K", "4K7", "R7R", "-14-G")],
        "words": [_search("supSearch", PAGE, q=q) for q in WORDS],
        "words, filtered": [
            _search("supSearch", PAGE, q="resistor", filters=filters)
            for filters in ({"manufacturer_id": ["Vishay"]}, {"distributor_id": ["459"]}, ranged)
        ],
        "sorted": [
            _search("supSearch", PAGE, q=q, sort=sort)
            for q, sort in (("resistor", "median_price_1000"), ("capacitor", "mpn"), ("chip", "resistance"))
        ],
        "aggregations": [_search("supSearch", AGGREGATIONS, q=q) for q in ("resistor", "capacitor X7R", "diode", "")],
        "matches": [_match(mpn=mpn) for mpn in NUMBERS] + [_match(sku="C1000025000"), _match(mpnOrSku="SN74S74N")],
        "suggestions": [_search("supSuggest", "text", q=q) for q in ("R", "RC06", "CRCW")],
        "spelling": [_search("supSpellingCorrection", "correctionString hits", q=q) for q in ("resitsor", "capacitro")],
        "categories": ["{ supCategories { id numParts } }"],
    }


class _SandboxClient:
    """Client of a running sandbox; sends one query at a time."""

    def __init__(self, printed: dict[str, str]) -> None:
        form = {"grant_type": "client_credentials", "client_id": printed["client_id"]}
        form["client_secret"] = printed["client_secret"]
        with urllib.request.urlopen(printed["token_url"], urllib.parse.urlencode(form).encode()) as response:
            token = json.load(response)["access_token"]
        self._url = printed["graphql_url"]
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}

    def measure(self, query: str) -> float:
        """Send a query; returns the duration in seconds. A response with errors ends the run."""
        request = urllib.request.Request(self._url, json.dumps({"query": query}).encode(), self._headers)
        start = time.perf_counter()
        with urllib.request.urlopen(request) as response:
            document = json.load(response)
        if "errors" in document:
            raise SystemExit(f"{query}: {document['errors']}")
        return time.perf_counter() - start

    def clear_cache(self, round_number: int) -> None:
        """Fill the search cache of the sandbox with other searches, so that no measured search is cached."""
        for number in range(CACHED_SEARCHES):
            for kind in ("supSearch", "supSearchMpn"):
                self.measure(_search(kind, "hits", q=f"zq{round_number}zq{number}"))


def run() -> dict[str, float]:
    """Return seconds and MB of the file, seconds of a start, and milliseconds of each kind of search."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.db"
        start = time.perf_counter()
        nexar_sandbox.prepare_catalog(path, PARTS)
        figures = {
            f"catalog of {PARTS} parts: made in (s)": time.perf_counter() - start,
            "its file (MB)": path.stat().st_size / 1e6,
            "start with it, to the first answer (s)": median(_start(path) for _ in range(STARTS)),
        }
        return figures | _searches(path)


def _start(path: Path) -> float:
    start = time.perf_counter()
    with _sandbox(path) as client:
        client.measure(_kinds()["matches"][0])
        return time.perf_counter() - start


def _searches(path: Path) -> dict[str, float]:
    kinds = _kinds()
    times_by_kind: dict[str, list[float]] = {kind: [] for kind in kinds}
    with _sandbox(path) as client:
        for round_number in range(ROUNDS + 1):
            for kind, queries in kinds.items():
                client.clear_cache(round_number)
                times = [client.measure(query) * 1e3 for query in queries]
                # The first round reads the columns, which is part of the start.
                times_by_kind[kind] += times if round_number else []
    all_times = [duration for times in times_by_kind.values() for duration in times]
    figures = {"search of it, all kinds: median (ms)": median(all_times), "p95 (ms)": quantiles(all_times, n=20)[-1]}
    for kind, times in times_by_kind.items():
        figures[f"{kind}: median (ms)"] = median(times)
        figures[f"{kind}: slowest (ms)"] = max(times)
    return figures


@contextmanager
def _sandbox(path: Path) -> Iterator[_SandboxClient]:
    command = [sys.executable, "-m", "proxy", "sandbox", "--port", "0", "--prepared", str(path)]
    process = subprocess.Popen([*command, "--part-limit", "1000000"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        printed: dict[str, str] = {}
        while "client_secret" not in printed:
            name, value = process.stdout.readline().split()
            printed[name] = value
        yield _SandboxClient(printed)
    finally:
        process.terminate()
        process.wait()
