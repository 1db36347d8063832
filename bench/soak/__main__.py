"""`python -m bench.soak [SECONDS] [RATE]`: run a load under injected faults; check every response and the usage ledger.

The exit code is 1 if a check fails; the errors are printed.
"""

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from bench.soak import run as soak
from bench.soak.outcome import SoakOutcome, SoakPlan

SHOWN_ERRORS = 20  # one defect often causes many


def main(arguments: list[str]) -> int:
    """Run a soak with the arguments of a command line; returns the exit code."""
    parser = argparse.ArgumentParser("python -m bench.soak", description=__doc__.partition("\n\n")[0])
    parser.add_argument("seconds", nargs="?", type=float, default=30.0, help="duration of the load (%(default)s)")
    parser.add_argument("rate", nargs="?", type=float, default=500.0, help="requests per second (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the requests and the injected faults (%(default)s)")
    parser.add_argument(
        "--share", type=float, default=0.05, help="of upstream requests with an injected fault (%(default)s)"
    )
    options = parser.parse_args(arguments)
    import uvloop

    plan = SoakPlan(options.seconds, options.rate, options.seed, options.share)
    outcome = uvloop.run(soak.run(plan))
    console = Console(width=120) if not sys.stdout.isatty() else Console()
    console.print(table(plan, outcome))
    for error in outcome.errors[:SHOWN_ERRORS]:
        console.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
    if len(outcome.errors) > SHOWN_ERRORS:
        console.print(f"and {len(outcome.errors) - SHOWN_ERRORS} more")
    return 1 if outcome.errors else 0


def table(plan: SoakPlan, outcome: SoakOutcome) -> Table:
    """Return the figures of a run as a table."""
    messages: Counter[str] = Counter()
    for message, count in outcome.judge.messages.items():
        messages[re.sub(r"[\d,]+ (bytes|times)", r"N \1", message)] += count
    shown = Table("measure", "figure", title=f"{plan.requests} requests under faults, seed {plan.seed}")
    judge, totals, ledger = outcome.judge, outcome.totals, outcome.ledger
    for measure, figure in (
        ("distinct requests", str(plan.distinct_requests)),
        ("200 by kind of request", _listed(outcome.succeeded)),
        ("responses per second under load", f"{outcome.rate:.0f} of {plan.rate:.0f}"),
        ("responses by status", _listed(judge.statuses)),
        ("200 by X-Cache", _listed(judge.sources)),
        ("failed queries within a 200", str(judge.failed_queries)),
        ("upstream requests", _listed(totals["requests"])),
        ("injected faults", _listed(totals["faults"])),
        ("upstream requests under load, with a fault", f"{outcome.upstream_requests}, {outcome.faulted}"),
        ("upstream requests late without a fault", str(outcome.late)),
        ("memory before, after half, at the end (MB)", "{:.1f}, {:.1f}, {:.1f}".format(*outcome.memory)),
        ("bytes of all responses, cache size", f"{judge.baseline_bytes}, {plan.cache_bytes}"),
        ("load average, cores", f"{os.getloadavg()[0]:.1f}, {os.cpu_count()}"),
        ("descriptors before, under load, after", "{}, {}, {}".format(*outcome.descriptors)),
        ("tasks before, under load, after", "{}, {}, {}".format(*outcome.tasks)),
        ("parts billed / in spoiled responses", f"{totals['parts']} / {totals['spoiled_parts']}"),
        ("parts booked / uncertain / still reserved", f"{ledger.used} / {ledger.uncertain} / {ledger.reserved}"),
        *((f"error message, {count} times", message) for message, count in messages.most_common()),
        ("errors", str(len(outcome.errors))),
    ):
        shown.add_row(measure, figure)
    return shown


def _listed(counts: Mapping[str, int] | Mapping[int, int]) -> str:
    return ", ".join(f"{label} {count}" for label, count in sorted(counts.items(), key=lambda pair: -pair[1]))


sys.exit(main(sys.argv[1:]))
