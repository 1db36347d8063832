"""`v3bridge compare`: what people ask, asked of both sides, and a verdict.

Exit code 0: equivalent; 1: differences; 2: could not compare.
"""

import typer

from proxy.cli.comparing import options


def compare(
    *,
    old: options.Old = None,
    new: options.New = None,
    config: options.Config = None,
    requests: options.Requests = None,
    kind: options.Kind = None,
    column: options.Column = None,
    rules: options.Rules = None,
    sample: options.Sample = None,
    seed: options.Seed = 1,
    budget: options.Budget = None,
    yes: options.Yes = False,
    old_key: options.OldKey = None,
    new_key: options.NewKey = None,
    old_rate: options.OldRate = None,
    new_rate: options.NewRate = 0.0,
    old_at_once: options.OldAtOnce = 4,
    new_at_once: options.NewAtOnce = 4,
    timeout: options.Timeout = 60.0,
    progress: options.Progress = None,
    fresh: options.Fresh = False,
    record: options.Record = None,
    replay: options.Replay = None,
    shadow: options.Shadow = False,
    html: options.Html = None,
    json: options.Json = None,
    markdown: options.Markdown = None,
    junit: options.Junit = None,
    fail_on: options.FailOn = None,
    hidden_baseline: options.HiddenBaseline = None,
    save_hidden: options.SaveHidden = None,
    log_level: options.LogLevel = "error",
) -> None:
    """Ask both sides what people ask, and say whether a program would see the same."""
    given = dict(locals())
    from proxy.cli.comparing import choice, judgement, output, runs, shadow_store
    from proxy.compare.judging import verdict

    chosen = choice.ComparisonOptions(**given, comparing=True).check()
    service = shadow_store.configured(config) if shadow else None
    settings = judgement.load_settings(rules if service is None else shadow_store.rules_file(chosen, service), fail_on)
    result = runs.run_to_end(
        runs.compare(chosen, settings) if service is None else shadow_store.result(settings, service, chosen)
    )
    if result is None:
        raise typer.Exit(verdict.NOT_COMPARED)
    output.write_reports(result, chosen)
    raise typer.Exit(verdict.exit_code(result, thresholds=bool(settings.fail_on)))
