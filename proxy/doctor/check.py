"""What a check is: it returns what it found, or raises a Problem; and the values that the checks of one run share."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from proxy import config, errors
from proxy.gateway.core import Gateway
from proxy.kit import clock as clocks

Outcome = Literal["passed", "warning", "failed", "skipped"]  # in this order

ADVICE: dict[type[errors.BridgeError], str] = {
    errors.CredentialsRefused: "compare client id, secret (no quotes or blanks around them) and the Supply domain with "
    "Nexar's portal, and check both addresses and the clock",
    errors.TokenLimit: "wait as long as it says; find programs that request a token for each call",
    errors.TooManyRequests: "wait as long as it says; set `rate` of the application lower if it comes back",
    errors.UpstreamFault: "wait: nothing here is wrong; look at the status page of the service",
    errors.UpstreamUnreadable: "check the addresses under upstream, the clock, and any proxy or firewall on the way",
}
OTHER_ADVICE = "try again in some minutes; then check firewall or proxy on the way"


class Problem(Exception):  # noqa: N818 - what a check has found is no error of the program
    """What a check has found wrong, and what to do. A warning ends no start of the service."""

    def __init__(self, text: str, advice: str, *, is_warning: bool = False) -> None:
        super().__init__(text)
        self.advice = advice
        self.is_warning = is_warning


class CheckResult(msgspec.Struct, frozen=True):
    """Result of one check: what it found, and what to do if it has not passed."""

    name: str
    outcome: Outcome
    text: str
    advice: str = ""


@dataclass(slots=True)
class Subject:
    """What is checked, and what checks leave for later ones. `start_sandbox` starts the embedded sandbox, and returns
    the settings with its addresses first; `resources` closes what checks open."""

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


async def run(subject: Subject, checks: Mapping[str, Check], only: str = "") -> AsyncIterator[CheckResult]:
    """Run the checks, or `only` one and those that it needs; yields each result when it is there: of several
    applications, what is wrong, if anything is."""
    wanted = set() if only else {*checks}
    while only:
        wanted.add(only)
        only = checks[only].needs
    passed: dict[str, list[str]] = {"": [""]}  # by check: the applications for which it has not failed
    for name, check in checks.items():
        if name in wanted:
            applications = passed[check.needs]
            if check.each and applications == [""]:
                applications = [*subject.settings.applications]
            found = {each: await _result(subject, name, check, each) for each in applications}
            passed[name] = [each for each, result in found.items() if result.outcome != "failed"]
            outcomes: list[Outcome] = [each.outcome for each in found.values()] or ["skipped"]
            outcome = max(outcomes, key=get_args(Outcome).index)
            told = [each for each in found.values() if outcome == "passed" or each.outcome != "passed"]
            advice = "; ".join(dict.fromkeys(each.advice for each in told if each.advice))
            text = "; ".join(each.text for each in told) or f"needs {check.needs}"
            yield CheckResult(name, outcome, text, advice)


async def _result(subject: Subject, name: str, check: Check, application: str) -> CheckResult:
    shown = f"{application}: " if check.each else ""
    try:
        return CheckResult(name, "passed", f"{shown}{await check.run(subject, application)}")
    except errors.BridgeError as error:
        return CheckResult(name, "failed", f"{shown}{error.message}", ADVICE.get(type(error), OTHER_ADVICE))
    except Problem as problem:
        return CheckResult(name, "warning" if problem.is_warning else "failed", f"{shown}{problem}", problem.advice)
