"""Findings of the checks: values that the terminal and JSON show."""

from typing import Literal

import msgspec

Outcome = Literal["passed", "failed", "warning", "skipped"]
StageName = Literal["configuration", "machine", "network", "identity", "graphql", "plan", "store", "cost"]


class CheckResult(msgspec.Struct, frozen=True):
    """Result of one check. `code` is stable and unique for its diagnosis, such as `wrong_client_secret`; `text` says
    what was found, `advice` what to do; it is empty for a check that passed. `application` names the application that
    was checked, None if the check is of the whole installation."""

    code: str
    outcome: Outcome
    text: str
    advice: str = ""
    application: str | None = None


class Stage(msgspec.Struct, frozen=True):
    """One stage with its findings, in the order of the checks."""

    name: StageName
    findings: tuple[CheckResult, ...]

    @property
    def has_failed(self) -> bool:
        """Whether any check of it has failed."""
        return any(finding.outcome == "failed" for finding in self.findings)


class Report(msgspec.Struct, frozen=True):
    """All stages, in their order. A run is `ok` if no check has failed; warnings do not count."""

    stages: tuple[Stage, ...]

    @property
    def ok(self) -> bool:
        """Whether no check has failed."""
        return not any(stage.has_failed for stage in self.stages)
