"""`v3bridge compare`: replay client requests against both services, report the differences, and give a verdict.

Exit code 0: equivalent; 1: differences; 2: could not compare.
"""

from pathlib import Path

import typer

from proxy.cli import option_fields
from proxy.tools.compare.command import options


def _compare(chosen: options.ComparisonOptions) -> None:
    """Replay client requests against both services and report differences."""
    from proxy.tools.compare.command import checks, output, runs, shadow
    from proxy.tools.compare.judging import verdict

    chosen = checks.checked(chosen)
    service = shadow.configured(chosen.config) if chosen.shadow else None
    rules = chosen.rules
    if rules is None and service is not None and service.shadow.rules is not None:
        rules = Path(service.shadow.rules)
    settings = checks.comparison_settings(rules, chosen.fail_on)
    result = runs.run_to_end(
        runs.compare(chosen, settings) if service is None else runs.read_shadow(chosen, settings, service)
    )
    if result is None:
        raise typer.Exit(verdict.NOT_COMPARED)
    output.write_reports(result, chosen)
    raise typer.Exit(verdict.exit_code(result, thresholds=bool(settings.fail_on)))


compare = option_fields.command(options.ComparisonOptions, _compare)
