"""`v3bridge record`: what both sides say to what people ask, kept without keys, to be compared another day."""

import typer

from proxy.cli.comparing import options


def record(
    *,
    record: options.Output,
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
    log_level: options.LogLevel = "error",
) -> None:
    """Ask, and keep the answers. Without --new or --config those of the old side alone, which cost nothing."""
    given = dict(locals())
    from proxy.cli.comparing import choice, judgement, runs
    from proxy.compare.judging import verdict

    chosen = choice.ComparisonOptions(**given).check()
    ended = runs.run_to_end(runs.record(chosen, judgement.load_settings(chosen.rules, None)))
    raise typer.Exit(0 if ended is not None and ended.complete and not ended.troubled else verdict.NOT_COMPARED)
