"""Run all benchmarks, print a table, and write it to docs/explanation/performance.md: `make bench`.

Compare ratios; absolute figures are those of one machine at one time. `python -m bench NAME …` runs some benchmarks and
only prints them: the page always has one whole run. A benchmark that ends with an error does not stop the others: its
goals are not measured. The exit code is 1 if a goal is missed or was not measured.
"""

import os
import platform
import sys
import time
import traceback
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import (
    bom,
    cache,
    catalog,
    diff,
    goals,
    graphql,
    latency,
    mapper,
    service,
    sheet,
    startup,
    store,
    team_day,
    workbook,
    workers,
)

PAGE = Path(__file__).parents[1] / "docs/explanation/performance.md"
BENCHES = {
    "mapper": mapper,
    "service": service,
    "team_day": team_day,
    "workers": workers,
    "graphql": graphql,
    "latency": latency,
    "bom": bom,
    "cache": cache,
    "store": store,
    "diff": diff,
    "sheet": sheet,
    "workbook": workbook,
    "startup": startup,
    "catalog": catalog,
}
HEAD = "## Results\n"  # of the end of the page, which a run replaces
RUN = """
One whole run of `make bench`, on one machine at one time: compare ratios. Each table is one benchmark, with the
rows that have a goal; a run prints all.

Python {python}, {cores} cores, {minutes:.0f} minutes.
"""

Results = dict[str, list[goals.Row]]
"""Result rows by the name of the benchmark."""


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; returns the exit code."""
    if unknown := [name for name in names if name not in BENCHES]:
        print(f"no bench {', '.join(unknown)}; there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    start = time.monotonic()
    chosen = names or list(BENCHES)
    results = {name: _measured(name, f"{number}/{len(chosen)}") for number, name in enumerate(chosen, 1)}
    _print(results)
    if not names:
        PAGE.write_text(_page(results, (time.monotonic() - start) / 60), encoding="utf-8")
    return _exit_code(results)


def _measured(name: str, place: str) -> list[goals.Row]:
    """Run one benchmark; returns its rows, and where it ends with an error a row that says so."""
    bench, start = BENCHES[name], time.monotonic()
    print(f"{place} {name} …", file=sys.stderr, flush=True)
    try:
        rows = goals.rows(bench.run(), bench.GOALS)
    except (Exception, SystemExit):
        traceback.print_exc()
        rows = [goals.Row(f"the benchmark {name}", "", "", "not measured"), *goals.rows({}, bench.GOALS)]
    print(f"{place} {name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return rows


def _page(results: Results, minutes: float) -> str:
    before = PAGE.read_text(encoding="utf-8").partition(HEAD)[0]
    run = RUN.format(python=platform.python_version(), cores=os.cpu_count(), minutes=minutes)
    judged = {name: [row for row in rows if row.goal] or rows for name, rows in results.items()}
    tables = "".join(f"\n### {name}\n\n{goals.table(rows)}" for name, rows in judged.items())
    return before + HEAD + run + tables


def _print(results: Results) -> None:
    shown = Table(*goals.Row._fields, title="v3bridge bench")
    for rows in results.values():
        for row in rows:
            shown.add_row(*row, style="red" if row.failed else None, end_section=row is rows[-1])
    Console().print(shown)


def _exit_code(results: Results) -> int:
    failed = [row for rows in results.values() for row in rows if row.failed]
    for row in failed:
        print(
            f"{row.outcome}: {row.what} is {row.figure or 'not known'}, the goal is {row.goal or 'to run'}",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
