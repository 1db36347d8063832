"""`python -m bench.chaos [--minutes N] [--seed S] [NAME …]`: provoke what docs/reference/limits.md makes promises for.

Exit code 1, and the reason, where a promise is broken.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from bench.chaos.scenarios import SCENARIOS
from bench.chaos.stage import Report, Stage
from bench.soak import servers

LOADS = 5  # scenarios whose length is chosen; the others take as long as they need


def main(arguments: list[str]) -> int:
    """The exit code."""
    names = [each.name.replace(" ", "-") for each in SCENARIOS]
    parser = argparse.ArgumentParser("python -m bench.chaos", description=__doc__.partition("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(names)} (all)")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all of it, about (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="what is drawn (a new one, printed)")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.names) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    wanted = [each for each in SCENARIOS if not chosen.names or each.name.replace(" ", "-") in chosen.names]
    console = Console(width=120) if not sys.stdout.isatty() else Console()
    console.print(f"seed {chosen.seed}, {len(wanted)} scenarios, about {chosen.minutes:g} minutes")
    import uvloop

    seconds = 60 * chosen.minutes / max(1, min(LOADS, len(wanted)))
    broken = 0
    for each in wanted:
        with tempfile.TemporaryDirectory() as name, servers.sandbox(Path(name), chosen.seed) as told:
            stage = Stage(Path(name), told, seconds, random.Random(f"{chosen.seed} {each.name}"))
            try:
                uvloop.run(each.run(stage))
            except Exception as error:
                stage.report.broken.append(f"the scenario ended with {type(error).__name__}: {error}")
        _show(console, each.name, each.promise, stage.report)
        broken += bool(stage.report.broken)
    console.print(f"{broken} of {len(wanted)} promises are broken" if broken else "every promise holds")
    return 1 if broken else 0


def _show(console: Console, name: str, promise: str, report: Report) -> None:
    console.print(f"[bold]{name}[/]: {promise}: {'[red]broken[/]' if report.broken else 'holds'}", highlight=False)
    for what, figure in report.figures.items():
        console.print(f"  {what}: {figure}", markup=False, highlight=False)
    for reason in report.broken:
        console.print(f"  broken: {reason}", markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
