"""`v3bridge record`: record the responses of both services, without keys, to be compared later."""

from pathlib import Path
from typing import Annotated

import typer

from proxy.cli import option_fields
from proxy.tools.compare.command import options

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
