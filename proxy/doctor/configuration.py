"""Stage configuration: the file is read as `serve` reads it, and every mistake in it is a finding."""

from collections.abc import AsyncIterator

from proxy import config, errors
from proxy.config import loader
from proxy.doctor.findings import CheckResult
from proxy.doctor.inspection import Diagnosis, Inspection, passed
from proxy.kit.wording import counted

INVALID = Diagnosis(
    "configuration_invalid", "the configuration has a mistake", "correct the line; the message names what it accepts"
)


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Load the configuration, and start the embedded sandbox where it is the upstream."""
    try:
        settings = loader.load(inspection.file, inspection.environ)
    except errors.ConfigError as error:
        yield INVALID.finding(error.message)
        return
    yield passed("configuration_read", f"{inspection.file}: {_summary(settings)}")
    if settings.upstream == "sandbox":
        settings = await inspection.start_sandbox(settings, inspection.resources)
        yield passed("sandbox_started", "upstream: sandbox; the following stages check the embedded sandbox")
    inspection.configured = settings


def _summary(settings: config.Config) -> str:
    keys = sum(len(application.apikeys) for application in settings.applications.values())
    return f"{counted(len(settings.applications), 'application')}, {counted(keys, 'API key')}"
