"""`make bench`: run everything, print a table, and write it to bench/RESULTS.md. Ratios count; absolute figures are
this machine's, now. `python -m bench NAME …` runs some of it and prints it: RESULTS.md is always one whole run.

The exit code is 1 where a goal is missed or was not measured.
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
SEPARATE = {"ablation": ablation}  # no part of a whole run: they take long, or have no goals
HEAD = """# Results

One whole run of `make bench`, on one machine at one moment: ratios count. What is measured, and how to read it:
[docs/explanation/performance.md](../docs/explanation/performance.md).

Python {python}, {cores} cores.

"""


def main(names: list[str]) -> int:
    """The exit code."""
    benches = BENCHES | SEPARATE
    if unknown := [name for name in names if name not in benches]:
        print(f"no bench {', '.join(unknown)}; there are {', '.join(benches)}", file=sys.stderr)
        return 2
    figures: dict[str, float] = {}
    wanted: dict[str, goals.Goal] = {}
    with Progress(transient=True) as progress:
        for bench in progress.track([benches[name] for name in names or BENCHES], description="measuring"):
            figures |= bench.run()
            wanted |= bench.GOALS
    made = goals.rows(figures, wanted)
    _print(made)
    if not names:
        head = HEAD.format(python=platform.python_version(), cores=os.cpu_count())
        RESULTS.write_text(head + goals.table(made), encoding="utf-8")
    return _judged(made)


def _print(made: list[goals.Row]) -> None:
    shown = Table(*goals.Row._fields, title="v3bridge bench")
    for row in made:
        shown.add_row(*row, style="red" if row.failed else None)
    Console().print(shown)


def _judged(made: list[goals.Row]) -> int:
    failed = [row for row in made if row.failed]
    for row in failed:
        print(f"{row.outcome}: {row.what} is {row.figure or 'not known'}, the goal is {row.goal}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
