"""Evidence file: the last observation of each assumption, by service and plan. Results of runs are merged into it."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from proxy import errors
from proxy.kit import located_yaml
from proxy.tools.conform.reading import Catalogue
from proxy.tools.conform.results import Outcome, RunResult, Service

_HEAD = """\
# The last observation of each assumption of proxy/tools/conform, by service and plan. Written by
# `v3bridge conform --update`, which also generates the page beside this file.
"""


class Observation(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One observation of an assumption. `got` is set if it contradicts the assumption."""

    service: Service
    date: str
    version: str
    plan: str
    holds: bool
    got: Any = msgspec.UNSET


Evidence = dict[str, tuple[Observation, ...]]  # by id of the assumption


def load(file: Path) -> Evidence:
    """Read an evidence file; one that does not exist is empty. Raises ConfigError."""
    if not file.exists():
        return {}
    located = located_yaml.load(file, errors.ConfigError)
    return located.convert(Evidence, errors.ConfigError) if located.data else {}


def merge(evidence: Evidence, result: RunResult, catalogue: Catalogue) -> Evidence:
    """Add the observations of a run. A newer one replaces that of the same service and plan; what was not tested
    replaces nothing. Assumptions that no longer exist are dropped."""
    outcomes = {outcome.id: outcome for outcome in result.outcomes}
    merged: Evidence = {}
    for assumption in catalogue.assumptions:
        observations = {(each.service, each.plan): each for each in evidence.get(assumption.id, ())}
        outcome = outcomes.get(assumption.id)
        if outcome is not None and outcome.verdict != "not tested":
            _add(observations, _observation(outcome, result))
        if observations:
            merged[assumption.id] = tuple(sorted(observations.values(), key=lambda each: (each.service, each.date)))
    return merged


def save(file: Path, evidence: Evidence) -> None:
    """Write an evidence file. Raises ConfigError."""
    # One line for each observation, where its value is short.
    text = yaml.safe_dump(
        msgspec.to_builtins(evidence), sort_keys=False, allow_unicode=True, width=200, default_flow_style=None
    )
    try:
        file.write_text(_HEAD + text, encoding="utf-8")
    except OSError as error:
        raise errors.ConfigError(f"{file}: cannot be written: {error.strerror}") from error


def _add(observations: dict[tuple[Service, str], Observation], new: Observation) -> None:
    earlier = observations.get((new.service, new.plan))
    # Results are sent in and merged in any order.
    if earlier is None or earlier.date <= new.date:
        observations[new.service, new.plan] = new


def _observation(outcome: Outcome, result: RunResult) -> Observation:
    holds = outcome.verdict == "confirmed"
    got = msgspec.UNSET if holds else outcome.got
    return Observation(result.service, result.date, result.version, str(result.plan), holds, got)
