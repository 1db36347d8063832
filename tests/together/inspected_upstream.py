"""A run of `v3bridge doctor` in this process, on a configuration file for a sandbox or any other upstream."""

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from proxy import config
from proxy.doctor import inspection, run
from proxy.doctor.findings import CheckResult, Report, StageName
from proxy.kit import clock

APPLICATION: Mapping[str, Any] = {
    "apikeys": ["A_KEY"],
    "client_id": "an-id",
    "client_secret": "a-secret-of-24-characters",
}
UPSTREAM_STAGES: tuple[StageName, ...] = ("network", "identity", "graphql", "schema", "plan")
# Above what a loaded machine needs, below what makes the faults that hold responses back slow tests.
TIMEOUTS = {"connect_seconds": 2, "first_byte_seconds": 1, "total_seconds": 1.5}


@dataclass(frozen=True)
class Inspected:
    """Result of a run, for tests."""

    report: Report
    observed: list[tuple[StageName, CheckResult]] = field(default_factory=list)

    @property
    def findings(self) -> list[CheckResult]:
        """All findings, in their order."""
        return [finding for stage in self.report.stages for finding in stage.findings]

    @property
    def failed(self) -> set[str]:
        """Codes of all findings that failed."""
        return self._codes("failed")

    @property
    def warned(self) -> set[str]:
        """Codes of the warnings about the upstream; others depend on the machine."""
        return self._codes("warning", UPSTREAM_STAGES)

    def finding(self, code: str) -> CheckResult:
        """Return the first finding with this code."""
        return next(finding for finding in self.findings if finding.code == code)

    def _codes(self, outcome: str, stages: tuple[StageName, ...] = get_args(StageName)) -> set[str]:
        chosen = [stage for stage in self.report.stages if stage.name in stages]
        return {finding.code for stage in chosen for finding in stage.findings if finding.outcome == outcome}


async def inspect(
    folder: Path,
    upstream: Mapping[str, Any],
    *,
    applications: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    time: clock.Clock | None = None,
    **blocks: Any,
) -> Inspected:
    """Run all stages on a configuration with this upstream; `blocks` are further blocks of it."""
    file = folder / "config.yaml"
    content = {
        "store": "sqlite:state.sqlite",
        "listen": {"port": 0},
        "upstream": {"timeouts": TIMEOUTS, **upstream},
        "applications": applications or {"demo": APPLICATION},
        **blocks,
    }
    file.write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    file.chmod(0o600)
    async with AsyncExitStack() as resources:
        inspected = Inspected(Report(()))
        subject = inspection.Inspection(file, environ or {}, time or clock.SystemClock(), _no_sandbox, resources)
        report = await run.run(subject, lambda stage, finding: inspected.observed.append((stage, finding)))
    return Inspected(report, inspected.observed)


async def _no_sandbox(_settings: config.Config, _resources: AsyncExitStack) -> config.Config:
    raise AssertionError("the configuration names its upstream")
