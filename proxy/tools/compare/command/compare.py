"""`v3bridge compare`: replay client requests against both services, report the differences, and give a verdict.

Exit code 0: equivalent; 1: differences; 2: could not compare.
"""

import typer

from proxy.tools.compare.command import options


def _compare(chosen: options.ComparisonOptions) -> None:
    """Replay client requests against both services and report differences."""
    from proxy.tools.compare.command import checks, output, run_settings, runs, shadow_store
    from proxy.tools.compare.judging import verdict

    chosen = checks.checked(chosen)
    service = shadow_store.configured(chosen.config) if chosen.shadow else None
    rules = chosen.rules if service is None else shadow_store.rules_file(chosen, service)
    settings = run_settings.load(rules, chosen.fail_on)
    result = runs.run_to_end(
        runs.compare(chosen, settings) if service is None else shadow_store.result(settings, service, chosen)
    )
    if result is None:
        raise typer.Exit(verdict.NOT_COMPARED)
    output.write_reports(result, chosen)
    raise typer.Exit(verdict.exit_code(result, thresholds=bool(settings.fail_on)))


compare = options.command(_compare)
