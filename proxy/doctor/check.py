"""What a check is: it returns what it found, or raises a Problem; and the values that the checks of one run share."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from proxy import config
from proxy.gateway.core import Gateway
from proxy.kit import clock as clocks

Outcome = Literal["passed", "warning", "failed", "skipped"]


class Problem(Exception):  # noqa: N818 - what a check has found is no error of the program
    """What a check has found wrong, and what to do. A warning ends no start of the service."""

    def __init__(self, text: str, advice: str, *, is_warning: bool = False) -> None:
        super().__init__(text)
        self.advice = advice
        self.is_warning = is_warning


class CheckResult(msgspec.Struct, frozen=True):
    """Result of one check: what it found, and what to do, which is empty for a check that passed."""

    name: str
    outcome: Outcome
    text: str
    advice: str = ""


@dataclass(slots=True)
class Subject:
    """What is checked, and what checks leave for later ones.

    `start_sandbox` starts the embedded sandbox, and returns the settings with its addresses first; `resources` closes
    what checks open.
    """

    file: Path
    environ: Mapping[str, str]
    clock: clocks.Clock
    start_sandbox: Callable[[config.Config, AsyncExitStack], Awaitable[tuple[config.Config, object]]]
    resources: AsyncExitStack
    settings: config.Config = field(init=False)  # by configuration: as the service would use it
    gateway: Gateway = field(init=False)  # by configuration: on the store, or on one in memory if it cannot be used
    store_failure: str = ""  # by configuration: why the store cannot be used
    dates: dict[str, str] = field(default_factory=dict)  # by tls: the Date header of each host


class Check(NamedTuple):
    """A check, and the one that it needs, or "". One of `each` application runs for those for which the other has not
    failed."""

    needs: str
    run: Callable[[Subject, str], Awaitable[str]]
    each: bool = False


async def run(subject: Subject, checks: Mapping[str, Check], only: str | None = None) -> AsyncIterator[CheckResult]:
    """Run the checks, or `only` one and those that it needs; yields each result when it is there."""
    wanted = set(checks if only is None else ())
    while only:
        wanted.add(only)
        only = checks[only].needs
    done: dict[str, list[str]] = {"": [""]}  # by check: the applications for which it has not failed
    for name, check in checks.items():
        if name not in wanted:
            continue
        applications, done[name] = done[check.needs], []
        if check.each and applications == [""]:
            applications = [*subject.settings.applications]
        passed: list[str] = []
        problems: list[Problem] = []
        for application in applications:
            shown = f"{application}: " if check.each else ""
            try:
                passed.append(f"{shown}{await check.run(subject, application)}")
                done[name].append(application)
            except Problem as problem:
                problems.append(Problem(f"{shown}{problem}", problem.advice, is_warning=problem.is_warning))
                done[name] += [application] if problem.is_warning else []
        if not applications:
            yield CheckResult(name, "skipped", f"needs {check.needs}")
        elif problems:
            outcome: Outcome = "warning" if all(each.is_warning for each in problems) else "failed"
            advice = "; ".join(dict.fromkeys(each.advice for each in problems))
            yield CheckResult(name, outcome, "; ".join(map(str, problems)), advice)
        else:
            yield CheckResult(name, "passed", "; ".join(passed))
