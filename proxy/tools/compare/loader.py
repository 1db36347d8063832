"""Loader of compare.yaml: frozen settings, with everything resolved and checked. Used once, at start.

A ConfigError has every mistake, one line each, such as `compare.yaml:12:5: rules[0].path: …`; none holds a key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from proxy import errors
from proxy.config import secret
from proxy.config.blocks import WRONG, Blocks
from proxy.kit import located_yaml, shipped
from proxy.tools.compare.judging import thresholds
from proxy.tools.compare.judging.settings import ComparisonSettings, IgnoreRule, ShippedRule
from proxy.tools.compare.judging.tolerances import Tolerance
from proxy.traffic.clients import ClientKeys

SHIPPED = "compare.yaml"
SCALARS = ("shipped_rules", "ignored_margin", "latency", "budget")
WAYS = ("ignore", "tolerate", "normalize")


def load(path: Path | None, environ: Mapping[str, str]) -> ComparisonSettings:
    """Read a file of settings, the shipped one where there is none. `env:` keys come from `environ`, `file:` ones from
    beside the file. The shipped rules follow those of the file, but for those whose names it gives to its own.
    """
    file = shipped.path(SHIPPED)
    own = _read(path or file, environ)
    if path is None or path.resolve() == file.resolve():
        return msgspec.structs.replace(own, rules=_shipped(own))
    if not own.shipped_rules:
        return own
    taken = {rule.name for rule in own.rules}
    others = (rule for rule in _shipped(_read(file, environ)) if rule.name not in taken)
    return msgspec.structs.replace(own, rules=(*own.rules, *others))


def _shipped(settings: ComparisonSettings) -> tuple[IgnoreRule, ...]:
    return tuple(ShippedRule(**msgspec.structs.asdict(rule)) for rule in settings.rules)


def _read(path: Path, environ: Mapping[str, str]) -> ComparisonSettings:
    return _Reader(located_yaml.read(path, errors.ConfigError), path.parent, environ).settings()


@dataclass(frozen=True, slots=True)
class _Reader(Blocks):
    folder: Path
    environ: Mapping[str, str]

    def settings(self) -> ComparisonSettings:
        raw = self.known(ComparisonSettings, self.located.data, ())
        read: dict[str, Any] = {name: raw[name] for name in SCALARS if name in raw}
        read["keys"] = [self._key(each, ("keys", at)) for at, each in self._listed(raw, "keys")]
        read["rules"] = [self._rule(each, ("rules", at)) for at, each in self._listed(raw, "rules")]
        read["fail_on"] = [self.value(thresholds.Threshold, each, ("fail_on", at)) for at, each in self._fail_on(raw)]
        read |= {name: raw[name] for name in ("ready",) if name in raw}
        settings = self.block(ComparisonSettings, read, ())
        self._check_names("keys", [key.name for key in read["keys"]])
        self._check_names("rules", [rule.name or "" for rule in read["rules"]])
        return self.checked(settings)

    def _listed(self, raw: dict[str, Any], name: str) -> list[tuple[int, Any]]:
        entries = raw.get(name)
        if entries is not None and not isinstance(entries, list):  # the value is not shown: it may be a key
            self.report((name,), "is a list: each entry begins with a dash")
            return []
        return list(enumerate(entries or []))

    def _fail_on(self, raw: dict[str, Any]) -> list[tuple[int, Any]]:
        one = raw.get("fail_on")
        return [(0, one)] if isinstance(one, str) else self._listed(raw, "fail_on")

    def _key(self, raw: Any, at: located_yaml.Trail) -> ClientKeys:
        if not isinstance(raw, dict) or not raw.keys() <= set(ClientKeys.__struct_fields__):  # it may be an API key
            self.report(at, f"is a block of {', '.join(ClientKeys.__struct_fields__)}, and of nothing else")
        return self.block(ClientKeys, raw, at)

    def _rule(self, raw: Any, at: located_yaml.Trail) -> IgnoreRule:
        raw = dict(self.known(IgnoreRule, raw, at))
        for name in ("endpoint", "ignore", "normalize", "form"):
            if isinstance(raw.get(name), str) and (name, raw[name]) != ("ignore", "all"):
                raw[name] = [raw[name]]
        if raw.get("expires") == "never":
            raw["expires"] = None
        elif "expires" in raw and raw["expires"] is None:
            self.report((*at, "expires"), "is empty; a rule that shall last says never")
        if "tolerate" in raw:
            raw["tolerate"] = self._tolerance(raw["tolerate"], (*at, "tolerate"))
        rule = self.block(IgnoreRule, raw, at)
        self._check(rule, raw, at)
        return rule if rule.name else msgspec.structs.replace(rule, name=self._line(at))

    def _tolerance(self, raw: Any, at: located_yaml.Trail) -> Tolerance:
        tolerance = self.block(Tolerance, raw, at)
        if tolerance == Tolerance():
            self.report(at, f"says nothing; it is a block with {', '.join(Tolerance.__struct_fields__)}")
        return tolerance

    def _check(self, rule: IgnoreRule, raw: dict[str, Any], at: located_yaml.Trail) -> None:
        """Check conditions that involve several keys of a rule."""
        if rule.path is None and rule.cause is None:
            self.report(at, "needs path or cause")
        given = [name for name in WAYS if raw.get(name)]
        if len(given) != 1:
            self.report(
                at, f"needs exactly one of {', '.join(WAYS)}" + (f", not {' and '.join(given)}" if given else "")
            )

    def _line(self, at: located_yaml.Trail) -> str:
        return self.located.place(at).rpartition(":")[0]

    def _check_names(self, name: str, names: list[str]) -> None:
        for at, each in enumerate(names):
            if each is not WRONG and each in names[:at]:
                first = self.located.place((name, names.index(each)))
                self.report((name, at), f"the name {each} is already given in {first}")

    def decode(self, kind: type[Any], raw: Any) -> Any:
        if isinstance(raw, kind):  # inner blocks have already been converted
            return raw
        if not isinstance(raw, str):
            raise TypeError("is not text; put it in quotes")
        if kind is thresholds.Threshold:
            return thresholds.parse(raw)
        text = secret.resolve(raw, self.folder, self.environ)
        return secret.apikey(text) if kind is secret.Digest else kind(text)
