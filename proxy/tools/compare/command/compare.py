"""`v3bridge compare`: replay client requests against both services, report the differences, and give a verdict; and
`v3bridge record`: record the responses of both services, without keys, to be compared later.

Exit code 0: equivalent, or recorded; 1: differences; 2: could not compare, or record.
"""

from pathlib import Path
from typing import Annotated

import typer

from proxy.cli import option_fields
from proxy.tools.compare.command import options


def _compare(chosen: options.ComparisonOptions) -> None:
    """Replay client requests against both services and report differences."""
    from proxy.tools.compare.command import checks, output, runs, uids
    from proxy.tools.compare.judging import verdict

    if chosen.learn_uids is not None:
        uids.learn(chosen, chosen.learn_uids)
        return
    chosen = checks.checked(chosen)
    settings = checks.comparison_settings(chosen.rules, chosen.fail_on)
    result = runs.run_to_end(runs.compare(chosen, settings))
    if result is None:
        raise typer.Exit(verdict.NOT_COMPARED)
    output.write_reports(result, chosen)
    raise typer.Exit(verdict.exit_code(result, thresholds=bool(settings.fail_on)))


compare = option_fields.command(options.ComparisonOptions, _compare)

OUTPUT = typer.Option("--output", metavar="FILE", help="The recording; an interrupted one is continued.")
OPTIONS = (
    *("record", "baseline", "candidate", "config", "requests", "kind", "column", "rules", "sample", "seed", "budget"),
    *("yes", "baseline_key", "candidate_key", "baseline_rate", "candidate_rate", "baseline_concurrency"),
    *("candidate_concurrency", "timeout", "log_level"),
)


def _record(chosen: options.ComparisonOptions) -> None:
    """Send requests and record the responses. With neither --candidate nor --config, only the baseline is recorded,
    at no cost."""
    from proxy.tools.compare.command import checks, runs
    from proxy.tools.compare.judging import verdict

    chosen = checks.checked(chosen, comparing=False)
    ended = runs.run_to_end(runs.record(chosen, checks.comparison_settings(chosen.rules, None)))
    raise typer.Exit(0 if ended is not None and ended.complete and not ended.not_compared else verdict.NOT_COMPARED)


record = option_fields.command(options.ComparisonOptions, _record, OPTIONS, record=Annotated[Path, OUTPUT])
