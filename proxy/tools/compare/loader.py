"""Loader of compare.yaml: frozen settings, with everything resolved and checked. Used once, at start.

A ConfigError has every mistake, one line each, such as `compare.yaml:12:5: rules[0].path: …`; none holds a key.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proxy import errors
from proxy.config import base, secret
from proxy.kit import located_yaml, shipped
from proxy.kit.located_yaml import Trail
from proxy.tools.compare.judging import thresholds
from proxy.tools.compare.judging.settings import ComparisonSettings, IgnoreRule, ShippedRule
from proxy.tools.compare.judging.tolerances import Tolerance

SHIPPED = "compare.yaml"
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


class _Reader(base.Blocks):
    def __init__(self, located: located_yaml.LocatedYaml, folder: Path, environ: Mapping[str, str]) -> None:
        super().__init__(located)
        self._folder, self._environ = folder, environ

    def settings(self) -> ComparisonSettings:
        raw = {} if self.located.data is None else self.located.data
        if isinstance(raw, dict):
            raw = {name: value for name, value in raw.items() if value is not None}
            if isinstance(given := raw.get("fail_on"), str | list):
                each = enumerate([given] if isinstance(given, str) else given)
                raw["fail_on"] = [self._threshold(text, ("fail_on", at)) for at, text in each]
            if isinstance(raw.get("rules"), list):
                raw["rules"] = [self._rule(each, ("rules", at)) for at, each in enumerate(raw["rules"])]
        settings = self.block(ComparisonSettings, raw)
        for name in ("keys", "rules") if isinstance(raw, dict) else ():
            if isinstance(raw.get(name), list):
                self._check_names(name, raw[name])
        return self.checked(settings)

    def _threshold(self, raw: Any, at: Trail) -> Any:
        try:
            return thresholds.parse(raw) if isinstance(raw, str) else raw
        except ValueError as error:
            self.report(at, str(error))
            return raw  # refused once more, which is no other mistake

    def _rule(self, raw: Any, at: Trail) -> Any:
        """Return a rule as it would be written in full, and report what involves several of its keys."""
        if not isinstance(raw, dict):
            return raw
        if raw.get("path") is None and raw.get("cause") is None:
            self.report(at, "needs path or cause")
        given = [name for name in WAYS if raw.get(name)]
        if raw.get("tolerate") == {}:
            self.report((*at, "tolerate"), f"says nothing; it is a block with {', '.join(Tolerance.__struct_fields__)}")
        elif len(given) != 1:
            others = f", not {' and '.join(given)}" if given else ""
            self.report(at, f"needs exactly one of {', '.join(WAYS)}{others}")
        if "expires" in raw and raw["expires"] is None:
            self.report((*at, "expires"), "is empty; a rule that shall last says never")
        full = {"name": self.located.place(at).rpartition(":")[0], **raw}
        for name in ("endpoint", "ignore", "normalize", "form"):
            if isinstance(raw.get(name), str) and (name, raw[name]) != ("ignore", "all"):
                full[name] = [raw[name]]
        if raw.get("expires") == "never":
            full["expires"] = None
        return full

    def _check_names(self, name: str, entries: list[Any]) -> None:
        names = [each.get("name") if isinstance(each, dict) else None for each in entries]
        for at, each in enumerate(names):
            if each is not None and each in names[:at]:
                first = self.located.place((name, names.index(each)))
                self.report((name, at), f"the name {each} is already given in {first}")

    def decode(self, kind: type[Any], raw: Any) -> Any:
        if not isinstance(raw, str):
            raise TypeError("is not text; put it in quotes")
        text = secret.resolve(raw, self._folder, self._environ)
        return secret.apikey(text) if kind is secret.Digest else kind(text)
