"""`python -m bench.soak [SECONDS] [RATE]`: hold a load under faults, and check every reply and every book.

Exit code 1, and what is wrong, where anything is.
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
from bench.soak.outcome import Outcome, Plan

SHOWN = 20  # findings; one mistake often makes many


def main(arguments: list[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser("python -m bench.soak", description=__doc__.partition("\n\n")[0])
    parser.add_argument("seconds", nargs="?", type=float, default=30.0, help="of load (%(default)s)")
    parser.add_argument("rate", nargs="?", type=float, default=500.0, help="requests a second (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="what is asked and what faults strike (%(default)s)")
    parser.add_argument("--share", type=float, default=0.05, help="of upstream requests that are struck (%(default)s)")
    chosen = parser.parse_args(arguments)
    import uvloop

    plan = Plan(chosen.seconds, chosen.rate, chosen.seed, chosen.share)
    outcome = uvloop.run(soak.run(plan))
    console = Console(width=120) if not sys.stdout.isatty() else Console()
    console.print(table(plan, outcome))
    for finding in outcome.wrong[:SHOWN]:
        console.print(f"wrong: {finding}", markup=False, highlight=False, soft_wrap=True)
    if len(outcome.wrong) > SHOWN:
        console.print(f"and {len(outcome.wrong) - SHOWN} more")
    return 1 if outcome.wrong else 0


def table(plan: Plan, outcome: Outcome) -> Table:
    """The figures of a run."""
    said: Counter[str] = Counter()
    for message, count in outcome.judge.messages.items():
        said[re.sub(r"\d+ (bytes|times)", r"N \1", message)] += count
    shown = Table("what", "figure", title=f"{plan.requests} requests under faults, seed {plan.seed}")
    judge, totals, ledger = outcome.judge, outcome.totals, outcome.ledger
    for what, figure in (
        ("different requests", str(plan.questions)),
        ("200 by kind", _listed(outcome.answered)),
        ("replies a second while asking", f"{outcome.rate:.0f} of {plan.rate:.0f}"),
        ("replies by status", _listed(judge.statuses)),
        ("200 by X-Cache", _listed(judge.sources)),
        ("queries that failed beside others", str(judge.failed_queries)),
        ("upstream requests", _listed(totals["requests"])),
        ("faults", _listed(totals["faults"])),
        ("upstream requests under load, struck", f"{outcome.asked}, {outcome.struck}"),
        ("upstream requests that a slow machine kept too long", str(outcome.late)),
        ("memory before, after half, at the end (MB)", "{:.1f}, {:.1f}, {:.1f}".format(*outcome.memory)),
        ("bytes to keep, in a cache of", f"{judge.learned}, {plan.answer_bytes}"),
        ("load average of the machine, cores", f"{os.getloadavg()[0]:.1f}, {os.cpu_count()}"),
        ("descriptors before, under load, after", "{}, {}, {}".format(*outcome.descriptors)),
        ("tasks before, under load, after", "{}, {}, {}".format(*outcome.tasks)),
        ("parts billed / in spoiled answers", f"{totals['parts']} / {totals['spoiled_parts']}"),
        ("parts booked / in doubt / still held", f"{ledger.used} / {ledger.doubtful} / {ledger.reserved}"),
        *((f"said {count} times", message) for message, count in said.most_common()),
        ("wrong", str(len(outcome.wrong))),
    ):
        shown.add_row(what, figure)
    return shown


def _listed(counted: Mapping[str, int] | Mapping[int, int]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(counted.items(), key=lambda pair: -pair[1]))


sys.exit(main(sys.argv[1:]))
