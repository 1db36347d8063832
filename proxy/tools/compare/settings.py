"""Settings of compare.yaml, frozen, with everything resolved and checked. Read once, at start.

A ConfigError has every mistake, one line each, such as `compare.yaml:12:5: rules[0].path: …`; none holds a key. A
description completes the words "it accepts" of an error message.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from proxy import config
from proxy.config import loader
from proxy.tools.compare.judging.findings import IgnoreRule
from proxy.traffic.v3_request import ClientKeys

V3_RATE = 3.0  # requests per second that v3 allowed its free tier
SHIPPED = Path(__file__).with_name("compare.yaml")


class ComparisonSettings(config.Settings, frozen=True):
    """All settings."""

    keys: Annotated[
        tuple[ClientKeys, ...], Meta(description="a list of blocks with name, source, baseline and candidate")
    ] = ()
    rules: Annotated[tuple[IgnoreRule, ...], Meta(description="a list of blocks with path, reason and expires")] = ()
    baseline_rate: Annotated[float, Meta(ge=0, le=1000, description="requests a second, 0 (no limit) to 1000")] = (
        V3_RATE
    )


def load(path: Path | None, environ: Mapping[str, str]) -> ComparisonSettings:
    """Read a file of settings, the shipped one where there is none. `env:` keys come from `environ`, `file:` ones from
    beside the file. Raises ConfigError."""
    return _Reader(path or SHIPPED, environ).settings()


class _Reader(loader.Blocks):
    def settings(self) -> ComparisonSettings:
        raw = {} if self.located.data is None else self.located.data
        if isinstance(raw, dict):
            raw = {name: value for name, value in raw.items() if value is not None}
            for name in ("keys", "rules"):
                if isinstance(listed := raw.get(name), list):
                    raw[name] = [self._entry(name, at, listed) for at in range(len(listed))]
        return self.checked(self.block(ComparisonSettings, raw))

    def _entry(self, name: str, at: int, listed: list[Any]) -> Any:
        """Return an entry as msgspec converts it, and report what involves several keys or entries."""
        entry, trail = listed[at], (name, at)
        if not isinstance(entry, dict):
            return entry
        if name == "keys":
            named = entry.get("name")
            if named and any(isinstance(other, dict) and other.get("name") == named for other in listed[:at]):
                self.report(trail, f"the name {named} is given already")
            return entry
        if entry.get("path") is None and entry.get("cause") is None:
            self.report(trail, "needs path or cause")
        if "expires" in entry and entry["expires"] is None:
            self.report((*trail, "expires"), "is empty; a rule that shall last says never")
        return entry | {"expires": None} if entry.get("expires") == "never" else entry
