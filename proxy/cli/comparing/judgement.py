"""Judge and summary of a command, assembled from settings, rules and causes."""

import datetime
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import typer

from proxy.compare import loader
from proxy.compare.judging import causes, diff, judge, paths, rules, summary, thresholds, v3_fields
from proxy.compare.judging.settings import ComparisonSettings
from proxy.kit import shipped
from proxy.kit.clock import Clock
from proxy.mapping import loader as mapping

SITE = "octopart"  # default; it is part of a field's name, and does not influence a judgement


class Judgement(NamedTuple):
    """A judge, and the summary that makes a result of its findings."""

    judge: judge.Judge
    summary: summary.Summary


def load_settings(file: Path | None, fail_on: str | None) -> ComparisonSettings:
    """Load the settings in a file, or the shipped ones; thresholds from the command line take precedence."""
    read = loader.load(file, os.environ)
    if fail_on is None:
        return read
    try:
        return msgspec.structs.replace(read, fail_on=thresholds.parse_list(fail_on))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--fail-on") from None


def build(
    chosen: ComparisonSettings,
    site: str | None,
    clock: Clock,
    redact: Callable[[str], str],
    *,
    baseline: rules.IgnoredCounts | None = None,
    own_uids: str | None = None,
) -> Judgement:
    """Build judge and summary; rules that expire are checked against today's date. `site` and `own_uids` (a file)
    are those of the service that is started here; `baseline` limits how much rules may hide."""
    why = causes.Causes(v3_fields.load(site or SITE))
    today = datetime.datetime.fromtimestamp(clock.now(), datetime.UTC).date()
    book = rules.RuleSet(chosen.rules, why, today)
    made = judge.Judge(chosen, book, why, diff.diff_documents, redact, uids=own_uids_of(own_uids))
    return Judgement(made, summary.Summary(chosen, book, why, paths.subject, baseline))


def own_uids_of(file: str | None) -> frozenset[str]:
    """Return the uids of a site's own table. Raises MappingError."""
    return frozenset(mapping.known_uids(Path(file)) if file else ())


def digest(chosen: ComparisonSettings, config_file: Path | None) -> str:
    """Return a digest of everything that a judgement depends on: rules, noise, latency and, if the service is
    started here, its configuration and mappings."""
    files = () if config_file is None else (config_file, *shipped.mapping_files())
    parts = (chosen.rules, chosen.noise, chosen.latency, shipped.digest(files))
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()
