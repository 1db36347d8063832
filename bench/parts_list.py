"""Parts of a list of 300 that four programs request by number, in other spellings, and by uid, twice.

Requests of 20, four at a time, each over a new connection; the second time in another order. Each part should be paid
once, and usage be what the upstream has counted.
"""

import json
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import quote

from bench.processes import TIMEOUT, Server, service, upstream

LINES, QUERIES, CLIENTS, UPSTREAM_MS = 300, 20, 4, 50
PROGRAMS = {
    "": "TD{:06}",
    "&include[]=descriptions&include[]=imagesets": "td{:06}",
    "&include[]=specs&include[]=datasheets": "TD{:06} ",
    "&hide[]=offers": "Td{:06}",
}
"""Fields that each program requests, and how it spells a number."""


SETUPS = {"1 worker": (1, False), "4 workers": (4, False), "restarted": (1, True)}
"""Workers, and whether they are restarted before the second time."""
PARTS, LEDGER = "list of 300, {}: parts", "list of 300, {}: usage less the upstream's count"
GOALS = {PARTS.format(name): -LINES for name in SETUPS} | {LEDGER.format(name): -0.0 for name in SETUPS}


def run() -> dict[str, float]:
    """Return the figures of each setup."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            row: figure
            for name, (workers, restarted) in SETUPS.items()
            for row, figure in _measure(name, workers, restarted, f"{folder}/{workers}{restarted}.sqlite").items()
        }


def _measure(name: str, workers: int, restarted: bool, store: str) -> dict[str, float]:
    changes = {"store": f"sqlite:{store}", "listen.workers": workers}
    with upstream(UPSTREAM_MS, 1, core=None) as behind, ExitStack() as running:
        server = running.enter_context(service(behind, changes, core=None))
        _request(server, range(LINES))
        if restarted:
            running.close()
            server = running.enter_context(service(behind, changes, core=None))
        _request(server, random.Random(1).sample(range(LINES), LINES))
        counts = behind.counts()
        return {
            PARTS.format(name): counts["parts"],
            LEDGER.format(name): abs(_usage(server) - counts["parts"]),
            f"list of 300, {name}: upstream requests": counts["requests"],
        }


def _request(server: Server, lines: "range | list[int]") -> None:
    """Let each program request a list by number, then by uid."""
    for more, spelling in PROGRAMS.items():
        uids = _send(server, [spelling.format(line) for line in lines], more)
        for first in range(0, len(uids), QUERIES):
            wanted = "".join(f"&uid[]={uid}" for uid in uids[first : first + QUERIES])
            found = json.loads(server.get(f"/v3/parts/get_multi?apikey=EXAMPLE_KEY{more}{wanted}"))
            if len(found) != len(uids[first : first + QUERIES]):
                raise RuntimeError(f"parts without a response: {wanted}")


def _send(server: Server, numbers: list[str], more: str) -> list[str]:
    """Return the uids of the parts of a list."""

    def request(first: int) -> list[str]:
        queries = quote(json.dumps([{"mpn": number} for number in numbers[first : first + QUERIES]]))
        results = json.loads(server.get(f"/v3/parts/match?apikey=EXAMPLE_KEY{more}&queries={queries}"))["results"]
        if short := [result for result in results if len(result["items"]) != 1]:
            raise RuntimeError(f"a line without its part: {short[0]}")
        return [result["items"][0]["uid"] for result in results]

    with ThreadPoolExecutor(CLIENTS) as clients:
        return [uid for found in clients.map(request, range(0, len(numbers), QUERIES)) for uid in found]


def _usage(server: Server) -> int:
    """Return the parts that the application has used, uncertain ones included: nothing failed, so there are none."""
    command = [sys.executable, "-m", "proxy", "usage", "--json", "--config", str(server.config)]
    rows = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT).stdout)
    return sum(row["used"] + row["uncertain"] for row in rows if row["key"] is None)
