"""A catalog of a million parts: making it, starting with it, and every kind of search through HTTP.

`python -m bench catalog`; of `PARTS` parts. The sandbox is the program itself, in a process of its own.
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

from bench.goals import Goal
from proxy.sandbox.catalog import store

PARTS = int(os.environ.get("BENCH_CATALOG_PARTS", "1000000"))
STARTS, ROUNDS = 5, 5
# Searches of each kind that a sandbox keeps.
REMEMBERED = 32
GOALS = {
    "start with it, to the first answer (s)": Goal("≤", 2.0),
    "search of it, all kinds: median (ms)": Goal("≤", 50.0),
}
PAGE = "hits results { part { mpn shortDescription manufacturer { name } } }"
AGGREGATIONS = """hits manufacturerAgg(size: 10) { count } distributorAgg(size: 10) { count }
categoryAgg(size: 10) { count } inStockAgg { count }
specAggs(attributeNames: ["resistance", "tolerance"], size: 10) { buckets { count } }"""
NUMBERS = ("RC0603FR-0710KL", "SN74S74N", "RN55D4991FB14", "D38999/26FA35SN")
WORDS = ("resistor", "ceramic capacitor", "metal film resistor 4.7 kΩ", "oscillator 25 MHz", "zener", "X7R 100 nF 0603")


def _search(kind: str, wanted: str, **arguments: Any) -> str:
    given = ", ".join(f"{name}: {_literal(value)}" for name, value in arguments.items())
    return f"{{ {kind}({given}) {{ {wanted} }} }}"


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
            _search("supSearchMpn", PAGE, q=q) for q in ("RC0603", "CMF55", "SN74", "C1608X7R")
        ],
        "part numbers, middles": [_search("supSearchMpn", PAGE, q=q) for q in ("104K", "4K7", "X7R1H", "-33E-")],
        "words": [_search("supSearch", PAGE, q=q) for q in WORDS],
        "words, filtered": [
            _search("supSearch", PAGE, q="resistor", filters=filters)
            for filters in ({"manufacturer_id": ["Vishay"]}, {"distributor_id": ["459"]}, ranged)
        ],
        "sorted": [
            _search("supSearch", PAGE, q=q, sort=sort)
            for q, sort in (("resistor", "median_price_1000"), ("capacitor", "mpn"), ("film", "resistance"))
        ],
        "aggregations": [_search("supSearch", AGGREGATIONS, q=q) for q in ("resistor", "capacitor X7R", "diode", "")],
        "matches": [_match(mpn=mpn) for mpn in NUMBERS] + [_match(sku="C1000500000"), _match(mpnOrSku="SN74S74N")],
        "suggestions": [_search("supSuggest", "text", q=q) for q in ("R", "RC06", "CMF5")],
        "spelling": [_search("supSpellingCorrection", "correctionString hits", q=q) for q in ("resitsor", "capacitro")],
        "categories": ["{ supCategories { id numParts } }"],
    }


class _Asked:
    """A running sandbox, asked one thing after the other."""

    def __init__(self, shown: dict[str, str]) -> None:
        form = {"grant_type": "client_credentials", "client_id": shown["client_id"]}
        form["client_secret"] = shown["client_secret"]
        with urllib.request.urlopen(shown["token_url"], urllib.parse.urlencode(form).encode()) as reply:
            token = json.load(reply)["access_token"]
        self._url = shown["graphql_url"]
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}

    def seconds(self, query: str) -> float:
        """How long the answer took; one with errors ends the run."""
        request = urllib.request.Request(self._url, json.dumps({"query": query}).encode(), self._headers)
        begun = time.perf_counter()
        with urllib.request.urlopen(request) as reply:
            answer = json.load(reply)
        if "errors" in answer:
            raise SystemExit(f"{query}: {answer['errors']}")
        return time.perf_counter() - begun

    def forget(self, each: int) -> None:
        """Have the sandbox forget the searches that it remembers: it is the search that is measured."""
        for number in range(REMEMBERED):
            for kind in ("supSearch", "supSearchMpn"):
                self.seconds(_search(kind, "hits", q=f"zq{each}zq{number}"))


def run() -> dict[str, float]:
    """Seconds and MB of the file, seconds of a start, milliseconds of each kind of search."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.db"
        begun = time.perf_counter()
        store.prepare(path, PARTS, processes=os.cpu_count() or 1)
        figures = {
            f"catalog of {PARTS} parts: made in (s)": time.perf_counter() - begun,
            "its file (MB)": path.stat().st_size / 1e6,
            "start with it, to the first answer (s)": median(_start(path) for _ in range(STARTS)),
        }
        return figures | _searches(path)


def _start(path: Path) -> float:
    begun = time.perf_counter()
    with _sandbox(path) as asked:
        asked.seconds(_kinds()["matches"][0])
        return time.perf_counter() - begun


def _searches(path: Path) -> dict[str, float]:
    kinds = _kinds()
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    with _sandbox(path) as asked:
        for each in range(ROUNDS + 1):
            for kind, queries in kinds.items():
                asked.forget(each)
                found = [asked.seconds(query) * 1e3 for query in queries]
                # In the first round columns are read; that is part of the start.
                taken[kind] += found if each else []
    every = [one for found in taken.values() for one in found]
    figures = {"search of it, all kinds: median (ms)": median(every), "p95 (ms)": quantiles(every, n=20)[-1]}
    for kind, found in taken.items():
        figures[f"{kind}: median (ms)"] = median(found)
        figures[f"{kind}: slowest (ms)"] = max(found)
    return figures


@contextmanager
def _sandbox(path: Path) -> Iterator[_Asked]:
    command = [sys.executable, "-m", "proxy", "sandbox", "--port", "0", "--prepared", str(path)]
    process = subprocess.Popen([*command, "--part-limit", "1000000"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        shown: dict[str, str] = {}
        while "client_secret" not in shown:
            name, value = process.stdout.readline().split()
            shown[name] = value
        yield _Asked(shown)
    finally:
        process.terminate()
        process.wait()
