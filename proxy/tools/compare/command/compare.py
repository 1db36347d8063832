"""`v3bridge compare`: replay client requests against both services, report the differences, and give a verdict.

Exit code 0: equivalent, or recorded; 1: differences; 2: could not compare, or record.
"""

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
    if chosen.only_records:
        ended = runs.run_to_end(runs.record(chosen, settings))
        raise typer.Exit(0 if ended is not None and ended.complete and not ended.not_compared else verdict.NOT_COMPARED)
    result = runs.run_to_end(runs.compare(chosen, settings))
    if result is None:
        raise typer.Exit(verdict.NOT_COMPARED)
    output.write_reports(result, chosen)
    raise typer.Exit(verdict.exit_code(result, thresholds=bool(settings.fail_on)))


compare = option_fields.command(options.ComparisonOptions, _compare)
