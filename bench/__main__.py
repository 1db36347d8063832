"""`make bench`: run everything, print a table, and write it to bench/RESULTS.md. Ratios count; absolute figures are
this machine's, now. `python -m bench NAME …` runs some of it, and renews the rows of that.
"""

import os
import platform
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import bom, catalog, diff, latency, mapper, service, shadow

RESULTS = Path(__file__).with_name("RESULTS.md")
BENCHES = {
    "mapper": mapper,
    "service": service,
    "latency": latency,
    "bom": bom,
    "diff": diff,
    "shadow": shadow,
    "catalog": catalog,
}
GOALS = {
    "mapper, compiled / by hand": "≤ 1.30",
    "service, answers and sharing off / floor": "≥ 0.85",
    "the same by CPU time a reply": "≥ 0.85",
    "sharing on, all ask the same / floor": "≥ 2.00",
    "hits / constant body": "≥ 0.70",
    "the same by CPU time a reply, hits": "≥ 0.70",
    "diff of a 255 KB pair, few changes, best (ms)": "≤ 2.00",
    "start with it, to the first answer (s)": "≤ 2.00",
    "search of it, all kinds: median (ms)": "≤ 50.00",
    "p99, shadow on / off": "≤ 1.10",
    "p99, shadow stalled / off": "≤ 1.10",
    "p99, shadow crashing / off": "≤ 1.10",
}
HEAD = """# Results

Written by `make bench`; `python -m bench NAME` renews the rows of one. Ratios count: absolute figures are one machine's
at one moment, and of another moment for another bench. What is measured, and how to read it:
[docs/performance.md](../docs/performance.md).

Python {python}, {cores} cores.

| what | figure | goal |
|---|---|---|
"""


def main(names: list[str]) -> None:
    figures: dict[str, float] = {}
    with Progress(transient=True) as progress:
        for bench in progress.track([BENCHES[name] for name in names or BENCHES], description="measuring"):
            figures |= bench.run()
    table = Table("what", "figure", "goal", title="v3bridge bench")
    rows = [(name, f"{figure:.2f}".removesuffix(".00"), GOALS.get(name, "")) for name, figure in figures.items()]
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    _write({name: (figure, goal) for name, figure, goal in rows}, afresh=not names)


def _write(rows: dict[str, tuple[str, str]], *, afresh: bool) -> None:
    """What was not measured now stays as it is, unless all was."""
    head = HEAD.format(python=platform.python_version(), cores=os.cpu_count())
    known = {} if afresh else _known()
    lines = "".join(f"| {name} | {figure} | {goal} |\n" for name, (figure, goal) in (known | rows).items())
    RESULTS.write_text(head + lines, encoding="utf-8")


def _known() -> dict[str, tuple[str, str]]:
    _, _, table = RESULTS.read_text("utf-8").partition("|---|---|---|\n")
    cells = ([cell.strip() for cell in line.split("|")] for line in table.splitlines())
    return {name: (figure, goal) for _, name, figure, goal, _ in cells}


main(sys.argv[1:])
