"""What a person chose of the options of `compare` and `record`, as a value, with what contradicts itself refused."""

import os
from pathlib import Path
from typing import Self

import msgspec
import typer

from proxy import config
from proxy.compare.judging import rules as ignoring
from proxy.compare.running import http_side
from proxy.compare.running.http_side import SideLimits
from proxy.compare.sources import bom
from proxy.config import secret
from proxy.kit import shipped
from proxy.telemetry import log

V3_RATE = 3.0  # calls a second, which v3 held its free tier to
SANDBOX = "sandbox"
STANDARD_OUTPUT = Path("-")
REPORTS = ("html", "json", "markdown", "junit", "save_hidden")


class ComparisonOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options by their names; see options.py."""

    old: str | None = None
    new: str | None = None
    config: Path | None = None
    requests: Path | None = None
    kind: str | None = None
    column: list[str] | None = None
    rules: Path | None = None
    sample: int | None = None
    seed: int = 1
    budget: int | None = None
    yes: bool = False
    old_key: str | None = None
    new_key: str | None = None
    old_rate: float | None = None
    new_rate: float = 0.0
    old_at_once: int = 4
    new_at_once: int = 4
    timeout: float = 60.0
    replay: Path | None = None
    record: Path | None = None
    progress: Path | None = None
    fresh: bool = False
    shadow: bool = False
    fail_on: str | None = None
    html: Path | None = None
    json: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None
    hidden_baseline: Path | None = None
    save_hidden: Path | None = None
    log_level: str = "error"
    comparing: bool = False  # else recording

    @property
    def named(self) -> dict[str, str]:
        """The columns of a list of parts, by v3's keys. Raises BadParameter."""
        pairs = [text.partition("=")[::2] for text in self.column or ()]
        keys = [key.strip().lower() for key, _ in pairs]
        for text, (_, name), key in zip(self.column or (), pairs, keys, strict=True):
            if key not in bom.KEYS or not name.strip():
                known = ", ".join(f"{each}=NAME" for each in bom.KEYS)
                raise typer.BadParameter(f"{text!r} is none of {known}", param_hint="--column")
            if keys.count(key) > 1:
                raise typer.BadParameter(f"{key}= is given more than once", param_hint="--column")
        return {bom.KEYS[key]: name.strip() for key, (_, name) in zip(keys, pairs, strict=True)}

    @property
    def old_limits(self) -> SideLimits:
        """Of the old side. The embedded one has no rate."""
        usual = 0.0 if self.old == SANDBOX else V3_RATE
        return SideLimits(self.old_at_once, usual if self.old_rate is None else self.old_rate, self.timeout)

    @property
    def new_limits(self) -> SideLimits:
        """Of the new side."""
        return SideLimits(self.new_at_once, self.new_rate, self.timeout)

    @property
    def baseline(self) -> ignoring.HiddenCounts | None:
        """How much rules may hide. Raises ConfigError for a file that says nothing of it."""
        return None if self.hidden_baseline is None else ignoring.read_hidden_counts(self.hidden_baseline)

    @property
    def old_file(self) -> Path | None:
        """The file of old answers, where the old side is one."""
        return Path(self.old) if self.old and "://" not in self.old and self.old != SANDBOX else None

    @property
    def to_output(self) -> int:
        """How many reports go to standard output, instead of the printed one."""
        return [getattr(self, name) for name in REPORTS].count(STANDARD_OUTPUT)

    def check(self) -> Self:
        """The same, with what goes without saying. Raises BadParameter for options that do not go together, and for
        reports that could not be written when parts are spent.
        """
        if self.log_level not in log.LEVELS:
            raise typer.BadParameter(f"is none of {', '.join(log.LEVELS)}", param_hint="--log-level")
        if self.new is not None and self.config is not None:
            raise typer.BadParameter(
                "one new side is enough: a URL, or a configuration to start here", param_hint="--new"
            )
        if self.shadow:
            self._check_shadow()
        elif self.replay is not None:
            self._check_replay()
        elif self.requests is None and self.old_file is None:
            raise typer.BadParameter("what is to be asked? A log, HAR, URLs, a list of parts", param_hint="--requests")
        self._check_values()
        if self.named and self.requests is None:
            raise typer.BadParameter("names columns of the list of parts in --requests", param_hint="--column")
        if self.old != SANDBOX or self.config is not None:
            return self
        if self.new is not None or self.replay is not None:
            raise typer.BadParameter(
                "the embedded old service starts beside the service of --config, which has upstream: sandbox",
                param_hint="--old",
            )
        return msgspec.structs.replace(self, config=shipped.path("config.yaml"))

    def _check_shadow(self) -> None:
        for name in ("old", "new", "requests", "replay", "record", "progress", "sample"):
            if getattr(self, name) is not None:
                raise typer.BadParameter("shows what was gathered: it goes without this", param_hint=f"--{name}")

    def _check_values(self) -> None:
        if self.to_output > 1:
            raise typer.BadParameter("one report can go to standard output, not several", param_hint="-")
        for name in (*REPORTS, "record"):
            option = "output" if name == "record" and not self.comparing else name.replace("_", "-")
            _check_place(getattr(self, name), f"--{option}")
        for name in ("old", "new"):
            _check_address(getattr(self, name), f"--{name}")
        if self.comparing and not self.shadow and self.replay is None:
            self._check_sides()

    def _check_sides(self) -> None:
        for option, given in (("--old", self.old), ("--new", self.new or self.config or self.old == SANDBOX)):
            if not given:
                raise typer.BadParameter("there is nothing to compare with: this side is missing", param_hint=option)

    def _check_replay(self) -> None:
        for name in ("new", "record", "progress", "budget"):
            if getattr(self, name) is not None:
                raise typer.BadParameter("asks nobody and costs nothing: it goes without this", param_hint=f"--{name}")


def _check_address(side: str | None, option: str) -> None:
    """Raises BadParameter for an address that is none."""
    if side is None or "://" not in side:
        return
    try:
        http_side.base_url(side)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _check_place(report: Path | None, option: str) -> None:
    """Raises BadParameter where a file cannot be written there."""
    if report is None or report == STANDARD_OUTPUT:
        return
    if report.is_dir():
        raise typer.BadParameter(f"is a folder: {report}", param_hint=option)
    if not report.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {report.parent}", param_hint=option)
    if not os.access(report if report.exists() else report.parent, os.W_OK):
        raise typer.BadParameter(f"cannot be written: {report}", param_hint=option)


def read_key(text: str | None, option: str) -> config.Secret | None:
    """The apikey that `env:NAME` or `file:PATH` leads to. Raises BadParameter, which holds none."""
    if text is None:
        return None
    if not text.startswith(("env:", "file:")):
        raise typer.BadParameter(
            "a key on a command line is seen by everybody on this machine: env:NAME or file:PATH", param_hint=option
        )
    try:
        return config.Secret(secret.resolve(text, Path(), os.environ))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
