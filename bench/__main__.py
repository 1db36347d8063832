"""Run all benchmarks, print a table, and write it to bench/RESULTS.md: `make bench`.

Compare ratios; absolute figures are those of one machine at one time. `python -m bench NAME …` runs some benchmarks and
only prints them: RESULTS.md is always one whole run. The exit code is 1 if a goal is missed or was not measured.
"""

import os
import platform
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import ablation, bom, catalog, diff, goals, latency, ledger, mapper, service, shadow, startup, worst

RESULTS = Path(__file__).with_name("RESULTS.md")
BENCHES = {
    "mapper": mapper,
    "service": service,
    "latency": latency,
    "bom": bom,
    "ledger": ledger,
    "diff": diff,
    "shadow": shadow,
    "catalog": catalog,
    "worst": worst,
    "startup": startup,
}
SEPARATE = {"ablation": ablation}  # not part of a whole run: it takes long and has no goals
HEAD = """# Results

One whole run of `make bench`, on one machine at one time: compare ratios. What is measured, and how to read it:
[docs/explanation/performance.md](../docs/explanation/performance.md).

Python {python}, {cores} cores.

"""


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; returns the exit code."""
    benches = BENCHES | SEPARATE
    if unknown := [name for name in names if name not in benches]:
        print(f"no bench {', '.join(unknown)}; there are {', '.join(benches)}", file=sys.stderr)
        return 2
    figures: dict[str, float] = {}
    stated_goals: dict[str, goals.Goal] = {}
    with Progress(transient=True) as progress:
        for bench in progress.track([benches[name] for name in names or BENCHES], description="measuring"):
            figures |= bench.run()
            stated_goals |= bench.GOALS
    rows = goals.rows(figures, stated_goals)
    _print(rows)
    if not names:
        head = HEAD.format(python=platform.python_version(), cores=os.cpu_count())
        RESULTS.write_text(head + goals.table(rows), encoding="utf-8")
    return _exit_code(rows)


def _print(rows: list[goals.Row]) -> None:
    shown = Table(*goals.Row._fields, title="v3bridge bench")
    for row in rows:
        shown.add_row(*row, style="red" if row.failed else None)
    Console().print(shown)


def _exit_code(rows: list[goals.Row]) -> int:
    failed = [row for row in rows if row.failed]
    for row in failed:
        print(f"{row.outcome}: {row.what} is {row.figure or 'not known'}, the goal is {row.goal}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
