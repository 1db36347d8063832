"""Checks of an installation: what a check is, how they run, and those of this machine. None costs a part."""

import asyncio
import errno
import http.client
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from proxy import config, errors
from proxy.config import loader
from proxy.gateway import Gateway
from proxy.kit import clock as clocks
from proxy.kit import counted
from proxy.web import operators, ports

STORE_BYTES = 50_000_000  # of the store itself, with room for its journal
SECONDS = 10.0  # that a service may take to give its state
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


@dataclass(eq=False)
class Problem(Exception):  # noqa: N818 - what a check has found is no error of the program
    """What a check has found wrong, and what to do. A warning ends no start of the service."""

    text: str
    advice: str
    is_warning: bool = field(default=False, kw_only=True)


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
    clock: clocks.Clock
    start_sandbox: Callable[[config.Config, AsyncExitStack], Awaitable[tuple[config.Config, object]]]
    resources: AsyncExitStack
    settings: config.Config = field(init=False)  # by configuration: as the service would use it
    gateway: Gateway = field(init=False)  # by configuration: on the store, or on one in memory if it cannot be used
    store_failure: str = ""  # by configuration: why the store cannot be used
    dates: dict[str, str] = field(default_factory=dict)  # by tls: the Date header of each host


class Check(NamedTuple):
    """A check, and the one that it needs, or "". One of `each` runs for applications that the other has not failed."""

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
        if name not in wanted:
            continue
        applications, passed[name], found = passed[check.needs], [], list[CheckResult]()
        if check.each and applications == [""]:
            applications = [*subject.settings.applications]
        for application in applications:
            outcome: Outcome = "passed"
            try:
                text, advice = await check.run(subject, application), ""
            except errors.BridgeError as error:
                outcome, text, advice = "failed", str(error), ADVICE.get(type(error), OTHER_ADVICE)
            except Problem as problem:
                outcome = "warning" if problem.is_warning else "failed"
                text, advice = problem.text, problem.advice
            found.append(CheckResult(name, outcome, f"{application}: {text}" if check.each else text, advice))
            if outcome != "failed":
                passed[name].append(application)
        outcomes: list[Outcome] = [each.outcome for each in found] or ["skipped"]
        outcome = max(outcomes, key=get_args(Outcome).index)
        told = [each for each in found if outcome == "passed" or each.outcome != "passed"]
        advice = "; ".join(dict.fromkeys(each.advice for each in told if each.advice))
        text = "; ".join(each.text for each in told) or f"needs {check.needs}"
        yield CheckResult(name, outcome, text, advice)


async def configuration(subject: Subject, _: str) -> str:
    """Read everything that `serve` reads at its start, and start the embedded sandbox where it is the upstream. A store
    that does not exist is not made: it would belong to whoever runs the check."""
    try:
        subject.settings = settings = loader.load(subject.file, os.environ)
        if settings.upstream == "sandbox":
            subject.settings = settings = (await subject.start_sandbox(settings, subject.resources))[0]
        in_memory = msgspec.structs.replace(settings, store=config.StoreUrl("memory:"))
        try:
            file = settings.store.file
            opened = settings if file is None or file.exists() else in_memory
            subject.gateway = await Gateway.open(opened, subject.clock, subject.resources)
        except (errors.StartError, errors.StoreUnavailable) as error:  # of anything else it is raised again
            subject.store_failure = str(error)
            subject.gateway = await Gateway.open(in_memory, subject.clock, subject.resources)
    except errors.StartError as error:
        raise Problem(error.message, "correct it there; `v3bridge config --all` prints every setting") from error
    if exposed := " ".join(map(str, loader.exposed(subject.file))):
        raise Problem(f"other users can read {exposed}, which has secrets", f"chmod 600 {exposed}", is_warning=True)
    keys = sum(len(application.apikeys) for application in settings.applications.values())
    return f"{subject.file}: {counted(len(settings.applications), 'application')}, {counted(keys, 'API key')}"


async def store(subject: Subject, _: str) -> str:
    """Try the store out. Client ids are shown by their ends: applications with one id share a limit."""
    url, file, names = subject.settings.store, subject.settings.store.file, defaultdict[str, list[str]](list)
    for name, application in subject.settings.applications.items():
        names[application.client_id or name].append(name)
    clients = ", ".join(f"{' and '.join(each)} (client id …{id[-4:]})" for id, each in names.items())
    if url.reveal() == "memory:":
        text = "in memory: usage and tokens are lost when the service stops"
        raise Problem(text, "set store: sqlite, or an address of Redis for several machines", is_warning=True)
    if subject.store_failure:
        advice = (
            "check all of the address, user and password too, and that it is the primary: redis-cli -u ADDRESS ping"
        )
        if file is not None:
            advice = "look at its owner, its disk and who uses it (ls -l, df, fuser); replace a damaged one by a backup"
        raise Problem(subject.store_failure, advice)
    if subject.gateway.settings.store != url:
        if file and not os.access(file.parent, os.W_OK | os.X_OK):
            raise Problem(
                f"{file} cannot be made",
                "make its folder or mount its disk (mkdir -p), which the user that runs v3bridge may write to (chown)",
            )
        return f"{file} does not exist yet, the service will make it; usage of {clients}"
    began = time.monotonic()
    await subject.gateway.check_store()
    return (
        f"{file or url.shown}, writable, {1000 * (time.monotonic() - began):.1f} ms a transaction; usage of {clients}"
    )


async def listening(subject: Subject, _: str) -> str:
    """Bind the ports of clients and operators for a moment. Another v3bridge on the operators' is a warning."""
    settings, admin = subject.settings, subject.settings.admin
    places = {"listen": (settings.listen.host, settings.listen.port)}
    if admin:
        if admin.port and admin.port == settings.listen.port:
            raise Problem(f"port {admin.port} is that of the service", f"choose another with {ports.OPERATORS_OPTIONS}")
        places["admin"] = admin.host, admin.port
        other, url = "", f"http://{ports.shown(admin.host, admin.port)}/status"
        with suppress(errors.ConfigError):  # nothing, or no v3bridge
            found = await asyncio.to_thread(read_state, url, admin.token)
            unknown = "a v3bridge with another admin.token, perhaps another one"
            other = operators.another(found, settings) if found else unknown
        if other:
            advice = f"give one of them another: {ports.OPERATORS_OPTIONS}"
            raise Problem(f"{other}, responds at {url}", advice, is_warning=True)
    for block, (host, port) in places.items():
        try:
            for each in ports.listen(host, port):
                each.close()
        except OSError as error:
            text = f"cannot listen on {host}:{port} ({block}): {error.strerror}"
            advice = f"if v3bridge does not run, end what listens there (ss -ltnp), or set {block}.host or {block}.port"
            raise Problem(text, advice, is_warning=error.errno == errno.EADDRINUSE) from error
    return f"{', '.join(f'{host}:{port}' for host, port in places.values())} can be listened on"


def read_state(url: str, token: config.Secret | None) -> dict[str, Any]:
    """Return the state at an operators' port, past proxies; nothing if it needs another token. Raises ConfigError."""
    headers = {"Authorization": f"Bearer {token.reveal()}"} if token else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - that of the configuration
    read: Any = None
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=SECONDS) as response:
            read = json.load(response)
    except urllib.error.HTTPError as error:
        if "v3bridge" in error.headers.get("WWW-Authenticate", ""):
            return {}
    except (ValueError, http.client.HTTPException):
        pass
    except OSError as error:
        raise errors.ConfigError(
            f"no service responds at {url}: {getattr(error, 'reason', error)}; name its configuration with "
            "--config, or its operators' port with --admin-port; what its store has is shown by v3bridge usage"
        ) from error
    if not isinstance(read, dict) or not read.keys() >= {"ready", "reasons", "tokens", "uptime_seconds"}:
        raise errors.ConfigError(f"what responds at {url} is not the operators' port of a v3bridge")
    return read


async def disk(subject: Subject, _: str) -> str:
    """Compare the free space with what the store may grow by."""
    file = subject.settings.store.file
    if file is None:
        return "the store is not on this disk"
    folder = next(folder for folder in file.parents if os.access(folder, os.F_OK))  # False, too, where it is forbidden
    used = file.stat().st_size if os.access(file, os.F_OK) else 0
    free, needed = shutil.disk_usage(folder).free, max(0, STORE_BYTES + subject.settings.cache.bytes - used)
    text = f"{free / 1e6:,.0f} MB free in {folder}, the store may grow by {needed / 1e6:,.0f} MB"
    if free < needed:
        advice = "free space (df FOLDER), lower cache.bytes, or put it on another disk with store: sqlite:PATH"
        raise Problem(text, advice, is_warning=True)
    return text
