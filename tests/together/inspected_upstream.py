"""A run of `v3bridge doctor` in this process, on a configuration file for a sandbox or any other upstream."""

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy import config
from proxy.doctor import CHECKS, check
from proxy.kit import clock

APPLICATION: Mapping[str, Any] = {
    "apikeys": ["A_KEY"],
    "client_id": "an-id",
    "client_secret": "a-secret-of-24-characters",
}
# Above what a loaded machine needs, below what makes the faults that hold responses back slow tests.
SECONDS = 1.5


@dataclass(frozen=True)
class Inspected:
    """Result of a run, for tests."""

    results: Mapping[str, check.CheckResult]

    def __getitem__(self, name: str) -> check.CheckResult:
        return self.results[name]

    @property
    def failed(self) -> list[str]:
        """Names of the checks that failed."""
        return [name for name, result in self.results.items() if result.outcome == "failed"]

    @property
    def warned(self) -> list[str]:
        """Names of the checks of the upstream that warn; others depend on the machine."""
        return [
            name
            for name, result in self.results.items()
            if result.outcome == "warning" and name not in ("ports", "disk")
        ]


async def inspect(
    folder: Path,
    upstream: Mapping[str, Any],
    *,
    applications: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    time: clock.Clock | None = None,
    **blocks: Any,
) -> Inspected:
    """Run all checks on a configuration with this upstream; `blocks` are further blocks of it."""
    file = folder / "config.yaml"
    content = {
        "store": "sqlite:state.sqlite",
        "listen": {"port": 0},
        "admin": {"port": 0},
        "upstream": {"total_seconds": SECONDS, **upstream},
        "applications": applications or {"demo": APPLICATION},
        **blocks,
    }
    file.write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    file.chmod(0o600)
    async with AsyncExitStack() as resources:
        subject = check.Subject(file, environ or {}, time or clock.SystemClock(), _no_sandbox, resources)
        return Inspected({result.name: result async for result in check.run(subject, CHECKS)})


async def _no_sandbox(_settings: config.Config, _resources: AsyncExitStack) -> tuple[config.Config, object]:
    raise AssertionError("the configuration names its upstream")
