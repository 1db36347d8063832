"""Stage configuration: everything that `serve` reads at its start is read, and every mistake in it is a finding.

Afterwards the settings are those that the service would use: with `upstream: sandbox` the embedded sandbox runs, so
that the later stages check it as they check the real service.
"""

import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from proxy import config, errors
from proxy.alerts import receivers
from proxy.config import loader
from proxy.doctor.findings import CheckResult
from proxy.doctor.inspection import Diagnosis, Inspection, passed
from proxy.kit import extras, shipped
from proxy.kit.wording import counted
from proxy.mapping import loader as mapping_loader
from proxy.upstream import session
from proxy.web import shadowing

UNREADABLE = Diagnosis(
    "configuration_unreadable",
    "the file does not exist, or this user must not read it",
    "name an existing file with --config, and let the user that runs v3bridge read it",
)
NOT_TEXT = Diagnosis(
    "configuration_not_text",
    "the file is not UTF-8 text: an editor has saved it in another encoding, or it is another file",
    "save the file as UTF-8, or name the right one with --config",
)
INVALID_YAML = Diagnosis(
    "yaml_invalid",
    "a bracket, a quote or the indentation is wrong, so that the file cannot be read any further",
    "correct the file at that line and column; further mistakes can only be seen then",
)
MISTAKES = {
    diagnosis.code: diagnosis
    for diagnosis in (
        Diagnosis(
            "unknown_key", "a key is misspelt or in the wrong block", "correct the key, move it, or delete its line"
        ),
        Diagnosis("duplicate_key", "a block has the same key twice", "delete one of the two lines"),
        Diagnosis("setting_missing", "a required setting is not there", "add it"),
        Diagnosis("value_not_accepted", "the value has the wrong form, or is out of its range", "correct the value"),
        Diagnosis(
            "variable_missing",
            "env:NAME names an environment variable that this process does not have",
            "set the variable where v3bridge is started (systemd: EnvironmentFile=, Docker: --env-file)",
        ),
        Diagnosis("variable_empty", "the environment variable is set, but has no text", "set it to the secret"),
        Diagnosis(
            "file_unreadable",
            "the file does not exist, or this user must not read it; relative paths begin at the file's folder",
            "correct the path, or let the user that runs v3bridge read the file",
        ),
        Diagnosis("file_empty", "the file has no text", "write the secret into it"),
        Diagnosis("file_not_text", "the file is not UTF-8 text", "write the secret into it as plain text"),
        Diagnosis(
            "duplicate_apikey", "two applications, or one of them twice, have the same API key", "delete one of them"
        ),
        Diagnosis("duplicate_name", "two API keys of an application have the same name", "rename one of them"),
        Diagnosis(
            "client_cert_missing", "a key of a client certificate is set without the certificate", "set client_cert"
        ),
        Diagnosis(
            "baseline_url_missing",
            "an application is shadowed, or served from the old service, whose address is not set",
            "set shadow.baseline_url, or delete the application's block shadow",
        ),
    )
}
TLS_FILE_INVALID = Diagnosis(
    "tls_file_invalid",
    "a file of upstream.tls is no certificate or key in PEM form, or its key has a passphrase",
    "convert it with: openssl x509 -in FILE -out FILE.pem, or openssl rsa for the key",
)
UIDS_INVALID = Diagnosis(
    "uids_invalid", "the table of uids has a mistake", "correct that line; docs/reference/uids.md has its form"
)
RULES_INVALID = Diagnosis(
    "rules_invalid",
    "the file of shadow.rules has a mistake",
    "correct that line; docs/reference/comparison.md has its form",
)
PACKAGE_MISSING = Diagnosis(
    "package_missing",
    "a setting needs an optional package, which is not installed",
    "install it with the command that the finding shows",
)


RECEIVER_UNUSABLE = Diagnosis(
    "alert_receiver_unusable",
    "the program of a command is not installed, or a file of certificates holds none",
    "correct the receiver, and try it with `v3bridge alerts test`",
    "warning",
)


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Read the configuration and its files, and start the embedded sandbox where it is the upstream."""
    try:
        settings = loader.load(inspection.file, inspection.environ)
    except errors.ConfigError as error:
        for finding in _findings(error):
            yield finding
        return
    other_mistakes = list(_other_mistakes(settings, inspection))
    for finding in other_mistakes:
        yield finding
    if other_mistakes:
        return
    for name, problem in receivers.mistakes(settings.alerts):
        yield RECEIVER_UNUSABLE.finding(f"the receiver {name} of alerts: {problem}")
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
        yield MISTAKES[mistake.code].finding(mistake.text)
    if not error.mistakes:
        yield _of_file(error.__context__).finding(error.message)


def _of_file(cause: BaseException | None) -> Diagnosis:
    """Return the diagnosis of a file that cannot be parsed, by the error behind it."""
    if isinstance(cause, UnicodeDecodeError):
        return NOT_TEXT
    return UNREADABLE if isinstance(cause, OSError) else INVALID_YAML


def _other_mistakes(settings: config.Config, inspection: Inspection) -> Iterator[CheckResult]:
    """Yield the mistakes that only show when a setting is used, so that they end the start of the service."""
    yield from _missing_packages(settings)
    shadow, upstream = settings.shadow, settings.upstream
    if upstream != "sandbox":
        yield from _attempt(TLS_FILE_INVALID, lambda: session.tls_context(upstream.tls))
    uids = Path(settings.uids) if settings.uids else None
    if uids is not None:
        yield from _attempt(UIDS_INVALID, lambda: mapping_loader.load_uids(shipped.path("mappings"), uids))
    if shadow.rules is not None:
        yield from _attempt(RULES_INVALID, lambda: shadowing.client_keys(shadow, inspection.environ))


def _attempt(diagnosis: Diagnosis, read: Callable[[], object]) -> Iterator[CheckResult]:
    try:
        read()
    except errors.StartError as error:
        for line in error.message.splitlines():
            yield diagnosis.finding(line)


def _missing_packages(settings: config.Config) -> Iterator[CheckResult]:
    """Yield packages that settings need. They are imported, because one may be there and unusable."""
    needed = []
    if settings.store.shown.startswith(("redis:", "rediss:", "unix:")):
        needed.append(("store", "redis", "redis"))
    if settings.tracing.otlp_url is not None:
        needed.append(("tracing.otlp_url", "opentelemetry.sdk", "otel"))
    for setting, package, extra in needed:
        try:
            importlib.import_module(package)
        except ImportError:
            yield _package_missing(setting, package, extra)


def _package_missing(setting: str, package: str, extra: str) -> CheckResult:
    return PACKAGE_MISSING.finding(
        f"{setting} needs the package {package}, which is not installed",
        advice=extras.install_line(extra),
    )


def _summary(settings: config.Config) -> str:
    keys = sum(len(application.apikeys) for application in settings.applications.values())
    return f"{counted(len(settings.applications), 'application')}, {counted(keys, 'API key')}"
