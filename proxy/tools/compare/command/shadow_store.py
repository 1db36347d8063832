"""Access of commands to the store of running services: results of shadowing, and the report of `compare --shadow`."""

from pathlib import Path

from proxy import config, errors
from proxy.cli import used_store
from proxy.kit import clock
from proxy.tools.compare.command import checks, options
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.results import ComparisonResult
from proxy.tools.compare.shadow import report


def configured(file: Path | None) -> config.Config:
    """Load a configuration whose store other processes can open. Raises ConfigError."""
    settings = used_store.configured(file)
    if settings.upstream == "sandbox" or settings.store.reveal() == "memory:":
        raise errors.ConfigError(
            "store: is known to the running service alone (memory:, or upstream: sandbox); "
            "the shadow commands need a shared one"
        )
    return settings


def rules_file(chosen: options.ComparisonOptions, service: config.Config) -> Path | None:
    """Return the file of rules: the chosen one, else that of the shadow settings."""
    return chosen.rules or (None if service.shadow.rules is None else Path(service.shadow.rules))


async def result(
    settings: ComparisonSettings, service: config.Config, chosen: options.ComparisonOptions
) -> ComparisonResult:
    """Return the result of all comparisons in the store. Raises ConfigError if there are none."""
    read = await used_store.with_store(
        service,
        lambda store: report.read(
            store,
            service,
            settings,
            clock.SystemClock(),
            budget=chosen.budget,
            ignored_counts=checks.ignored_counts(chosen),
        ),
    )
    if read is None:
        raise errors.ConfigError("there are no results yet: no request has been compared with this store")
    return read
