"""What a check is: it returns what it found, or raises a Problem; and the values that the checks of one run share."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from proxy import config
from proxy.gateway.core import Gateway
from proxy.kit import clock as clocks


class Problem(Exception):  # noqa: N818 - what a check has found is no error of the program
    """What a check has found wrong, and what to do. A warning ends no start of the service."""

    def __init__(self, text: str, advice: str, *, is_warning: bool = False) -> None:
        super().__init__(text)
        self.advice = advice
        self.is_warning = is_warning


class CheckResult(msgspec.Struct, frozen=True):
    """Result of one check: what it found, and what to do, which is empty for a check that passed."""

    name: str
    outcome: Literal["passed", "warning", "failed", "skipped"]
    text: str
    advice: str = ""


@dataclass(slots=True)
class Subject:
    """What is checked, and what checks leave for later ones. `ready` has the names of those that left it.

    `start_sandbox` starts the embedded sandbox, and returns the settings with its addresses first; `resources` closes
    what checks open.
    """

    file: Path
    environ: Mapping[str, str]
    clock: clocks.Clock
    start_sandbox: Callable[[config.Config, AsyncExitStack], Awaitable[tuple[config.Config, object]]]
    resources: AsyncExitStack
    ready: set[str] = field(default_factory=set)
    settings: config.Config = field(init=False)  # by configuration: as the service would use it
    gateway: Gateway = field(init=False)  # by configuration: on the store, or on one in memory if it cannot be used
    dates: dict[str, str] = field(default_factory=dict)  # by tls: the Date header of each host
    tokens: list[str] = field(default_factory=list)  # by token: applications that have one
    accepted: list[str] = field(default_factory=list)  # by scope: applications whose token is accepted


Checks = Mapping[str, tuple[str, Callable[[Subject], Awaitable[str]]]]
"""Checks by name, in their order, each with the name of the one that it needs, or ""."""


async def run(subject: Subject, checks: Checks, only: str | None = None) -> AsyncIterator[CheckResult]:
    """Run the checks, or `only` one and those that it needs; yields each result when it is there."""
    wanted = set(checks if only is None else ())
    while only:
        wanted.add(only)
        only = checks[only][0]
    for name, (needed, check) in checks.items():
        if name not in wanted:
            continue
        if needed and needed not in subject.ready:
            yield CheckResult(name, "skipped", f"needs {needed}")
            continue
        try:
            result = CheckResult(name, "passed", await check(subject))
        except Problem as problem:
            result = CheckResult(name, "warning" if problem.is_warning else "failed", str(problem), problem.advice)
        if result.outcome != "failed":
            subject.ready.add(name)
        yield result
