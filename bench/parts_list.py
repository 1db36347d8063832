"""Parts of a list of 300 that four programs request by number, each in a spelling of its own, and by uid; all of it
once more after a restart. Each part should be paid once."""

import json
import tempfile
from urllib.parse import quote

from bench.processes import Server, service, upstream

LINES, QUERIES, WORKERS = 300, 20, 4
PROGRAMS = {  # fields that each requests, and how it spells a number
    "": "TD{:06}",
    "&include[]=descriptions&include[]=imagesets": "td{:06}",
    "&include[]=specs&include[]=datasheets": "TD{:06} ",
    "&hide[]=offers": "Td{:06}",
}
PARTS = "list of 300, four programs, four workers, twice: parts"
GOALS = {PARTS: -LINES}


def run() -> dict[str, float]:
    """Return the parts that the upstream has counted."""
    with tempfile.TemporaryDirectory() as folder, upstream(0.0, 1, core=None) as behind:
        for _ in range(2):
            with service(behind, {"store": f"sqlite:{folder}/list.sqlite", "listen.workers": WORKERS}) as server:
                for fields, spelling in PROGRAMS.items():
                    for first in range(0, LINES, QUERIES):
                        _request(server, fields, [spelling.format(line) for line in range(first, first + QUERIES)])
        return {PARTS: behind.counts()["parts"]}


def _request(server: Server, fields: str, numbers: list[str]) -> None:
    """Request parts by number, then by uid."""
    path, queries = "/v3/parts/{}?apikey=EXAMPLE_KEY" + fields, quote(json.dumps([{"mpn": each} for each in numbers]))
    results = json.loads(server.get(f"{path.format('match')}&queries={queries}"))["results"]
    uids = [result["items"][0]["uid"] for result in results]
    server.get(path.format("get_multi") + "".join(f"&uid[]={uid}" for uid in uids))
