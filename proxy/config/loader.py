"""Configuration loader: a YAML file to frozen settings, with secrets resolved and checked.

A ConfigError has every mistake, one line each, such as `config.yaml:12:5: listen.port: …`; none holds a secret.
"""

import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from proxy import config, errors
from proxy.config import base, secret
from proxy.kit import located_yaml
from proxy.kit.located_yaml import Trail

# Stands for values that are not needed where no request is sent to the upstream.
ABSENT = "http://absent.invalid"
SECRETS = (secret.Secret, secret.OperatorsToken, secret.ProxyAddress, secret.StoreUrl, secret.Digest)
EXAMPLE_KEY = "EXAMPLE_KEY"  # in the shipped configuration: not a secret
# Names are labels of metrics, parts of ledger entries and of Redis keys: no space, no slash.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def load(path: Path, environ: Mapping[str, str], *, upstream: bool = True) -> config.Config:
    """Read a configuration file. `env:` secrets come from `environ`, `file:` ones from beside the file.

    Without `upstream` no request will be sent to it: missing credentials, outgoing proxy and TLS files are accepted.
    The settings of the store are always required.
    """
    return _Reader(path, environ, upstream).settings()


def exposed(path: Path) -> list[Path]:
    """Return the files with secrets of a configuration that other users can read. Raises ConfigError."""
    reader = _Reader(path, {}, upstream=False)
    with suppress(errors.ConfigError):  # such as a variable that is not set
        reader.settings()
    return [file for file in reader.secret_files if _is_open(file)]


def _is_open(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    except OSError:
        return False


class _Reader(base.Blocks):
    """Reader of a configuration file. `secret_files` are those in which it has found secrets."""

    def __init__(self, file: Path, environ: Mapping[str, str], upstream: bool) -> None:
        super().__init__(located_yaml.load(file, errors.ConfigError, all_mistakes=True))
        self._file, self._environ, self._upstream = file, environ, upstream
        self._first_uses: dict[tuple[Trail, object], Trail] = {}
        self.secret_files: dict[Path, None] = {}

    def settings(self) -> config.Config:
        raw = {} if self.located.data is None else self.located.data
        if isinstance(raw, dict):
            # An empty block has its defaults; an empty upstream would silently be the sandbox.
            raw = {name: value for name, value in raw.items() if value is not None or name == "upstream"}
            raw["upstream"] = self._upstream_of(raw.get("upstream", "sandbox"))
            if isinstance(applications := raw.get("applications"), dict):
                in_sandbox = raw["upstream"] == "sandbox"
                raw["applications"] = {
                    str(name): self._application(each, ("applications", name), in_sandbox)
                    for name, each in applications.items()
                }
            raw.setdefault("store", "sqlite")
        return self.checked(self.block(config.Config, raw))

    def _upstream_of(self, raw: Any) -> Any:
        if raw == "nexar":
            return config.UpstreamSettings()
        if not isinstance(raw, dict):
            return raw
        for given, other in (("graphql_url", "token_url"), ("token_url", "graphql_url")):
            # Else tokens or credentials of one service would be sent to another.
            if given in raw and other not in raw:
                accepted = base.accepted(config.UpstreamSettings, other)
                self.report(("upstream", other), f"is missing; it accepts {accepted}")
        return self.block(config.UpstreamSettings, raw, ("upstream",)) or config.UpstreamSettings()

    def _application(self, raw: Any, at: Trail, in_sandbox: bool) -> config.ApplicationSettings:
        raw = dict(raw) if isinstance(raw, dict) else {} if raw is None else raw
        keys: list[Any] = []
        if isinstance(raw, dict):
            raw = config.PLANS.get(str(raw.get("plan")), {}) | raw
            if isinstance(raw.get("apikeys"), list):
                keys = raw["apikeys"] = [each if isinstance(each, dict) else {"key": each} for each in raw["apikeys"]]
        application = self.block(config.ApplicationSettings, raw, at)
        if isinstance(raw, dict):
            # The sandbox accepts any application without credentials, but not half of them: that is a mistake.
            is_complete = in_sandbox and raw.get("client_id") is None and raw.get("client_secret") is None
            for name in ("apikeys",) if is_complete else ("apikeys", "client_id", "client_secret"):
                if not raw.get(name):
                    accepted = base.accepted(config.ApplicationSettings, name)
                    self.report((*at, name), f"is missing; it accepts {accepted}")
            for index, key in enumerate(keys):
                self._check_key(key, (*at, "apikeys", index), isinstance(raw.get("parts"), int))
        # Last: a mistake at `at` hides those below it. YAML reads an unquoted 123 as a number.
        if not isinstance(at[1], str) or not _NAME.fullmatch(at[1]):
            self.report(at, "is not a name: letters, digits, - _ and . (a number needs quotes)")
        return application or config.ApplicationSettings()

    def _check_key(self, raw: dict[str, Any], at: Trail, is_limited: bool) -> None:
        """Report an API key or its name that another one has, and a share of parts that are not limited."""
        name = str(raw.get("name") or int(at[-1]) + 1)
        with suppress(ValueError, TypeError, KeyError):  # what is no API key has been reported
            self._check_first(((), secret.apikey(raw["key"])), "this API key", at)
        self._check_first((at[:-1], name), f"the name {name}", at)
        if str(raw.get("parts")).endswith("%") and not is_limited:
            needed = base.dotted((*at[:2], "parts"))
            self.report((*at, "parts"), f"needs the limit that it is part of: set {needed}, or plan")

    def _check_first(self, use: tuple[Trail, object], shown: str, at: Trail) -> None:
        earlier = self._first_uses.setdefault(use, at)
        if earlier is not at:
            self.report(at, f"{shown} is already given in {base.dotted(earlier)} ({self.located.place(earlier)})")

    def decode(self, kind: type[Any], raw: Any) -> Any:
        if not isinstance(raw, str):
            raise TypeError("is not text; put it in quotes")
        folder = self._file.parent
        if kind is secret.File:
            try:
                if self._upstream:
                    (folder / raw).open().close()
            except OSError as error:
                raise ValueError(f"the file {folder / raw} cannot be read: {error.strerror}") from error
            return secret.File(folder / raw)
        if kind in SECRETS:
            self._note_secret(kind, raw)
        if kind is secret.Digest:
            return secret.apikey(raw)
        try:
            text = secret.resolve(raw, folder, self._environ)
        except ValueError:
            # Only a reference may be unresolved; a value that is written out must be valid even where it is not used.
            if self._upstream or kind is secret.StoreUrl or not raw.startswith(("env:", "file:")):
                raise
            text = ABSENT
        if kind is not secret.StoreUrl:
            return kind(text)
        without_tls = (self.located.data or {}).get("store_without_tls") is True
        return secret.StoreUrl.parse(text, self._file, self._environ, without_tls)

    def _note_secret(self, kind: type[Any], raw: str) -> None:
        """Note the file in which a secret is; an address is one only with a password."""
        if raw.startswith("file:"):
            self.secret_files[self._file.parent / raw.removeprefix("file:")] = None
        elif kind in (secret.ProxyAddress, secret.StoreUrl) and "@" not in raw:
            return
        elif not raw.startswith(("env:", "sha256:")) and raw != EXAMPLE_KEY:
            self.secret_files[self._file] = None
