"""Settings of a comparison that a command chooses, and the digest of what its judgements depend on."""

import hashlib
import os
from pathlib import Path

import msgspec
import typer

from proxy.kit import shipped
from proxy.tools.compare import loader
from proxy.tools.compare.judging import thresholds
from proxy.tools.compare.judging.settings import ComparisonSettings


def load(file: Path | None, fail_on: str | None) -> ComparisonSettings:
    """Load the settings in a file, or the shipped ones; thresholds from the command line take precedence."""
    read = loader.load(file, os.environ)
    if fail_on is None:
        return read
    try:
        return msgspec.structs.replace(read, fail_on=thresholds.parse_list(fail_on))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--fail-on") from None


def digest(chosen: ComparisonSettings, config_file: Path | None) -> str:
    """Return a digest of everything that a judgement depends on: rules, noise, latency and, if the service is
    started here, its configuration and mappings."""
    files = () if config_file is None else (config_file, *shipped.mapping_files())
    parts = (chosen.rules, chosen.noise, chosen.latency, shipped.digest(files))
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()
