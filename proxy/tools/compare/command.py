"""`v3bridge compare`: replay client requests against both services, report the differences, and give a verdict.

Exit code 0: ready, or recorded; 1: not ready; 2: inconclusive, or not all could be recorded; 3: it could not run.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from proxy import errors
from proxy.cli import commands
from proxy.tools import running
from proxy.tools.compare.options import SANDBOX, ComparisonOptions

if TYPE_CHECKING:
    from proxy.tools.compare.judging.result import ComparisonResult

STANDARD_OUTPUT = Path("-")
INCONCLUSIVE, NOT_RUN = 2, 3  # exit codes; a mistake in options or files is NOT_RUN, too (proxy/cli/main.py)


def _compare(chosen: ComparisonOptions) -> None:
    """Replay client requests against both services and report differences."""
    from proxy import log
    from proxy.tools.compare import comparison, uid_learning
    from proxy.tools.compare.judging.result import EXIT_CODES

    if chosen.learn_uids is not None:
        uid_learning.learn(chosen.learn_uids, chosen.config)
        return
    _check(chosen)
    log.configure("error", "console", sys.stderr)
    try:
        result = running.run(comparison.compare(chosen))
    except SystemExit:  # a second signal; exit code 1 would mean differences
        raise typer.Exit(NOT_RUN) from None
    if result is None:
        raise typer.Exit(NOT_RUN)
    if chosen.record and not result.candidate:
        for reason in (*result.notes, *(f"{each.requests} × not recorded: {each.reason}" for each in result.failures)):
            commands.say(reason)
        if result.failures or not result.complete:
            raise typer.Exit(INCONCLUSIVE)
        commands.say(f"recorded: {chosen.record}")
        raise typer.Exit(0)
    _write_reports(result, chosen)
    raise typer.Exit(EXIT_CODES[result.verdict])


compare = running.command(ComparisonOptions, _compare)


def _check(chosen: ComparisonOptions) -> None:
    """Refuse, before anything is sent or billed, options that contradict each other and reports that could not be
    written. Raises BadParameter."""
    from proxy.tools.compare import sides

    candidates = (chosen.candidate, chosen.candidate_config)
    for option, is_wrong, why in (
        ("baseline", not chosen.baseline, "is missing: the URL of the old service, a recording, or sandbox"),
        ("candidate", all(candidates), "give either a URL, or a configuration to start here (sandbox starts one)"),
        ("candidate", not (any(candidates) or chosen.record), "is missing: the URL of the new service, or --config"),
        ("requests", not (chosen.requests or chosen.baseline_file), "is missing: a log, HAR, URLs or a parts list"),
    ):
        if is_wrong:
            raise typer.BadParameter(why, param_hint=f"--{option}")
    is_service = chosen.baseline_file is None and chosen.baseline != SANDBOX
    for option, url in (("baseline", chosen.baseline if is_service else None), ("candidate", chosen.candidate)):
        try:
            sides.base_url(url or "http://none")
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint=f"--{option}") from None
    read = (chosen.requests, chosen.rules, chosen.config, chosen.baseline_file)
    used = {file.resolve() for file in read if file}
    for option, file in (("html", chosen.html), ("json", chosen.json), ("record", chosen.record)):
        if file is None or (option, file) == ("json", STANDARD_OUTPUT):
            continue
        if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
            raise typer.BadParameter(f"cannot be written: {file}", param_hint=f"--{option}")
        if file.resolve() in used:
            why = f"{file} is the file of another option, too: name another"
            raise typer.BadParameter(why, param_hint=f"--{option}")
        used.add(file.resolve())


def _write_reports(result: "ComparisonResult", chosen: ComparisonOptions) -> None:
    """Write the reports, then print one, to standard error if the JSON goes to standard output. Raises ConfigError for
    a file that cannot be written, after everything else: the parts are spent already."""
    from rich.console import Console

    from proxy.tools.compare import reports
    from proxy.tools.compare.judging.result import render_json

    failed, aside = [], chosen.json == STANDARD_OUTPUT
    for path, render in ((chosen.html, reports.render_html), (None if aside else chosen.json, render_json)):
        if path is not None:
            try:
                path.write_text(render(result), encoding="utf-8")
            except OSError as error:
                failed.append(f"the report {path} cannot be written: {error.strerror}")
    if aside:
        sys.stdout.write(render_json(result))
    screen = Console(stderr=aside)
    reports.render_terminal(result, screen if screen.is_terminal else Console(stderr=aside, width=commands.FILE_WIDTH))
    if failed:
        raise errors.ConfigError("; ".join(failed))
