"""Stage configuration: everything that `serve` reads at its start is read, and every mistake in it is a finding.

Afterwards the settings are those that the service would use: with `upstream: sandbox` the embedded sandbox runs, so
that the later stages check it as they check the real service.
"""

import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from proxy import config, errors
from proxy.config import loader
from proxy.doctor.findings import CheckResult, found, passed
from proxy.doctor.inspection import Inspection
from proxy.gateway.core import Upstream
from proxy.kit import extras, shipped
from proxy.kit.wording import counted
from proxy.mapping import loader as mapping_loader


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Read the configuration and its files, and start the embedded sandbox where it is the upstream."""
    try:
        settings = loader.load(inspection.file, inspection.environ)
    except errors.ConfigError as error:
        for finding in _findings(error):
            yield finding
        return
    other_mistakes = list(_other_mistakes(settings))
    for finding in other_mistakes:
        yield finding
    if other_mistakes:
        return
    yield passed("configuration_read", f"{inspection.file}: {_summary(settings)}")
    if settings.upstream == "sandbox":
        try:
            settings = await inspection.start_sandbox(settings, inspection.resources)
        except ModuleNotFoundError as error:
            yield _package_missing("upstream: sandbox", str(error.name), "sandbox")
            return
        inspection.is_embedded = True
        yield passed("sandbox_started", "upstream: sandbox; the following stages check the embedded sandbox")
    inspection.configured = settings


def _findings(error: errors.ConfigError) -> Iterator[CheckResult]:
    for mistake in error.mistakes:
        yield found(mistake.code, mistake.text)
    if not error.mistakes:
        yield found(_file_code(error.__context__), error.message)


def _file_code(cause: BaseException | None) -> str:
    """Return the code of the diagnosis of a file that cannot be parsed, by the error behind it."""
    if isinstance(cause, UnicodeDecodeError):
        return "configuration_not_text"
    return "configuration_unreadable" if isinstance(cause, OSError) else "yaml_invalid"


def _other_mistakes(settings: config.Config) -> Iterator[CheckResult]:
    """Yield the mistakes that only show when a setting is used, so that they end the start of the service."""
    yield from _missing_packages(settings)
    upstream = settings.upstream
    if upstream != "sandbox":
        yield from _attempt("tls_file_invalid", lambda: Upstream.tls_context(upstream.tls))
    uids = Path(settings.uids) if settings.uids else None
    if uids is not None:
        yield from _attempt("uids_invalid", lambda: mapping_loader.load_uids(shipped.path("mappings"), uids))


def _attempt(code: str, read: Callable[[], object]) -> Iterator[CheckResult]:
    try:
        read()
    except errors.StartError as error:
        for line in error.message.splitlines():
            yield found(code, line)


def _missing_packages(settings: config.Config) -> Iterator[CheckResult]:
    """Yield packages that settings need. They are imported, because one may be there and unusable."""
    needed = []
    if settings.store.shown.startswith(("redis:", "rediss:", "unix:")):
        needed.append(("store", "redis", "redis"))
    for setting, package, extra in needed:
        try:
            importlib.import_module(package)
        except ImportError:
            yield _package_missing(setting, package, extra)


def _package_missing(setting: str, package: str, extra: str) -> CheckResult:
    return found(
        "package_missing",
        f"{setting} needs the package {package}, which is not installed",
        advice=extras.install_line(extra),
    )


def _summary(settings: config.Config) -> str:
    keys = sum(len(application.apikeys) for application in settings.applications.values())
    return f"{counted(len(settings.applications), 'application')}, {counted(keys, 'API key')}"
