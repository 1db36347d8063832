"""The programs of a team, and the trace of what they request in a day.

Twelve programs of the kinds in docs/how-to/connect.md. Their part numbers are drawn from 5 000 by Zipf's law (s = 1);
a BOM has 20 to 300 different lines and is requested in calls of 20. The trace is data of the bench, made once:

    python -m bench.team_day.programs > bench/team_day/trace.jsonl

Each line is a request: second of the day, name of the program, and the part numbers or the word that it names.
"""

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

TRACE = Path(__file__).with_name("trace.jsonl")
NUMBERS, QUERIES, SEED = 5_000, 20, 20261124
FOUND = 10  # parts that a search for a word finds on its first page
HOUR = 3_600.0
WORDS = tuple(f"word{number}" for number in range(60))

Planned = tuple[float, list[int]]
"""Second of the day at which a call is due, and its part numbers; for a search the number of its word."""


class Program(NamedTuple):
    """Program of the team: the kind of its requests, and the parameters that it adds to each. `{}` in `query` is the
    part number."""

    kind: str
    parameters: str = ""
    query: str = '{"mpn":"{}"}'

    def target(self, named: list[int]) -> str:
        """Return the target of a request for these numbers, or for a word."""
        if self.kind == "search":
            return f"/v3/parts/search?apikey=EXAMPLE_KEY&q={WORDS[named[0]]}{self.parameters}"
        if self.kind == "uid":
            return f"/v3/parts/{uid(named[0])}?apikey=EXAMPLE_KEY{self.parameters}"
        if self.kind == "uids":
            uids = "".join(f"&uid[]={uid(number)}" for number in named)
            return f"/v3/parts/get_multi?apikey=EXAMPLE_KEY{self.parameters}{uids}"
        queries = ",".join(self.query.replace("{}", mpn(number)) for number in named)
        return f"/v3/parts/match?apikey=EXAMPLE_KEY{self.parameters}&queries={quote(f'[{queries}]')}"


PROGRAMS = {
    # Lists of parts: in calls of 20.
    "purchasing": Program("match", "&include[]=descriptions", '{"mpn":"{}","limit":1}'),
    "kicost": Program("match", "&include[]=specs&include[]=datasheets"),
    "cost check": Program("match", "&hide[]=datasheets&hide[]=specs", '{"mpn":"{}","limit":1}'),
    "ERP": Program("uids", "&include[]=compliance_documents"),
    "stock monitor": Program("match", "&show[]=offers.in_stock_quantity&show[]=mpn", '{"mpn":"{}","limit":1}'),
    "stock alert": Program("match", "&slice[offers]=[0:10]"),
    # One part at a time.
    "spreadsheet": Program("match", "&include[]=short_description", '{"mpn":"{}","limit":1}'),
    "web page": Program("match", "&callback=show", '{"mpn":"{}","limit":3}'),
    "schematics": Program("match", "&include[]=datasheets", '{"mpn":"{}","limit":2}'),
    "work list": Program("match", "", '{"mpn":"{}","limit":1}'),
    "part page": Program("uid", "&include[]=specs&include[]=imagesets"),
    "search box": Program("search", "&limit=10"),
}


def mpn(number: int) -> str:
    """Return the part number."""
    return f"TD{number:06}"


def uid(number: int, part: int = 0) -> str:
    """Return the v3 uid of a part that the number matches."""
    return f"{number:012x}{part:04x}"


def matching(number: int) -> int:
    """Return how many parts a number matches: 1.7 on average."""
    return 1 + (number % 3 == 0) + (number % 5 == 0) + (number % 7 == 0)


def fewest_parts() -> int:
    """Return how many parts the day costs whoever pays for none of them twice, and knows in the morning what will be
    requested: of each number as many as some program shows, and those of each search. A part that is requested by uid
    only is free where some search finds its number."""
    shown: dict[int, int] = {}
    words: set[int] = set()
    by_uid: set[int] = set()
    for line in TRACE.read_text().splitlines():
        _, name, named = json.loads(line)
        program = PROGRAMS[name]
        if program.kind == "search":
            words |= set(named)
        elif program.kind == "match":
            limit = json.loads(program.query.replace("{}", "")).get("limit", 3)
            shown |= {number: max(shown.get(number, 0), min(limit, matching(number))) for number in named}
        else:
            by_uid |= set(named)
    found = {found_number(word, place) for word in words for place in range(FOUND)}
    return sum(shown.values()) + FOUND * len(words) + len(by_uid - shown.keys() - found)


def found_number(word: int, place: int) -> int:
    """Return the part number that a search finds at a place."""
    return (word * 83 + place * 7) % NUMBERS


def trace() -> list[tuple[float, str, list[int]]]:
    """Return the requests of the day in order."""
    draw = random.Random(SEED)
    requests = [
        (second, name, named) for name, planned in _day(draw).items() for second, named in _calls(name, planned)
    ]
    return sorted(requests, key=lambda request: request[0])


def _day(draw: random.Random) -> dict[str, list[Planned]]:
    """Return what each program requests, and when."""
    boards = {name: [_bom(draw) for _ in range(number)] for name, number in {"purchasing": 2, "kicost": 4}.items()}
    checked, monitored, alerted = _sample(draw, 60), _sample(draw, 100), _sample(draw, 200)
    sheet, stock = _sample(draw, 60), _sample(draw, 1_000)
    commits = sorted(draw.uniform(8 * HOUR, 19 * HOUR) for _ in range(20))
    return {
        "purchasing": [(hour * HOUR, bom) for hour in (9, 13, 17) for bom in boards["purchasing"]],
        "kicost": [(draw.uniform(8, 18) * HOUR, bom) for bom in boards["kicost"] for _ in range(2)],
        "cost check": [(second, checked) for second in commits],
        "ERP": [(2 * HOUR, stock)],
        "stock monitor": [(hour * HOUR + 300, monitored) for hour in range(24)],
        "stock alert": [(hour * HOUR + 900, alerted) for hour in range(0, 24, 2)],
        "spreadsheet": [(draw.uniform(8, 18) * HOUR, sheet) for _ in range(8)],
        "web page": _singles(draw, 1_500, 0, 24),
        "schematics": _singles(draw, 500, 8, 18),
        "work list": _singles(draw, 400, 10, 12),
        "part page": _singles(draw, 800, 7, 22),
        "search box": [(second, [number % len(WORDS)]) for second, (number,) in _singles(draw, 300, 7, 22)],
    }


def _calls(name: str, planned: list[Planned]) -> Iterator[Planned]:
    """Yield the calls of a program, one second after the other where a list needs several."""
    size = QUERIES if PROGRAMS[name].kind in ("match", "uids") and name != "spreadsheet" else 1
    for second, numbers in planned:
        for place, first in enumerate(range(0, len(numbers), size)):
            yield round(second + place, 1), numbers[first : first + size]


def _bom(draw: random.Random) -> list[int]:
    return _sample(draw, draw.randint(20, 300))


def _sample(draw: random.Random, size: int) -> list[int]:
    """Return different part numbers."""
    numbers: dict[int, None] = {}
    while len(numbers) < size:
        numbers[_number(draw)] = None
    return [*numbers]


def _singles(draw: random.Random, number: int, first: int, last: int) -> list[Planned]:
    return [(draw.uniform(first, last) * HOUR, [_number(draw)]) for _ in range(number)]


_CUMULATIVE = list(itertools.accumulate(1 / rank for rank in range(1, NUMBERS + 1)))


def _number(draw: random.Random) -> int:
    return draw.choices(range(NUMBERS), cum_weights=_CUMULATIVE)[0]


if __name__ == "__main__":
    for request in trace():
        print(json.dumps(request, separators=(",", ":")))
