"""A run of `v3bridge doctor` in this process, on a configuration file for a sandbox or any other upstream."""

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nexar_sandbox
from proxy import config, doctor
from proxy.cli.installation import CHECKS
from proxy.kit import clock

# Above what a loaded machine needs, below what makes the faults that hold responses back slow tests.
SECONDS = 1.5


@dataclass(frozen=True)
class Inspected:
    """Result of a run, for tests."""

    results: Mapping[str, doctor.CheckResult]

    def __getitem__(self, name: str) -> doctor.CheckResult:
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


def own(application: nexar_sandbox.SandboxApplication, **changes: Any) -> dict[str, Any]:
    """Return the settings of an application with these credentials."""
    credentials = {"client_id": application.client_id, "client_secret": application.client_secret}
    return {"apikeys": ["A_KEY"], **credentials, **changes}


@dataclass(frozen=True)
class Examined:
    """A sandbox, and a folder with a configuration for it."""

    folder: Path
    sandbox: nexar_sandbox.Sandbox

    async def inspect(
        self,
        url: str = "",
        *,
        upstream: Mapping[str, Any] | None = None,
        application: Mapping[str, Any] | None = None,
        time: clock.Clock | None = None,
        **blocks: Any,
    ) -> Inspected:
        """Run all checks on a configuration for the sandbox, or for what is at a URL in front of it; `upstream` and
        `application` are changes of these settings, `blocks` are further blocks."""
        file, base = self.folder / "config.yaml", url or self.sandbox.url
        addresses = {"graphql_url": f"{base}/graphql", "token_url": f"{base}/connect/token", "total_seconds": SECONDS}
        content = {
            "store": "sqlite:state.sqlite",
            "listen": {"port": 0},
            "admin": {"port": 0},
            "upstream": {**addresses, **(upstream or {})},
            "applications": {"demo": own(self.sandbox.default_application, **(application or {}))},
            **blocks,
        }
        file.write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
        file.chmod(0o600)
        async with AsyncExitStack() as resources:
            subject = doctor.Subject(file, time or clock.Clock(), _no_sandbox, resources)
            return Inspected({result.name: result async for result in doctor.run(subject, CHECKS)})


async def _no_sandbox(_settings: config.Config, _resources: AsyncExitStack) -> tuple[config.Config, object]:
    raise AssertionError("the configuration names its upstream")
