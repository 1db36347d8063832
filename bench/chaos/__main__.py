"""`python -m bench.chaos [--minutes N] [--seed S] [NAME …]`: test the promises of SECURITY.md.

The exit code is 1 if a promise is broken; the reasons are printed.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from bench.chaos.context import ScenarioContext, ScenarioReport
from bench.chaos.scenarios import SCENARIOS
from bench.soak import servers

TIMED_SCENARIOS = 4  # whose duration depends on --minutes; the others take a fixed time


def main(arguments: list[str]) -> int:
    """Run the scenarios that a command line names; returns the exit code."""
    names = [scenario.name.replace(" ", "-") for scenario in SCENARIOS]
    parser = argparse.ArgumentParser("python -m bench.chaos", description=__doc__.partition("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(names)} (all)")
    parser.add_argument("--minutes", type=float, default=10.0, help="approximate total duration (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10**6), help="of all random choices (a new one, printed)"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(names):
        parser.error(f"unknown scenario {', '.join(sorted(unknown))}; scenarios are {', '.join(names)}")
    scenarios = [
        scenario for scenario in SCENARIOS if not options.names or scenario.name.replace(" ", "-") in options.names
    ]
    console = Console(width=120) if not sys.stdout.isatty() else Console()
    console.print(f"seed {options.seed}, {len(scenarios)} scenarios, about {options.minutes:g} minutes")
    import uvloop

    seconds = 60 * options.minutes / max(1, min(TIMED_SCENARIOS, len(scenarios)))
    broken = 0
    for scenario in scenarios:
        with tempfile.TemporaryDirectory() as name, servers.sandbox(Path(name), options.seed) as printed:
            context = ScenarioContext(Path(name), printed, seconds, random.Random(f"{options.seed} {scenario.name}"))
            try:
                uvloop.run(scenario.run(context))
            except Exception as error:
                context.report.broken.append(f"the scenario ended with {type(error).__name__}: {error}")
        _show(console, scenario.name, scenario.promise, context.report)
        broken += bool(context.report.broken)
    console.print(f"{broken} of {len(scenarios)} promises are broken" if broken else "every promise holds")
    return 1 if broken else 0


def _show(console: Console, name: str, promise: str, report: ScenarioReport) -> None:
    console.print(f"[bold]{name}[/]: {promise}: {'[red]broken[/]' if report.broken else 'holds'}", highlight=False)
    for measure, figure in report.figures.items():
        console.print(f"  {measure}: {figure}", markup=False, highlight=False)
    for reason in report.broken:
        console.print(f"  broken: {reason}", markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
