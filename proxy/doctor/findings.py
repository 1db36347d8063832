"""Findings of the checks: values that the terminal and JSON show. What a check can find wrong is in diagnoses.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from proxy import errors
from proxy.kit import located_yaml

Outcome = Literal["passed", "failed", "warning", "skipped"]
StageName = Literal["configuration", "machine", "network", "identity", "graphql", "schema", "plan", "store", "cost"]


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
        return any(finding.outcome == "failed" for finding in self.findings)


class Report(msgspec.Struct, frozen=True):
    """All stages, in their order. A run is `ok` if no check has failed; warnings do not count."""

    stages: tuple[Stage, ...]

    @property
    def ok(self) -> bool:
        return not any(stage.has_failed for stage in self.stages)


class Diagnosis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Remedy of what is wrong; diagnoses.yaml has the meaning of the fields."""

    remedy: str
    outcome: Literal["failed", "warning"] = "failed"


def _load() -> dict[StageName, dict[str, Diagnosis]]:
    table = located_yaml.read(Path(__file__).with_name("diagnoses.yaml"), ValueError).data
    return msgspec.convert(table, dict[StageName, dict[str, Diagnosis]])


DIAGNOSES: Mapping[StageName, Mapping[str, Diagnosis]] = _load()
"""All diagnoses by stage and code."""

_BY_CODE = {code: diagnosis for stage in DIAGNOSES.values() for code, diagnosis in stage.items()}


def found(code: str, text: str, *, advice: str = "", application: str | None = None) -> CheckResult:
    """Return the finding for a diagnosis. `text` says what was found, `advice` what to do where it is known better than
    in general."""
    return CheckResult(code, _BY_CODE[code].outcome, text, advice or remedy(code), application)


def remedy(code: str) -> str:
    """Return what to do about a diagnosis in general."""
    return _BY_CODE[code].remedy


def passed(code: str, text: str, application: str | None = None) -> CheckResult:
    """Return the finding of a check that found nothing wrong."""
    return CheckResult(code, "passed", text, application=application)


def skipped(reason: str, application: str | None = None) -> CheckResult:
    return CheckResult("skipped", "skipped", reason, application=application)


@dataclass(frozen=True, slots=True)
class CheckedService:
    """A service, whose address is in `setting`. Codes of its diagnoses begin with `prefix`."""

    prefix: str
    name: str
    setting: str

    def response_finding(self, error: errors.BridgeError) -> CheckResult:
        """Return the finding for a response that is no response of this service."""
        sign = error.sign if isinstance(error, errors.UpstreamUnreadable) else ""
        if sign in ("page", "wrong address"):
            advice = "" if sign == "page" else f"check the address in {self.setting}"
            return self._found("wrong_address", error.message.partition(";")[0], advice)
        return self._found("failing" if isinstance(error, errors.UpstreamFault) else "unreadable", error.message)

    def failure_finding(self, error: errors.ServerError) -> CheckResult:
        """Return the finding for a request without a whole response."""
        if isinstance(error.__cause__, TimeoutError):
            return self._found("timeout", error.message)
        unreadable = isinstance(error, errors.UpstreamUnreadable)
        return self._found("unreadable" if unreadable else "disconnects", error.message)

    def _found(self, code: str, text: str, advice: str = "") -> CheckResult:
        return found(f"{self.prefix}_{code}", text, advice=advice)
