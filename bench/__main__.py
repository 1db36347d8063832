"""`make bench`: run everything, print a table. Ratios count; absolute figures are this machine's, now."""

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import mapper, service

GOALS = {"mapper, compiled / by hand": "≤ 1.30", "service / floor": "≥ 0.85", "the same by CPU time a reply": "≥ 0.85"}


def main() -> None:
    table = Table("what", "figure", "goal", title="v3bridge bench")
    with Progress(transient=True) as progress:
        for bench in progress.track((mapper, service), description="measuring"):
            for name, figure in bench.run().items():
                table.add_row(name, f"{figure:.2f}", GOALS.get(name, ""))
    Console().print(table)


main()
