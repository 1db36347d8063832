"""A team's day: what twelve programs request between two midnights, by the service and by the floor.

The programs are of the kinds in docs/connect.md, their 13 000 lines drawn from 5 000 part numbers by Zipf's law.
The trace is data (team_day.jsonl): second of the day, program, and the part numbers or the word that it names. Requests
are sent in this order, as fast as they are answered.
"""

import json
import random
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from urllib.parse import quote

from bench import canned
from bench.processes import Server, floor, load, service, upstream

ROUNDS, DAY_SECONDS = 3, 600.0
TRACE = Path(__file__).with_name("team_day.jsonl")
SERVICE, FLOOR = "team's day, v3bridge", "floor"
GOALS = {
    f"{SERVICE} / {FLOOR}: CPU time": -0.25,
    f"{SERVICE} / {FLOOR}: parts": -0.15,
}
ONE = '{"mpn":"{}","limit":1}'
MATCHING = {  # parameters and query of the programs that match part numbers, lists in calls of 20
    "purchasing": ("&include[]=descriptions", ONE),
    "kicost": ("&include[]=specs&include[]=datasheets", '{"mpn":"{}"}'),
    "cost check": ("&hide[]=datasheets&hide[]=specs", ONE),
    "stock monitor": ("&show[]=offers.in_stock_quantity&show[]=mpn", ONE),
    "stock alert": ("&slice[offers]=[0:10]", '{"mpn":"{}"}'),
    "spreadsheet": ("&include[]=short_description", ONE),
    "web page": ("&include[]=imagesets", '{"mpn":"{}","limit":3}'),
    "schematics": ("&include[]=datasheets", '{"mpn":"{}","limit":2}'),
    "work list": ("", ONE),
}


def run() -> dict[str, float]:
    """Return medians over all rounds."""
    with tempfile.TemporaryDirectory() as name:
        targets = Path(name, "targets")
        lines = map(json.loads, TRACE.read_text().splitlines())
        targets.write_text("\n".join(_target(program, named) for _, program, named in lines))
        rounds = [_round(targets) for _ in range(ROUNDS)]
    figures = {
        f"{name}: {what}": median(days[name][what] for days in rounds) for name in rounds[0] for what in rounds[0][name]
    }
    for what in ("CPU time", "parts"):
        figures[f"{SERVICE} / {FLOOR}: {what}"] = median(days[SERVICE][what] / days[FLOOR][what] for days in rounds)
    return figures


def _target(program: str, named: list[int]) -> str:
    key = "apikey=EXAMPLE_KEY"
    if program == "search box":
        return f"/v3/parts/search?{key}&q=word{named[0]}&limit=10"
    if program == "part page":
        return f"/v3/parts/{canned.uid(named[0])}?{key}&include[]=specs&include[]=imagesets"
    if program == "ERP":
        uids = "".join(f"&uid[]={canned.uid(number)}" for number in named)
        return f"/v3/parts/get_multi?{key}&include[]=compliance_documents{uids}"
    more, query = MATCHING[program]
    queries = ",".join(query.replace("{}", canned.mpn(number)) for number in named)
    return f"/v3/parts/match?{key}{more}&queries={quote(f'[{queries}]')}"


def _round(targets: Path) -> dict[str, dict[str, float]]:
    """Return the figures of each server's day."""
    servers: dict[str, Callable[[Server], AbstractContextManager[Server]]] = {
        SERVICE: service,
        FLOOR: floor,
    }
    days = {}
    for name in random.sample(list(servers), len(servers)):
        with upstream(0, 0) as behind, servers[name](behind) as server:
            behind.counts()
            result, counts = load(server, DAY_SECONDS, str(targets), connections=12), behind.counts()
            days[name] = {
                "CPU time": result.cpu * result.responses / 1e6,
                "parts": counts["parts"],
            }
    return days
