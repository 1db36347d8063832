"""Fixture: one stage of `doctor`, run on a configuration that is written as text."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy import config
from proxy.config import loader
from proxy.doctor.findings import CheckResult
from proxy.doctor.inspection import Inspection
from proxy.kit import clock

Check = Callable[[Inspection], AsyncIterator[CheckResult]]
Examine = Callable[..., Awaitable[list[CheckResult]]]
NOWHERE = config.UpstreamSettings(graphql_url="http://127.0.0.1:1/g", token_url="http://127.0.0.1:1/t")


async def start_nothing(settings: config.Config, _resources: AsyncExitStack) -> config.Config:
    """In place of the embedded sandbox, which these stages do not send anything to."""
    return msgspec.structs.replace(settings, upstream=NOWHERE, store=config.StoreUrl("memory:"))


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    """Run the check of a stage on a configuration; returns its findings.

    All but the stage configuration get the settings as the text has them. `requests` is as in Inspection.
    """

    async def of(check: Check, text: str, requests: tuple[Path, ...] = (), **environ: str) -> list[CheckResult]:
        file = tmp_path / "config.yaml"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        async with AsyncExitStack() as resources:
            inspection = Inspection(file, environ, clock.SystemClock(), start_nothing, resources, requests)
            if not check.__module__.endswith(".configuration"):
                inspection.configured = loader.load(file, environ)
            return [finding async for finding in check(inspection)]

    return of


def diagnoses(findings: list[CheckResult]) -> list[str]:
    """Return the codes of what was found wrong."""
    return [finding.code for finding in findings if finding.outcome in ("failed", "warning")]


def the_finding(findings: list[CheckResult], code: str) -> Any:
    """Return the one finding with this code."""
    (found,) = (finding for finding in findings if finding.code == code)
    return found
