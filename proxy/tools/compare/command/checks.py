"""Checks of the options of `compare`: contradictions are refused before anything is sent or billed.

Every mistake is a BadParameter that names the option. Values that typer cannot parse are parsed here, too.
"""

import dataclasses
import os
from pathlib import Path

import msgspec
import typer

from proxy.kit import shipped
from proxy.telemetry import log
from proxy.tools.compare import loader
from proxy.tools.compare.command.options import SANDBOX, STANDARD_OUTPUT, ComparisonOptions
from proxy.tools.compare.judging import rules, thresholds
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.traffic import http_side
from proxy.traffic.http_side import SideLimits

V3_RATE = 3.0  # requests per second that v3 allowed its free tier
READ = ("requests", "rules", "config", "baseline_file")
REPORTS = ("html", "json", "save_ignored")
NOT_WITHOUT_CANDIDATE = (*REPORTS, "progress", "fail_on", "ignored_limits")


def checked(chosen: ComparisonOptions) -> ComparisonOptions:
    """Return the options, with the implied configuration.

    Raises BadParameter for options that exclude each other, and for reports that could not be written once parts are
    spent.
    """
    if chosen.log_level not in log.LEVELS:
        raise typer.BadParameter(f"is none of {', '.join(log.LEVELS)}", param_hint="--log-level")
    if chosen.candidate is not None and chosen.config is not None:
        raise typer.BadParameter("give either a URL, or a configuration to start here", param_hint="--candidate")
    _check_source(chosen)
    _check_values(chosen)
    if chosen.baseline != SANDBOX or chosen.config is not None:
        return chosen
    if chosen.candidate is not None:
        raise typer.BadParameter(
            "the embedded legacy service starts beside the service of --config, which has upstream: sandbox",
            param_hint="--baseline",
        )
    return dataclasses.replace(chosen, config=shipped.path("config.yaml"))


def baseline_limits(chosen: ComparisonOptions) -> SideLimits:
    """Return the limits of the baseline. v3 and services like it have a rate limit."""
    usual = 0.0 if chosen.baseline == SANDBOX else V3_RATE
    rate = usual if chosen.baseline_rate is None else chosen.baseline_rate
    return SideLimits(chosen.baseline_concurrency, rate, chosen.timeout)


def candidate_limits(chosen: ComparisonOptions) -> SideLimits:
    """Return the limits of the candidate."""
    return SideLimits(chosen.candidate_concurrency, chosen.candidate_rate, chosen.timeout)


def comparison_settings(file: Path | None, fail_on: str | None) -> ComparisonSettings:
    """Load the settings in a file, or the shipped ones; thresholds from the command line take precedence."""
    read = loader.load(file, os.environ)
    if fail_on is None:
        return read
    try:
        return msgspec.structs.replace(read, fail_on=thresholds.parse_list(fail_on))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--fail-on") from None


def ignored_counts(chosen: ComparisonOptions) -> rules.IgnoredCounts | None:
    """Read how many differences rules may ignore. Raises ConfigError for an invalid file."""
    return None if chosen.ignored_limits is None else rules.read_ignored_counts(chosen.ignored_limits)


def reports_to_output(chosen: ComparisonOptions) -> int:
    """Return how many reports go to standard output, in place of the printed one."""
    return [getattr(chosen, name) for name in REPORTS].count(STANDARD_OUTPUT)


def _refuse(chosen: ComparisonOptions, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(chosen, name) is not None:
            raise typer.BadParameter(why, param_hint=f"--{name.replace('_', '-')}")


def _check_source(chosen: ComparisonOptions) -> None:
    if chosen.requests is None and chosen.baseline_file is None:
        raise typer.BadParameter("is missing: a log, HAR, URLs or a parts list", param_hint="--requests")


def _check_values(chosen: ComparisonOptions) -> None:
    if reports_to_output(chosen) > 1:
        raise typer.BadParameter("only one report can go to standard output", param_hint="-")
    used = {file.resolve(): f"--{name.removesuffix('_file')}" for name in READ if (file := getattr(chosen, name))}
    for name in (*REPORTS, "record"):
        _check_file(getattr(chosen, name), f"--{name.replace('_', '-')}", used)
    is_named = chosen.baseline_file is not None or chosen.baseline == SANDBOX
    _check_url(None if is_named else chosen.baseline, "--baseline")
    _check_url(chosen.candidate, "--candidate")
    _check_sides(chosen)


def _check_sides(chosen: ComparisonOptions) -> None:
    if chosen.only_records:
        _refuse(chosen, NOT_WITHOUT_CANDIDATE, "there is nothing to report on without a candidate")
    candidate = chosen.candidate or chosen.config or chosen.baseline == SANDBOX or chosen.only_records
    for option, given in (("--baseline", chosen.baseline), ("--candidate", candidate)):
        if not given:
            raise typer.BadParameter(
                f"there is nothing to compare with: the {option[2:]} is missing", param_hint=option
            )


def _check_url(url: str | None, option: str) -> None:
    """Raise BadParameter for an invalid URL."""
    if url is None:
        return
    try:
        http_side.base_url(url)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _check_file(report: Path | None, option: str, used: dict[Path, str]) -> None:
    """Raise BadParameter if the file cannot be written, or another option uses it."""
    if report is None or report == STANDARD_OUTPUT:
        return
    if report.is_dir():
        raise typer.BadParameter(f"is a folder: {report}", param_hint=option)
    if not report.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {report.parent}", param_hint=option)
    if (other := used.setdefault(report.resolve(), option)) != option:
        raise typer.BadParameter(f"{report} is the file of {other}, too: name another", param_hint=option)
    if not os.access(report if report.exists() else report.parent, os.W_OK):
        raise typer.BadParameter(f"cannot be written: {report}", param_hint=option)
